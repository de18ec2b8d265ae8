"""Works on files for a gateway on another machine."""

import io
import json
import sys
from pathlib import Path

import pytest

from hermes.boundary.execution import remote_files


class Streams(io.TextIOWrapper):
    """A standard stream that keeps its bytes."""

    def __init__(self, data: bytes = b"") -> None:
        self.raw_bytes = io.BytesIO(data)
        super().__init__(self.raw_bytes)


def call(
    patch: pytest.MonkeyPatch, root: Path, operation: str, data: bytes = b"", **fields: object
) -> tuple[dict[str, object], bytes]:
    request = {"operation": operation, "root": str(root), "shown": "/w", "length": len(data)}
    line = json.dumps({**request, **fields}).encode() + b"\n"
    output = Streams()
    patch.setattr(sys, "stdin", Streams(line + data))
    patch.setattr(sys, "stdout", output)
    remote_files.main()
    head, _, content = output.raw_bytes.getvalue().partition(b"\n")
    told: dict[str, object] = json.loads(head)
    assert told.pop("length") == len(content)
    return told, content


def test_a_file_is_replaced_only_if_it_is_as_expected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "f").write_text("old")
    told, _ = call(monkeypatch, tmp_path, "write", b"newold", path="f", expected=3)
    assert told == {"result": False}
    told, _ = call(monkeypatch, tmp_path, "write", b"xold", path="f", expected=3)
    assert "was changed" in str(told["failed"])
    assert (tmp_path / "f").read_text() == "new"


def test_folders_begin_inside_the_workspace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "out").symlink_to("/usr")
    for path in ("a", "/w/a", str(tmp_path / "a")):
        told, _ = call(monkeypatch, tmp_path, "folder", path=path)
        assert told == {"result": str(tmp_path / "a")}
    for path in ("..", "out", "missing", "/"):
        told, _ = call(monkeypatch, tmp_path, "folder", path=path)
        assert "workdir" in str(told["failed"])


def test_scripts_are_hashed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("one")
    (tmp_path / "link").symlink_to("x")
    told, _ = call(monkeypatch, tmp_path, "scripts", path=str(tmp_path), names=["x", "no"])
    found = told["result"]
    assert isinstance(found, list)
    assert [len(digest) for _, digest in found] == [64, 0]
    told, _ = call(monkeypatch, tmp_path, "scripts", path=str(tmp_path), names=["link"])
    assert "symbolic link" in str(told["failed"])
    told, _ = call(monkeypatch, tmp_path, "scripts", path=str(tmp_path), names=["/usr"])
    assert "not a file" in str(told["failed"])


def test_a_workspace_is_deleted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = tmp_path / "w"
    assert call(monkeypatch, root, "list", path=".")[0] == {"result": []}
    assert call(monkeypatch, root, "delete")[0] == {"result": True}
    assert call(monkeypatch, root, "delete")[0] == {"result": False}
