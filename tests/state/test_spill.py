"""Long results are stored completely, for their own session, for a limited time."""

import math
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.state.spill import LINE_CHARS, Spill, folded, trimmed
from hermes.types.errors import StoreUnavailable, ToolFailed

NOTE = re.compile(
    r"\[… (\d+) characters left out: read_file 'spill:t_0_0' has them from line (\d+) on …]\n"
)
texts = st.lists(st.text(max_size=30) | st.integers(0, 3 * LINE_CHARS).map("x".__mul__)).map(
    "\n".join
)


@pytest.fixture
def spill(tmp_path: Path) -> Spill:
    return Spill(tmp_path / "spill")


def test_a_text_is_read_back_unchanged(spill: Spill) -> None:
    text = "one\r\ntwo\x0c\n\nzwölf\n"
    name = spill.keep("s", "t_0_0", text)
    assert name == "spill:t_0_0"
    assert spill.read("s", name) == text


def test_a_repeated_call_replaces_its_text(spill: Spill) -> None:
    spill.keep("s", "t_0_0", "old")
    assert spill.read("s", spill.keep("s", "t_0_0", "new")) == "new"


def test_other_sessions_can_not_read_a_result(spill: Spill) -> None:
    name = spill.keep("s", "t_0_0", "secret")
    with pytest.raises(ToolFailed, match="no result 'spill:t_0_0' in this conversation"):
        spill.read("another", name)


def test_only_the_owner_can_read_the_files_and_folders(spill: Spill, tmp_path: Path) -> None:
    spill.keep("s", "t_0_0", "secret")
    folder = tmp_path / "spill"
    modes = {path.stat().st_mode & 0o777 for path in (folder, *folder.glob("*"))}
    assert modes == {0o700}
    assert [path.stat().st_mode & 0o777 for path in folder.glob("*/*")] == [0o600]


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\0", "x" * 81])
def test_no_name_leads_to_another_file(spill: Spill, name: str) -> None:
    with pytest.raises(ToolFailed, match="is not the name of a stored result"):
        spill.read("s", f"spill:{name}")
    with pytest.raises(ToolFailed, match="is not the name of a stored result"):
        spill.keep("s", name, "x")


def test_the_valid_part_of_invalid_unicode_is_kept(spill: Spill) -> None:
    assert spill.read("s", spill.keep("s", "t_0_0", "a\udcffb")) == "a?b"


def test_an_error_of_the_disk_is_reported(tmp_path: Path) -> None:
    (tmp_path / "spill").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="can't be stored"):
        Spill(tmp_path / "spill").keep("s", "t_0_0", "x")


def test_old_results_are_deleted(spill: Spill, tmp_path: Path) -> None:
    for call, age in (("old", 100), ("new", 300)):
        spill.keep("s", call, call)
        (path,) = (tmp_path / "spill").glob(f"*/{call}")
        os.utime(path, (age, age))
    spill.forget(200)
    assert spill.read("s", "spill:new") == "new"
    with pytest.raises(ToolFailed):
        spill.read("s", "spill:old")


def test_the_empty_folder_of_a_session_is_deleted(spill: Spill, tmp_path: Path) -> None:
    spill.forget(1)
    spill.keep("s", "t_0_0", "x")
    (folder,) = (tmp_path / "spill").iterdir()
    for path in (*folder.iterdir(), folder):
        os.utime(path, (100, 100))
    spill.forget(200)
    assert list((tmp_path / "spill").iterdir()) == []


@settings(deadline=None)
@given(texts)
def test_stored_lines_are_short_and_no_text_is_lost(text: str) -> None:
    kept = folded(text)
    assert max(map(len, kept.split("\n"))) <= LINE_CHARS
    assert kept.replace("\n", "") == text.replace("\n", "")
    assert folded(kept) == kept


@settings(deadline=None)
@given(texts, st.integers(0, 4 * LINE_CHARS))
def test_a_trimmed_text_is_short_and_contains_only_parts_of_the_original(
    text: str, limit: int
) -> None:
    shown = trimmed(text, limit, "spill:t_0_0")
    assert len(shown) <= limit
    note = NOTE.search(shown)
    if note is None:
        assert text.startswith(shown)
        return
    tail, rest = shown[note.end() :], len(text) - int(note[1])
    head = text[: rest - len(tail)]
    assert shown[: note.start()] in (head, f"{head}\n")
    assert text.endswith(tail)
    before = folded(text).split("\n")[: int(note[2]) - 1]
    assert folded(head).startswith("\n".join(before)), "lines before the named one are shown"


def test_a_short_text_is_not_trimmed() -> None:
    assert trimmed("x" * 100, 100, "spill:t_0_0") == "x" * 100


def test_a_trimmed_text_keeps_whole_lines_and_says_where_to_continue() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 101))
    assert trimmed(text, 120, "spill:t_0_0").split("\n") == [
        "line 1",
        "line 2",
        "[… 761 characters left out: read_file 'spill:t_0_0' has them from line 3 on …]",
        "line 99",
        "line 100",
        "",
    ]


def test_a_deleted_session_leaves_no_results(tmp_path: Path) -> None:
    spill = Spill(tmp_path)
    for session in ("one", "other"):
        spill.keep(session, "t_0_0", "text")
    spill.forget_session("one")
    spill.forget_session("unknown")
    with pytest.raises(ToolFailed):
        spill.read("one", "spill:t_0_0")
    assert spill.read("other", "spill:t_0_0") == "text"


def test_other_files_are_not_deleted(spill: Spill, tmp_path: Path) -> None:
    spill.keep("s", "t_0_0", "old")
    (tmp_path / "spill" / ".DS_Store").write_text("x")
    (tmp_path / "spill" / "zz").write_text("x")
    spill.forget(before=math.inf)
    assert {path.name for path in (tmp_path / "spill").iterdir()} == {".DS_Store", "zz"}
