"""A search ends within its time limit, even if the pattern is slow."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hermes.boundary.search import search
from hermes.testing.commands import new_children
from hermes.testing.running import until
from hermes.types.errors import ToolFailed
from hermes.types.execution import SearchHit, SearchQuery

FOREVER = "(a+)+$"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "a").write_text("zwölf aa\n")
    (tmp_path / "b").write_text("a" * 60 + "b\n")
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_CLOEXEC)
    yield descriptor
    os.close(descriptor)


def query(pattern: str, seconds: float = 20.0) -> SearchQuery:
    return SearchQuery(pattern=pattern, path="", limit=9, seconds=seconds)


def scanning() -> bool:
    return any(part.endswith("scan.py") for child in new_children() for part in child.cmdline())


async def test_matching_lines_are_found(place: int) -> None:
    found = await search(place, query("zwölf|\0"))
    assert found.hits == (SearchHit(path="a", line=1, text="zwölf aa"),)
    assert found.remarks == ()


async def test_an_endless_search_is_ended_and_its_hits_are_returned(
    place: int,
) -> None:
    since = time.monotonic()
    found = await search(place, query(FOREVER, seconds=0.5))
    assert time.monotonic() - since < 5
    assert found.hits == (SearchHit(path="a", line=1, text="zwölf aa"),)
    assert found.remarks == ("stopped after 0.5 s; use a narrower path, a simpler pattern",)
    assert new_children() == []


async def test_a_search_that_uses_too_much_memory_is_ended(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("ab" * 2_000_000)
    place = os.open(tmp_path / "c", os.O_RDONLY | os.O_CLOEXEC)
    try:
        with pytest.raises(ToolFailed, match="The search failed"):
            await search(place, query("(?:(a|b)+?)*d"))
    finally:
        os.close(place)


async def test_a_search_that_nobody_waits_for_is_ended(place: int) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(search, place, query(FOREVER))
        await until(lambda: len(new_children()) == 1)
        group.cancel_scope.cancel()
    assert new_children() == []


async def test_a_wrong_pattern_is_reported_to_the_model(place: int) -> None:
    with pytest.raises(
        ToolFailed, match=r"'\*\.py' is not a regular expression: nothing to repeat"
    ):
        await search(place, query("*.py"))


async def test_the_child_process_gets_none_of_our_environment_variables(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED", "secret")
    async with anyio.create_task_group() as group:
        group.start_soon(search, place, query(FOREVER))
        await until(scanning)
        assert "PLANTED" not in new_children()[0].environ()
        group.cancel_scope.cancel()
