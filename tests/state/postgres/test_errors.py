"""PostgreSQL's errors become our errors. The kind of error says whether to retry at once, to retry
later, or to wait for the operator."""

from pathlib import Path

import psycopg
import pytest

from hermes.state.postgres.errors import ConnectionLost, connect_error, translated_error
from hermes.state.postgres.store import open_postgres
from hermes.testing.postgres import shared_databases
from hermes.testing.rows import put
from hermes.types.errors import ConfigError, HermesError, StoreUnavailable, TransactionConflict


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("40001", TransactionConflict),
        ("40P01", TransactionConflict),
        ("57P01", ConnectionLost),
        ("53100", StoreUnavailable),
        ("53300", StoreUnavailable),
        ("58030", StoreUnavailable),
        ("25006", StoreUnavailable),
        ("57P03", StoreUnavailable),
        ("42601", psycopg.Error),
        ("23505", psycopg.Error),
    ],
)
def test_the_code_of_the_server_determines_our_error(code: str, kind: type[Exception]) -> None:
    error = translated_error(psycopg.errors.lookup(code)("some text"))
    assert type(error) is kind if issubclass(kind, HermesError) else isinstance(error, kind)


def test_an_error_without_a_code_means_a_lost_connection() -> None:
    assert isinstance(translated_error(psycopg.OperationalError("cut")), ConnectionLost)


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ('FATAL:  password authentication failed for user "x"', "HERMES_STORE_URL"),
        ('FATAL:  role "x" does not exist', "HERMES_STORE_URL"),
        ('FATAL:  database "x" does not exist', "createdb"),
    ],
)
def test_a_wrong_setting_is_a_configuration_error(reason: str, hint: str) -> None:
    error = psycopg.OperationalError(reason)
    with pytest.raises(ConfigError, match=hint):
        raise connect_error(error, "the database", starting=True)
    # A gateway that is already running does not end: it waits until the operator has fixed the
    # problem.
    assert type(connect_error(error, "the database", starting=False)) is StoreUnavailable


async def test_the_error_names_an_unknown_database(tmp_path: Path) -> None:
    url = shared_databases().server.url("no_such_database")
    with pytest.raises(ConfigError, match=r"no_such_database.*createdb"):
        async with open_postgres(url):
            pass


async def test_a_missing_server_is_a_temporary_error_that_does_not_show_the_password(
    tmp_path: Path,
) -> None:
    url = f"postgresql://hermes:pass-word-1@/hermes?host={tmp_path}"
    with pytest.raises(StoreUnavailable, match="is PostgreSQL running there") as raised:
        async with open_postgres(url):
            pass
    assert "pass-word-1" not in str(raised.value)
    assert str(tmp_path) in str(raised.value)


@pytest.mark.parametrize("url", ["postgresql://[", "postgresql://h:port/x"])
async def test_the_error_for_an_invalid_address_does_not_show_its_password(url: str) -> None:
    with pytest.raises(HermesError) as raised:
        async with open_postgres(url.replace("//", "//hermes:pass-word-1@")):
            pass
    assert "pass-word-1" not in str(raised.value)


async def test_a_broken_statement_keeps_its_own_error(url: str) -> None:
    async with open_postgres(url) as store:
        await store.run(put, "a")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await store.run(put, "a")
        assert store.trouble is None
