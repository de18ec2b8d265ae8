"""Fixtures with a PostgreSQL database for each test of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.testing.stores import store_url, stores_on_postgres


@pytest.fixture(autouse=True)
def store_kind() -> Iterator[str]:
    with stores_on_postgres():
        yield "postgres"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of a database that has all tables and no rows."""
    return store_url(tmp_path)
