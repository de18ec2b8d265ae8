"""No path and no link reaches anything outside the workspace."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.boundary.workspace import LONGEST_PATH, Workspace
from hermes.testing.link_races import FILE_RACES, exchanged_link, is_intact
from hermes.types.errors import ToolFailed
from hermes.types.execution import LARGEST_FILE

SECRET = b"the secret outside"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_bytes(SECRET)
    root = outside / "work"
    (root / "folder" / "deep").mkdir(parents=True)
    (root / "folder" / "file").write_text("inside")
    (root / "name with spaces").write_text("spaced")
    (root / "link").symlink_to(outside / "secret")
    (root / "within").symlink_to(root / "folder" / "file")
    (root / "door").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "folder" / "root").symlink_to("/")
    os.mkfifo(root / "pipe")
    with (root / "huge").open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    return root


def test_files_inside_are_read_by_relative_and_absolute_path(root: Path) -> None:
    workspace = Workspace(root)
    assert workspace.read("folder/file") == b"inside"
    assert workspace.read("./folder//file") == b"inside"
    assert workspace.read("name with spaces") == b"spaced"
    assert workspace.read(str(root / "folder" / "file")) == b"inside"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is a folder"),
        (".", "is a folder"),
        ("..", "outside the workspace .*; paths are relative to it"),
        ("../secret", "outside"),
        ("folder/../../secret", "outside"),
        ("folder/../folder/file", "outside"),
        ("/etc/passwd", "outside"),
        ("//etc/passwd", "outside"),
        ("a\0b", "can't be the path"),
        ("./" * LONGEST_PATH + "file", "can't be the path"),
        ("~/secret", "No such file"),
        ("link", "link"),
        ("within", "link"),
        ("door/secret", "link|Not a directory"),
        ("up/secret", "link|Not a directory"),
        ("folder/root/etc/passwd", "link|Not a directory"),
        ("folder", "folder"),
        ("folder/file/more", "Not a directory"),
        ("missing", "No such file"),
        ("pipe", "pipe"),
        ("huge", "larger than"),
        ("x" * 300, "too long"),
        ("\ud800", "can't be the name"),
    ],
)
def test_every_other_path_is_refused_with_an_explanation(root: Path, path: str, why: str) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ToolFailed, match=why):
        Workspace(root).read(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_pipe_is_refused_even_if_it_has_a_writer(root: Path) -> None:
    reading = os.open(root / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(root / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(ToolFailed, match="pipe"):
            Workspace(root).read("pipe")
    finally:
        os.close(reading)
        os.close(writing)


def test_a_deleted_workspace_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="can't be opened"):
        Workspace(tmp_path / "gone").read("a")


def test_a_workspace_behind_a_link_can_be_named_by_both_paths(root: Path, tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(root)
    workspace = Workspace(tmp_path / "here")
    for name in (tmp_path / "here", root):
        assert workspace.read(str(name / "folder" / "file")) == b"inside"


PARTS = st.sampled_from(
    ["..", ".", "", "/", "secret", "link", "door", "up", "folder", "root", "work", "file", "\0"]
)
paths = st.lists(PARTS, max_size=6).map("/".join) | st.text(st.characters(), max_size=20)


@given(paths)
def test_no_path_leads_outside(root: Path, path: str) -> None:
    for wanted in (path, f"{root}/{path}"):
        try:
            data = Workspace(root).read(wanted)
        except ToolFailed:
            continue
        assert data != SECRET
        assert data in (b"inside", b"spaced")


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert workspace.write("a/b/f", b"two\n") is True
    assert workspace.write(str(tmp_path / "a" / "b" / "f"), b"drei\r\n") is False
    assert (tmp_path / "a" / "b" / "f").read_bytes() == b"drei\r\n"
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["f"]


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o4751)
    Workspace(tmp_path).write("f", b"new")
    assert (tmp_path / "f").stat().st_mode & 0o7777 == 0o4751


def test_a_reader_of_a_file_that_is_replaced_reads_the_complete_old_content(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    with (tmp_path / "f").open() as reader:
        Workspace(tmp_path).write("f", b"new")
        assert reader.read() == "old"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is a folder"),
        ("folder", "is a folder"),
        ("../new", "outside"),
        ("/etc/new", "outside"),
        ("link", "symbolic link"),
        ("within", "symbolic link"),
        ("door/new", "link|Not a directory"),
        ("folder/root/tmp/new", "link|Not a directory"),
        ("folder/file/new", "Not a directory"),
        ("pipe", "pipe"),
        ("x" * 300, "too long"),
        ("new/" + "x" * 300, "too long"),
        ("\ud800", "can't be the name"),
        ("new/\ud800", "can't be the name"),
    ],
)
def test_no_other_path_is_written(root: Path, path: str, why: str) -> None:
    (root / "new").mkdir(exist_ok=True)
    before = sorted(root.parent.rglob("*"))
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ToolFailed, match=why):
        Workspace(root).write(path, b"x")
    assert sorted(root.parent.rglob("*")) == before
    assert (root.parent / "secret").read_bytes() == SECRET
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


def test_a_file_that_is_too_large_is_not_written_at_all(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="more than"):
        Workspace(tmp_path).write("new/f", b"x" * (LARGEST_FILE + 1))
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_only_if_it_has_the_expected_content(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    (tmp_path / "f").write_text("old")
    assert workspace.write("f", b"new", b"old") is False
    with pytest.raises(ToolFailed, match="changed in the meantime: read it again"):
        workspace.write("f", b"newer", b"old")
    with pytest.raises(ToolFailed, match="No such file"):
        workspace.write("missing/f", b"new", b"old")
    assert (tmp_path / "f").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_the_entries_of_a_folder_are_listed_and_links_are_not_followed(root: Path) -> None:
    workspace = Workspace(root)
    (root / "new").mkdir(exist_ok=True)
    found = {info.name: info.kind for info in workspace.list(".")}
    assert found == {
        "door": "link",
        "folder": "folder",
        "huge": "file",
        "link": "link",
        "name with spaces": "file",
        "new": "folder",
        "pipe": "other",
        "up": "link",
        "within": "link",
    }
    (file,) = (info for info in workspace.list("folder") if info.kind == "file")
    assert (file.name, file.size) == ("file", 6)
    assert file == workspace.stat("folder/file")
    for path in ("door", "up/work", "folder/root", "..", "/etc", "folder/file"):
        with pytest.raises(ToolFailed, match=r"link|Not a directory|outside"):
            workspace.list(path)


def test_stat_does_not_follow_links(root: Path) -> None:
    workspace = Workspace(root)
    for path, kind in (("link", "link"), ("folder", "folder"), (".", "folder"), ("pipe", "other")):
        info = workspace.stat(path)
        assert info
        assert info.kind == kind
    assert workspace.stat("missing") is workspace.stat("missing/deeper") is None
    for path in ("door/secret", "../secret", "/etc/passwd"):
        with pytest.raises(ToolFailed, match=r"link|Not a directory|outside"):
            workspace.stat(path)


def test_only_the_entry_itself_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(SECRET)
    (root / "folder" / "link").symlink_to(tmp_path / "secret")
    (root / "door").symlink_to(tmp_path)
    workspace = Workspace(root)
    for path, why in (
        ("folder", "not empty"),
        ("missing", "No such file"),
        (".", "itself"),
        (str(root), "itself"),
        ("..", "outside"),
        ("door/secret", "link|Not a directory"),
    ):
        with pytest.raises(ToolFailed, match=why):
            workspace.remove(path)
    for path in ("folder/link", "folder", "door"):
        workspace.remove(path)
    assert list(root.iterdir()) == []
    assert (tmp_path / "secret").read_bytes() == SECRET


def test_the_home_can_not_be_read_listed_or_changed(tmp_path: Path) -> None:
    home = tmp_path / ".hermes"
    home.mkdir()
    (tmp_path / "f").touch()
    workspace = Workspace(tmp_path, home)
    assert [info.name for info in workspace.list(".")] == ["f"]
    for act in (workspace.stat, workspace.remove, workspace.list, workspace.read):
        with pytest.raises(ToolFailed, match="own folder"):
            act(".hermes")
    assert home.exists()


@pytest.mark.parametrize("act", FILE_RACES)
def test_a_link_that_replaces_a_folder_meanwhile_is_not_followed(
    tmp_path: Path, act: Callable[[Path], bool]
) -> None:
    root = tmp_path / "outside" / "work"
    start, done, refused = time.monotonic(), 0, 0
    with exchanged_link(root):
        while (passed := time.monotonic() - start) < 1 or not ((done and refused) or passed > 20):
            try:
                assert act(root)
                done += 1
            except ToolFailed:
                refused += 1
    assert done
    assert refused
    assert is_intact(root)
