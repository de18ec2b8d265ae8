"""The folder that a person at a terminal works in."""

from pathlib import Path

import pytest

from hermes.entry.cli.folder import here
from hermes.settings import load
from hermes.types.errors import ConfigError


def test_it_is_the_current_directory_unless_one_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert here(load(tmp_path / "home", {})).workspace == tmp_path
    chosen = load(tmp_path / "home", {"HERMES_WORKSPACE": "/elsewhere"})
    assert here(chosen).workspace == Path("/elsewhere")


def test_one_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="is gone"):
        here(load(tmp_path / "home", {}))
