"""Creates the execution backend that an agent's settings name."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.boundary.execution.environment import child_environment
from hermes.settings import Settings
from hermes.settings.network import network_policy
from hermes.settings.terminal import TerminalSettings
from hermes.types.errors import ConfigError
from hermes.types.execution import (
    BackendManifest,
    BackendOptions,
    CommandLimits,
    ExecutionBackend,
    Mount,
)
from hermes.types.execution_clients import ClientOptions, ContainerOptions, SshOptions

CLIENT_VARIABLES = (
    *("CONTAINER_HOST", "DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_HOST"),
    *("DOCKER_TLS_VERIFY", "SSH_AUTH_SOCK", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
)
"""Environment variables for programs such as `docker` and `ssh`, which run the agent's commands
elsewhere. The agent's commands do not see these variables."""


def configured_backend(
    settings: Settings, manifests: Sequence[BackendManifest]
) -> ExecutionBackend | None:
    """Returns the backend that runs commands, or None if no command may run."""
    terminal, known = settings.terminal, {manifest.name: manifest for manifest in manifests}
    if terminal.backend in known:
        return known[terminal.backend].make(backend_options(settings))
    if terminal.backend != "none":
        names = ", ".join(sorted([*known, "none"]))
        raise ConfigError(
            f"terminal.backend: there is no backend {terminal.backend!r}: use one of {names}"
        )
    return None


@asynccontextmanager
async def open_backend(
    settings: Settings, manifests: Sequence[BackendManifest]
) -> AsyncIterator[ExecutionBackend | None]:
    """Yields the configured backend, and closes it at the end of the block. Background processes
    continue."""
    backend = configured_backend(settings, manifests)
    try:
        yield backend
    finally:
        if backend is not None:
            await backend.aclose()


def backend_options(settings: Settings) -> BackendOptions:
    """Returns the options that every backend of an agent with these settings gets."""
    terminal, environ = settings.terminal, settings.sources.environ
    return BackendOptions(
        processes=settings.home.processes,
        environment=child_environment(environ, terminal.env_passthrough),
        secrets={name: environ[name] for name in terminal.secrets if name in environ},
        sudo_password=terminal.sudo_password,
        sandboxes=settings.files.sandboxes,
        sharing=terminal.scope,
        own_workspaces=_has_own_workspaces(settings),
        hidden=(settings.home.root,),
        limits=CommandLimits(
            processes=terminal.max_processes,
            memory=terminal.max_memory_mb * 1_000_000,
            cpu_seconds=terminal.max_cpu_seconds,
            file_bytes=terminal.max_file_mb * 1_000_000,
            workspace_bytes=terminal.max_workspace_mb * 1_000_000,
        ),
        mounts=tuple(map(parsed_mount, terminal.mounts)),
        network=network_policy(terminal),
        modal=settings.modal.account(),
        daytona=settings.daytona.account(),
        clients=client_options(terminal, environ),
    )


def client_options(terminal: TerminalSettings, environ: Mapping[str, str]) -> ClientOptions:
    """Returns the options of the backends that use another program, such as `docker` or `ssh`."""
    return ClientOptions(
        environment=child_environment(environ, CLIENT_VARIABLES),
        containers=ContainerOptions(
            program=terminal.docker_program,
            image=terminal.docker_image,
            singularity_image=terminal.singularity_image,
            volumes=terminal.docker_volumes,
            arguments=terminal.docker_extra_args,
            cpus=terminal.container_cpu,
            idle_seconds=terminal.idle_seconds,
        ),
        ssh=SshOptions(
            host=terminal.ssh_host,
            user=terminal.ssh_user,
            port=terminal.ssh_port,
            key=terminal.ssh_key_file,
            folder=terminal.ssh_folder,
            options=terminal.ssh_options,
        ),
    )


def _has_own_workspaces(settings: Settings) -> bool:
    """Returns whether each sandbox gets a separate workspace. In a terminal, or if the settings
    name a workspace, the answer is no: the person wants the agent to work in the folder of the
    terminal, or in the named folder."""
    chosen = "workspace" in settings.sources.found
    return not chosen and settings.workspace == settings.files.workspace


def parsed_mount(text: str) -> Mount:
    """Parses an entry of `terminal.mounts`. Raises ConfigError if the path is not absolute."""
    path = text.removesuffix(":rw").removesuffix(":ro")
    if not Path(path).is_absolute():
        raise ConfigError(f"terminal.mounts: {text!r} is a relative path: write an absolute path")
    return Mount(path=path, writable=text.endswith(":rw"))
