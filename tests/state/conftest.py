"""Every test in this folder that opens a store with `open_test_store` runs on SQLite and
PostgreSQL."""

from collections.abc import Iterator

import pytest

from hermes.testing.stores import open_test_store, stores_on_postgres


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.path.parent.name == "postgres":
        return
    opens = open_test_store in vars(metafunc.module).values()
    has_store = "tmp_path" in metafunc.fixturenames
    kinds = ["sqlite", "postgres"] if opens and has_store else ["sqlite"]
    metafunc.parametrize("store_kind", kinds, indirect=True)


@pytest.fixture(autouse=True)
def store_kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kind of database that `open_test_store` opens."""
    if request.param == "sqlite":
        yield "sqlite"
        return
    with stores_on_postgres():
        yield "postgres"
