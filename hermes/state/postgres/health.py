"""Checks a database on PostgreSQL for `hermes doctor`, without changing it."""

import psycopg

from hermes.state.postgres.ddl import migrations
from hermes.state.postgres.migration import schema_version
from hermes.state.postgres.pool import Server
from hermes.types.checks import Check, CheckLevel
from hermes.types.errors import HermesError


async def check_postgres(url: str) -> Check:
    """Connects to the database at `url`, and checks that the schema of the database fits this
    version of Hermes."""
    server, known = Server(url), len(migrations())
    try:
        async with await server.connect(starting=True) as connection:
            version, release = await schema_version(connection), connection.info.server_version
    except HermesError as error:
        return _found("error", str(error), "correct store.url, or start the server")
    except psycopg.Error as error:
        text = f"{server.place} can't be read ({error})"
        return _found("error", text, "give the user of store.url the right to read it")
    if version > known:
        text = f"a newer version of Hermes has written {server.place} (schema {version})"
        return _found("error", text, "install that version again, or restore a backup")
    text = f"{server.place}, PostgreSQL {release // 10000}, schema {version}"
    if version < known:
        text += f" (the next start migrates it to {known})"
    return _found("ok", text)


def _found(level: CheckLevel, text: str, hint: str = "") -> Check:
    return Check(name="store", level=level, text=text, hint=hint)
