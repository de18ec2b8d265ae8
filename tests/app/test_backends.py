"""The settings choose the execution backend."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.app.backends import backend_options, configured_backend, open_backend, parsed_mount
from hermes.app.builtins import Builtins
from hermes.boundary.execution.local import LocalBackend
from hermes.boundary.execution.sandbox import SandboxBackend
from hermes.hookspecs import hookimpl
from hermes.plugins import Plugins
from hermes.settings import Settings, load
from hermes.settings.terminal import TerminalSettings
from hermes.state.paths import Home
from hermes.testing.commands import FILES_ONLY
from hermes.types.errors import ConfigError
from hermes.types.execution import (
    BackendManifest,
    BackendOptions,
    CloudAccount,
    ExecutionBackend,
    Mount,
)


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


def test_the_backend_local_can_be_chosen(tmp_path: Path) -> None:
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


def test_the_backend_none_is_not_replaced_by_another_backend(tmp_path: Path) -> None:
    assert chosen(tmp_path, "none") is None


def test_an_unknown_backend_is_an_error(tmp_path: Path) -> None:
    names = "daytona, docker, local, modal, none, other, sandbox, singularity, ssh"
    with pytest.raises(ConfigError, match=f"'locla': use one of {names}"):
        chosen(tmp_path, "locla", OtherMachine())


def test_the_settings_of_commands_reach_the_backend(tmp_path: Path) -> None:
    files = Home(root=tmp_path)
    files.root.mkdir(exist_ok=True)
    files.config.write_text(
        "terminal:\n"
        "  scope: person\n"
        "  secrets: [GITHUB_TOKEN, MISSING]\n"
        "  mounts: [/srv/data, '/srv/out:rw']\n"
        "  max_memory_mb: 100\n"
    )
    environ = {"GITHUB_TOKEN": "opensesame", "OTHER": "x", "HOME": "/root"}
    found = load(tmp_path, environ)
    options = backend_options(found)
    assert options.sharing == "person"
    assert options.secrets == {"GITHUB_TOKEN": "opensesame"}
    assert options.mounts == (Mount(path="/srv/data"), Mount(path="/srv/out", writable=True))
    assert (options.limits.memory, options.limits.processes) == (100_000_000, 512)
    assert options.sandboxes == tmp_path / "sandboxes"
    assert options.hidden == (tmp_path,)
    assert "OTHER" not in options.environment
    assert "opensesame" in found.secrets()


def test_a_chosen_workspace_is_shared_by_all_sessions(tmp_path: Path) -> None:
    usual = load(tmp_path, {})
    assert backend_options(usual).own_workspaces
    assert not backend_options(replace(usual, workspace=tmp_path / "project")).own_workspaces
    chosen = load(tmp_path, {"HERMES_WORKSPACE": "workspace"})
    assert chosen.workspace == usual.workspace
    assert not backend_options(chosen).own_workspaces


def test_a_relative_mount_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"terminal\.mounts: 'data' is a relative path"):
        parsed_mount("data")


async def test_a_backend_is_closed_at_the_end(tmp_path: Path) -> None:
    manifests = Plugins([Builtins()]).backends()
    async with open_backend(settings(tmp_path, "sandbox"), manifests) as backend:
        assert isinstance(backend, SandboxBackend)
    async with open_backend(settings(tmp_path, "none"), manifests) as backend:
        assert backend is None


def test_a_backend_for_remote_sandboxes_gets_the_account_from_the_settings(tmp_path: Path) -> None:
    files = Home(root=tmp_path)
    files.root.mkdir(exist_ok=True)
    files.config.write_text("terminal: {modal_image: 'one:1', daytona_image: 'two:2'}\n")
    environ = {"MODAL_TOKEN_ID": "ak-1", "MODAL_TOKEN_SECRET": "as-1", "DAYTONA_API_KEY": "dtn-1"}
    options = backend_options(load(tmp_path, environ))
    assert options.modal == CloudAccount(image="one:1", key_id="ak-1", key="as-1")
    assert options.daytona == CloudAccount(
        image="two:2", key="dtn-1", url="https://app.daytona.io/api"
    )
    assert "as-1" not in repr(options)
    assert "dtn-1" not in repr(options)
