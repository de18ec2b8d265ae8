"""The tool `search_files` finds lines and paths."""

from pathlib import Path

import pytest

from hermes.boundary.search import search as search_file
from hermes.core.tools.search_files import search_files_tool
from hermes.state.spill import Spill
from hermes.testing.turns import GROUP, a_turn, use
from hermes.types.errors import ToolFailed


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.py").write_text("import os\nprint(1)\n")
    (root / "src" / "deep" / "b.py").write_text("print(2)\n")
    (root / "notes.md").write_text("nothing\n")
    return root


async def search(work: Path, pattern: str, **arguments: object) -> str:
    tool = search_files_tool(Spill(work.parent / "spill"), search_file, seconds=5)
    return await use(tool, a_turn(workspace=work), {"pattern": pattern, **arguments})


async def test_matching_lines_are_found_with_their_paths_and_line_numbers(work: Path) -> None:
    assert await search(work, r"print\(\d") == "src/a.py:2: print(1)\nsrc/deep/b.py:1: print(2)"


async def test_the_search_can_be_limited_to_a_folder_or_a_file(work: Path) -> None:
    assert await search(work, "print", path="src/deep") == "src/deep/b.py:1: print(2)"
    assert await search(work, "print", path="./src/a.py") == "src/a.py:2: print(1)"
    assert await search(work, "print", path=str(work / "src" / "a.py")) == "src/a.py:2: print(1)"


async def test_paths_can_be_searched_too(work: Path) -> None:
    assert await search(work, r"\.py$", files=True) == "src/a.py\nsrc/deep/b.py"
    assert await search(work, "", files=True, glob="*.md") == "notes.md"


async def test_a_search_without_hits_says_so(work: Path) -> None:
    assert await search(work, "absent") == "Nothing matches."
    with pytest.raises(ToolFailed, match="No such file"):
        await search(work, "x", path="missing")
    with pytest.raises(ToolFailed, match="outside the workspace"):
        await search(work, "x", path="..")


async def test_the_limit_of_hits_is_enforced_and_reported(work: Path) -> None:
    found = await search(work, "print", limit=-3)
    assert found.startswith("src/a.py:2: print(1)\n[stopped at 1 results")


async def test_only_the_session_of_a_spilled_result_can_search_it(work: Path) -> None:
    spill, turn = Spill(work.parent / "spill"), a_turn(workspace=work)
    name = spill.keep(str(turn.session), "t_0_0", "one\ntwo")
    tool, arguments = search_files_tool(spill, search_file), {"pattern": "w", "path": name}
    assert await use(tool, turn, arguments) == "spill:t_0_0:2: two"
    with pytest.raises(ToolFailed, match="no result"):
        await use(tool, a_turn(workspace=work, source=GROUP), arguments)


async def test_no_descriptor_is_left_open(work: Path) -> None:
    await search(work, "print")
    before = len(list(Path("/proc/self/fd").iterdir()))
    await search(work, "print")
    with pytest.raises(ToolFailed):
        await search(work, "(")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_the_values_in_a_secret_file_are_masked(work: Path) -> None:
    (work / ".env").write_text("A_TOKEN=opensesame\n")
    (work / "id_rsa").write_text("-----BEGIN KEY-----\nopensesame==\n")
    (work / "src" / "a.py").write_text('open("opensesame")  # see b:3: too\n')
    assert await search(work, "opensesame") == (
        '.env:1: A_TOKEN=…\nid_rsa:2: …\nsrc/a.py:1: open("opensesame")  # see b:3: too'
    )


async def test_a_path_that_looks_like_a_hit_does_not_unmask_a_secret_file(work: Path) -> None:
    (work / "a:1: b").mkdir()
    (work / "a:1: b" / ".env").write_text("A_TOKEN=opensesame\n")
    assert await search(work, "opensesame") == "a:1: b/.env:1: A_TOKEN=…"
