"""The agent on a remote machine answers requests."""

from pathlib import Path

import pytest

from hermes.boundary.execution.remote_agent import answer


def test_a_request_that_fails_is_answered_with_the_reason(tmp_path: Path) -> None:
    asked = {"root": str(tmp_path / "work"), "shown": "/shown"}
    assert answer(tmp_path, {"do": "list", "path": ".", **asked}) == {"answer": {"entries": []}}
    failed = answer(tmp_path, {"do": "read", "path": "../f", **asked})
    assert "outside the workspace" in str(failed["failed"])
    (tmp_path / "file").write_text("")
    blocked = {"do": "list", "path": ".", "root": str(tmp_path / "file/work"), "shown": ""}
    assert "Not a directory" in str(answer(tmp_path, blocked)["failed"])


def test_an_unknown_request_is_a_mistake_of_the_gateway(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="prepare"):
        answer(tmp_path, {"do": "prepare", "root": str(tmp_path), "shown": ""})
