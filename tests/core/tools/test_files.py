"""Reading files for the agent."""

from pathlib import Path

import pytest

from hermes.core.tools.files import WIDTH, read_file
from hermes.testing.turns import a_turn, use


async def read(workspace: Path, **arguments: object) -> str:
    return await use(read_file, a_turn(workspace=workspace), {"path": "f", **arguments})


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    (tmp_path / "f").write_text("one\ntwo\nthree\nfour\n")
    return tmp_path


async def test_a_file_is_read_whole(numbers: Path) -> None:
    assert await read(numbers) == "one\ntwo\nthree\nfour"


async def test_a_part_says_how_to_go_on(numbers: Path) -> None:
    shown = await read(numbers, offset=2, limit=2)
    assert shown == "two\nthree\n\n[lines 2-3 of 4; go on with offset 4]"
    assert await read(numbers, offset=4) == "four"


@pytest.mark.parametrize("offset", [-5, 0, 1])
async def test_a_file_begins_with_its_first_line(numbers: Path, offset: int) -> None:
    assert (await read(numbers, offset=offset, limit=-1)).startswith("one\n\n[lines 1-1 of 4")


async def test_behind_the_end_there_is_nothing_and_that_is_said(numbers: Path) -> None:
    assert await read(numbers, offset=5) == "[the file has only 4 lines]"
    (numbers / "f").write_text("")
    assert await read(numbers) == "[the file is empty]"
    assert await read(numbers, offset=9) == "[the file is empty]"


async def test_a_file_of_blank_lines_is_not_empty(numbers: Path) -> None:
    (numbers / "f").write_text("\n\n")
    assert await read(numbers) == "\n"


async def test_long_lines_are_cut(numbers: Path) -> None:
    (numbers / "f").write_text("x" * (WIDTH + 1))
    assert await read(numbers) == "x" * WIDTH + "…"
