"""Runs the quick tests of a folder on three stores: SQLite, SQLite with a retry of every
transaction, and PostgreSQL.

To use this module, the conftest.py of the folder imports the fixture and the hook of this module.
"""

from collections.abc import Iterator

import pytest

from hermes.testing.lock_check import locks_checked
from hermes.testing.running import ConflictingStore, every_store_wrapped
from hermes.testing.stores import stores_on_postgres


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    slow = metafunc.definition.get_closest_marker("slow") is not None
    has_store = "tmp_path" in metafunc.fixturenames
    kinds = ["plain", "conflicting", "postgres"] if has_store and not slow else ["plain"]
    if metafunc.definition.get_closest_marker("sqlite"):
        kinds.remove("postgres")
    metafunc.parametrize("store_kind", kinds, indirect=True)


@pytest.fixture(autouse=True)
def store_kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yields the kind of store that every gateway of the test uses."""
    match request.param:
        case "conflicting":
            with every_store_wrapped(ConflictingStore):
                yield "conflicting"
        case "postgres":
            with stores_on_postgres():
                yield "postgres"
        case _:
            with locks_checked():
                yield "plain"
