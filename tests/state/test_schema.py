"""The migrations are a numbered list that only grows, and a new version can read the rows of old
versions."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from hermes.state import inbox, turns
from hermes.state.paths import STORE_NAME
from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.migration import statements
from hermes.state.sqlite.store import open_store
from hermes.types.identity import OWNER, CallId, Principal, Target, TurnId
from hermes.types.messages import Origin

RELEASED = {
    "m001_spine": "07946a71ec1da965",
    "m002_core": "7508431242c8a00b",
}
"""The hash of each released migration. A released migration must not change, because it has already
run on databases."""


def test_migrations_are_numbered() -> None:
    assert [name[:5] for name, _ in MIGRATIONS] == [
        f"m{number:03}_" for number in range(1, len(MIGRATIONS) + 1)
    ]


def test_a_released_migration_is_never_edited() -> None:
    hashes = {name: hashlib.sha256(script.encode()).hexdigest()[:16] for name, script in MIGRATIONS}
    assert hashes.items() >= RELEASED.items()


def database_of(version: str, path: Path) -> sqlite3.Connection:
    """Creates a database with all migrations up to and including the migration `version`."""
    connection = sqlite3.connect(path, isolation_level=None)
    for number, (name, script) in enumerate(MIGRATIONS, 1):
        for statement in statements(script):
            connection.execute(statement)
        connection.execute(f"pragma user_version = {number}")
        if name == version:
            return connection
    raise AssertionError(f"there is no migration {version!r}")


@pytest.mark.parametrize(
    ("platform", "account", "thread", "expected"),
    [
        (
            "api",
            "default",
            None,
            Origin(trigger="api", principal=Principal(name="default", person=OWNER)),
        ),
        ("cli", "cli", None, Origin(principal=Principal(name="cli", person=OWNER))),
        ("embedded", "embedded", None, Origin(principal=Principal(name="embedded", person=OWNER))),
        (
            "telegram",
            "telegram.support",
            None,
            Origin(reply_to=Target(account="telegram.support", chat_id="7")),
        ),
        (
            "telegram",
            "telegram",
            "9",
            Origin(reply_to=Target(account="telegram", chat_id="7", thread_id="9")),
        ),
    ],
)
async def test_a_message_that_waited_during_an_upgrade_gets_its_origin(
    tmp_path: Path, platform: str, account: str, thread: str | None, expected: Origin
) -> None:
    source = {
        "platform": platform,
        "account": account,
        "chat_kind": "private",
        "chat_id": "7",
        "user_id": "42",
        "thread_id": thread,
    }
    event = {
        "dedupe_key": "k",
        "source": source,
        "received_at": 1.0,
        "body": {"type": "Said", "text": "über"},
    }
    path = tmp_path / STORE_NAME
    with closing(database_of("m002_core", path)) as connection:
        connection.execute(
            "insert into inbox (id, dedupe_key, fingerprint, session, agent, account, chat_id,"
            " user_id, state, owner, event, received_at)"
            " values ('i', 'k', '', 's', 'main', ?, '7', '42', 'pending', 'o', ?, 1.0)",
            (account, msgspec.json.encode(event)),
        )
    async with open_store(path) as store:
        found = await store.read(inbox.event_of, "i")
    assert found.origin == expected
    assert found.source.account == account
    assert msgspec.to_builtins(found.body) == event["body"]


async def test_commands_that_an_earlier_version_started_get_handles(tmp_path: Path) -> None:
    path = tmp_path / STORE_NAME
    with closing(database_of("m002_core", path)) as connection:
        connection.execute(
            "insert into calls (id, turn, process, started_at) values"
            " ('t_0_0', 't', ?, 1.0), ('t_0_1', 't', null, 1.0)",
            (b'{"group":12,"started":34}',),
        )
    async with open_store(path) as store:
        assert await store.read(turns.started_calls, TurnId("t")) == {
            CallId("t_0_0"): "local::12:34:t_0_0",
            CallId("t_0_1"): None,
        }
