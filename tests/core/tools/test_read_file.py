"""The tool `read_file` reads files, and long results that were stored in a file."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.tools.read_file import PAGE_SIZE, PAGE_WIDTH, page, read_file_tool
from hermes.core.tools.results import LONGEST_RESULT
from hermes.state.spill import Spill
from hermes.testing.turns import GROUP, a_turn, use
from hermes.text.secret_files import NOTE
from hermes.types.errors import ToolFailed


async def read(workspace: Path, **arguments: object) -> str:
    tool = read_file_tool(Spill(workspace / "spill"))
    return await use(tool, a_turn(workspace=workspace), {"path": "f", **arguments})


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    (tmp_path / "f").write_text("one\ntwo\nthree\nfour\n")
    return tmp_path


async def test_a_file_is_read_completely(numbers: Path) -> None:
    assert await read(numbers) == "one\ntwo\nthree\nfour"


async def test_a_page_that_is_not_the_last_says_how_to_continue(numbers: Path) -> None:
    shown = await read(numbers, offset=2, limit=2)
    assert shown == "two\nthree\n\n[lines 2-3 of 4; go on with offset 4]"
    assert await read(numbers, offset=4) == "four"


@pytest.mark.parametrize("offset", [-5, 0, 1])
async def test_a_small_offset_means_the_first_line(numbers: Path, offset: int) -> None:
    assert (await read(numbers, offset=offset, limit=-1)).startswith("one\n\n[lines 1-1 of 4")


async def test_an_offset_after_the_end_is_reported(numbers: Path) -> None:
    assert await read(numbers, offset=5) == "[the file has only 4 lines]"
    (numbers / "f").write_text("")
    assert await read(numbers) == "[the file is empty]"
    assert await read(numbers, offset=9) == "[the file is empty]"


async def test_a_file_of_blank_lines_is_not_empty(numbers: Path) -> None:
    (numbers / "f").write_text("\n\n")
    assert await read(numbers) == "\n"


async def test_long_lines_are_cut(numbers: Path) -> None:
    (numbers / "f").write_text("x" * (PAGE_WIDTH + 1))
    assert await read(numbers) == "x" * PAGE_WIDTH + "…"


async def test_only_line_breaks_separate_lines(numbers: Path) -> None:
    (numbers / "f").write_bytes("one\r\ntwo\x0c\u2028still two\r\n".encode())
    assert await read(numbers, offset=2) == "two\x0c\u2028still two"


@settings(deadline=None)
@given(st.lists(st.text(st.sampled_from("ab \r"), max_size=50).map(lambda text: text * 60)))
def test_pages_are_limited_and_contain_the_whole_file_together(lines: list[str]) -> None:
    lines = [line[:PAGE_WIDTH].rstrip("\r") for line in lines]
    seen: list[str] = []
    while len(seen) < len(lines):
        shown = page("\n".join([*lines, ""]), len(seen) + 1, 30)
        assert len(shown) <= LONGEST_RESULT
        goes_on = "go on with" in shown
        seen += (shown.rpartition("\n\n[lines")[0] if goes_on else shown).split("\n")
        assert goes_on == (len(seen) < len(lines))
    assert seen == lines


async def test_a_page_contains_as_many_lines_as_fit(numbers: Path) -> None:
    (numbers / "f").write_text("x" * 999 + "\n" + ("y" * 999 + "\n") * 99)
    shown = await read(numbers)
    assert PAGE_SIZE - 1000 < len(shown) <= LONGEST_RESULT
    assert shown.endswith("of 100; go on with offset 24]")


async def test_a_long_result_is_read_by_its_name(tmp_path: Path) -> None:
    spill, turn = Spill(tmp_path / "spill"), a_turn(workspace=tmp_path)
    name = spill.keep(str(turn.session), "t_0_0", "x" * 5000 + "\nlast")
    tool = read_file_tool(spill)
    assert await use(tool, turn, {"path": name, "offset": 3}) == "x" * 1000 + "\nlast"
    with pytest.raises(ToolFailed, match="no result 'spill:t_0_0' in this conversation"):
        await use(tool, a_turn(workspace=tmp_path, source=GROUP), {"path": name})


async def test_the_values_in_a_secret_file_are_masked(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=opensesame\nB=opensesame\n")
    shown = await read(tmp_path, path=".env", offset=2)
    assert shown == f"B=…\n\n{NOTE}"


@pytest.mark.parametrize("path", [".env", ".env/", ".env/.", "./.env", ".//.env"])
async def test_no_spelling_of_a_path_reveals_a_secret(tmp_path: Path, path: str) -> None:
    (tmp_path / ".env").write_text("STRIPE=live_abc123456\n")
    assert await read(tmp_path, path=path) == f"STRIPE=…\n\n{NOTE}"


async def test_a_secret_is_redacted_before_a_long_line_is_cut(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x" * (PAGE_WIDTH - 4) + " hunter2hunter2 end")
    tool = read_file_tool(Spill(tmp_path / "spill"))
    shown = await use(
        tool,
        a_turn(workspace=tmp_path),
        {"path": "f"},
        redact=lambda text: text.replace("hunter2hunter2", "…"),
    )
    assert "hun" not in shown
    assert len(shown) == PAGE_WIDTH + 1


async def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x7fELF\0\0")
    with pytest.raises(ToolFailed, match="'f' is not a text file"):
        await read(tmp_path)


async def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes("für".encode("latin-1"))
    assert await read(tmp_path) == "f\ufffdr"
