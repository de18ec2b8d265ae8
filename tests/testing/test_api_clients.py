"""Without a package registry, the installation fails with a reason and leaves no incomplete
files."""

from pathlib import Path

import pytest

from hermes.testing.api_clients import installed_clients
from hermes.types.errors import Disconnected


def test_without_a_registry_the_error_contains_the_reason_of_the_installer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(Disconnected, match=r"could not be installed: .*openai"):
        installed_clients(tmp_path / "clients")
    assert list((tmp_path / "clients").glob("*/complete")) == []
