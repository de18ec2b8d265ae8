"""Runs the quick tests of a folder on two stores: a plain one, and one that retries everything.

A conftest imports both names from here.
"""

from collections.abc import Iterator

import pytest

from hermes.testing.running import ConflictingStore, every_store_wrapped


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    slow = metafunc.definition.get_closest_marker("slow") is not None
    has_store = "tmp_path" in metafunc.fixturenames
    kinds = ["plain", "conflicting"] if has_store and not slow else ["plain"]
    metafunc.parametrize("store_kind", kinds, indirect=True)


@pytest.fixture(autouse=True)
def store_kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kind of store that every gateway of the test has."""
    if request.param == "plain":
        yield "plain"
        return
    with every_store_wrapped(ConflictingStore):
        yield "conflicting"
