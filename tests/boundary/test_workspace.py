"""Nothing outside the workspace can be read, whatever the path or the link says."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.boundary.workspace import MOST, Workspace
from hermes.types.errors import ToolFailed

SECRET = b"the secret outside"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_bytes(SECRET)
    root = outside / "work"
    (root / "folder" / "deep").mkdir(parents=True)
    (root / "folder" / "file").write_text("inside")
    (root / "name with spaces").write_text("spaced")
    (root / "binary").write_bytes(b"\x7fELF\0\0")
    (root / "latin").write_bytes("für".encode("latin-1"))
    (root / "link").symlink_to(outside / "secret")
    (root / "within").symlink_to(root / "folder" / "file")
    (root / "door").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "folder" / "root").symlink_to("/")
    os.mkfifo(root / "pipe")
    with (root / "huge").open("wb") as file:
        file.truncate(MOST + 1)
    return root


async def test_files_inside_are_read_by_relative_and_absolute_path(root: Path) -> None:
    workspace = Workspace(root)
    assert await workspace.read_text("folder/file") == "inside"
    assert await workspace.read_text("./folder//file") == "inside"
    assert await workspace.read_text("name with spaces") == "spaced"
    assert await workspace.read_text(str(root / "folder" / "file")) == "inside"
    assert await workspace.read_text("latin") == "f\ufffdr"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "not a path"),
        (".", "not a path"),
        ("..", "not a path"),
        ("../secret", "not a path"),
        ("folder/../../secret", "not a path"),
        ("folder/../folder/file", "not a path"),
        ("a\0b", "not a path"),
        ("/etc/passwd", "outside"),
        ("//etc/passwd", "outside"),
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
        ("binary", "not a text file"),
        ("huge", "larger than"),
        ("x" * 300, "too long"),
        ("\ud800", "can't be the name"),
    ],
)
async def test_everything_else_is_refused_in_words(root: Path, path: str, why: str) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ToolFailed, match=why):
        await Workspace(root).read_text(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_a_pipe_with_a_writer_is_refused_too(root: Path) -> None:
    reading = os.open(root / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(root / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(ToolFailed, match="pipe"):
            await Workspace(root).read_text("pipe")
    finally:
        os.close(reading)
        os.close(writing)


async def test_a_workspace_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="can't be opened"):
        await Workspace(tmp_path / "gone").read_text("a")


PARTS = st.sampled_from(
    ["..", ".", "", "/", "secret", "link", "door", "up", "folder", "root", "work", "file", "\0"]
)
paths = st.lists(PARTS, max_size=6).map("/".join) | st.text(st.characters(), max_size=20)


@given(paths)
def test_no_path_leads_outside(root: Path, path: str) -> None:
    for wanted in (path, f"{root}/{path}"):
        try:
            data = Workspace(root).read_bytes(wanted)
        except ToolFailed:
            continue
        assert data != SECRET
        assert data in (b"inside", b"spaced")


def test_a_link_that_is_swapped_in_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    root = tmp_path / "work"
    (root / "real").mkdir(parents=True)
    (root / "real" / "secret").write_bytes(b"harmless")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "real").rename(root / "aside")
            (root / "real").symlink_to(tmp_path)
            (root / "real").unlink()
            (root / "aside").rename(root / "real")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(2000):
            try:
                assert Workspace(root).read_bytes("real/secret") == b"harmless"
            except ToolFailed:
                continue
    finally:
        stop.set()
        swapper.join()
