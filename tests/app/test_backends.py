"""The settings choose the execution backend."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes.app.backends import configured_backend
from hermes.app.builtins import Builtins
from hermes.boundary.execution.local import LocalBackend
from hermes.hookspecs import hookimpl
from hermes.plugins import Plugins
from hermes.settings import PLANNED_BACKENDS, Settings
from hermes.settings.sections import TerminalSettings
from hermes.state.paths import Home
from hermes.testing.commands import FILES_ONLY
from hermes.types.errors import ConfigError
from hermes.types.execution import BackendManifest, BackendOptions, ExecutionBackend


class OtherMachine:
    """A plugin that registers an execution backend."""

    def __init__(self) -> None:
        self.options: list[BackendOptions] = []

    @hookimpl
    def register_backends(self) -> Sequence[BackendManifest]:
        return (BackendManifest(name="other", make=self.make),)

    def make(self, options: BackendOptions) -> ExecutionBackend:
        self.options.append(options)
        return FILES_ONLY


def settings(folder: Path, backend: str) -> Settings:
    return Settings(home=Home(root=folder), terminal=TerminalSettings(backend=backend))


def chosen(folder: Path, backend: str, *plugins: object) -> ExecutionBackend | None:
    manifests = Plugins([Builtins(), *plugins]).backends()
    return configured_backend(settings(folder, backend), manifests)


def test_local_is_a_backend(tmp_path: Path) -> None:
    backend = chosen(tmp_path, "local")
    assert isinstance(backend, LocalBackend)
    assert backend.commands is not None


def test_a_plugin_adds_a_backend(tmp_path: Path) -> None:
    other = OtherMachine()
    assert chosen(tmp_path, "other", other) is FILES_ONLY
    (options,) = other.options
    assert options.processes == Home(root=tmp_path).processes
    assert set(options.environment) == {"PATH"}
    with pytest.raises(ConfigError, match="two plugins register the execution backend 'other'"):
        chosen(tmp_path, "other", other, OtherMachine())


@pytest.mark.parametrize("name", ["none", *PLANNED_BACKENDS])
def test_an_unsupported_backend_is_not_replaced_by_another_backend(
    tmp_path: Path, name: str
) -> None:
    assert chosen(tmp_path, name) is None


def test_an_unknown_backend_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no backend 'locla': use one of local, none, other"):
        chosen(tmp_path, "locla", OtherMachine())
