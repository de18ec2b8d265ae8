"""In a terminal, the workspace is the current directory."""

from pathlib import Path

import pytest

from hermes.entry.cli.folder import here
from hermes.settings import load
from hermes.types.errors import ConfigError


def test_the_workspace_is_the_current_directory_unless_one_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert here(load(tmp_path / "home", {})).workspace == tmp_path
    chosen = load(tmp_path / "home", {"HERMES_WORKSPACE": "/elsewhere"})
    assert here(chosen).workspace == Path("/elsewhere")


def test_a_deleted_current_directory_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="no longer exists"):
        here(load(tmp_path / "home", {}))
