"""A search for a pattern reads text files and skips everything else."""

import json
import os
from pathlib import Path

import pytest

from hermes.boundary.scan import DEPTH, HIT, HIT_WIDTH, LARGE, ScanTask, output
from hermes.types.execution import LARGEST_FILE

WORD = "needle"


def scan(place: Path, pattern: str = WORD, glob: str = "", limit: int = 99) -> list[str]:
    task = ScanTask(pattern=pattern, path="", names=False, glob=glob, limit=limit, seconds=9)
    descriptor = os.open(place, os.O_RDONLY)
    try:
        return [_shown(line) for line in output(descriptor, task)]
    finally:
        os.close(descriptor)


def _shown(line: str) -> str:
    """Returns an output line of the scan in a readable form: `=path:line: text` if the line is a
    hit, and the line itself otherwise."""
    if not line.startswith(HIT):
        return line
    path, number, text = json.loads(line[1:])
    return f"{HIT}{path}:{number}: {text}"


def named(place: Path, glob: str = "") -> list[str]:
    return [line[1:].split(":")[0] for line in scan(place, glob=glob)]


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{WORD}\n")


def test_generated_folders_binary_files_and_pipes_are_skipped(tmp_path: Path) -> None:
    write(tmp_path, "a", ".git/b", "node_modules/c", ".venv/d", "x/__pycache__/e", ".github/f")
    (tmp_path / "binary").write_bytes(b"\0" + WORD.encode())
    os.mkfifo(tmp_path / "pipe")
    assert named(tmp_path) == [".github/f", "a"]


def test_large_files_are_skipped_and_counted(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(LARGE + 1)
    assert scan(tmp_path) == [f"!not searched, because larger than {LARGE} bytes: 1 files"]
    assert scan(tmp_path / "large")[0].startswith("!not searched")
    assert LARGE == LARGEST_FILE


def test_links_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "outside/secret")
    work = tmp_path / "work"
    work.mkdir()
    (work / "folder").symlink_to(tmp_path / "outside")
    (work / "file").symlink_to(tmp_path / "outside" / "secret")
    (work / "round").symlink_to(".")
    assert scan(work) == []


def test_folders_are_searched_down_to_a_certain_depth(tmp_path: Path) -> None:
    deep = "/".join(["d"] * (DEPTH + 1))
    write(tmp_path, f"{deep}/too-deep", f"{deep[2:]}/deep")
    assert named(tmp_path) == [f"{deep[2:]}/deep"]


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("**/*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("./src/*.py", ["src/b.py", "src/deep/c.py"]),
        ("[bc].py", ["src/b.py", "src/deep/c.py"]),
        ("*.PY", []),
    ],
)
def test_a_glob_chooses_files(tmp_path: Path, glob: str, paths: list[str]) -> None:
    write(tmp_path, "a.py", "src/b.py", "src/deep/c.py", "src/d.md")
    assert named(tmp_path, glob) == paths


def test_long_lines_are_cut_around_the_match(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x" * 5000 + WORD + "y" * 5000)
    (hit,) = scan(tmp_path)
    shown = hit.removeprefix("=f:1: ")
    assert shown.startswith("…xxx")
    assert shown.endswith("yyy…")
    assert WORD in shown
    assert len(shown) == HIT_WIDTH + 2


def test_only_line_breaks_separate_lines(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"one\x0c\r\n\r\n" + WORD.encode() + b"\r\n")
    assert scan(tmp_path) == [f"=f:3: {WORD}"]
    assert scan(tmp_path, "^$") == ["=f:2: "]


def test_file_names_with_line_breaks_are_quoted(tmp_path: Path) -> None:
    write(tmp_path, "a\nb")
    (tmp_path / os.fsdecode(b"\xff")).write_text(WORD)
    assert named(tmp_path) == [r"'a\nb'", r"'\udcff'"]


def test_a_scan_stops_at_the_limit_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(f"{WORD}\n" * 5)
    assert scan(tmp_path, limit=2)[2:] == [
        "!stopped at 2 results; narrow it down or raise the limit"
    ]


def test_a_wrong_pattern_is_reported(tmp_path: Path) -> None:
    assert scan(tmp_path, "*.py") == ["?nothing to repeat at position 0"]
