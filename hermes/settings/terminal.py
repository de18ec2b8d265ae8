"""The settings of commands: where they run, and what they may use."""

from typing import Annotated

import msgspec

from hermes.settings.schema import Aliases
from hermes.settings.sections import Count, Seconds
from hermes.types.execution import Sharing
from hermes.types.value import Value


class TerminalSettings(Value):
    backend: Annotated[str, Aliases(env=("TERMINAL_ENV",))] = "sandbox"
    """The backend for commands: `sandbox` (isolated on this machine), `docker` or `singularity` (in
    containers), `ssh` (on another machine), `modal` or `daytona` (remote sandboxes), `local` (on
    this machine with your rights), `none` (no commands), or the name of a plugin's backend."""
    scope: Annotated[Sharing, Aliases(env=("TERMINAL_SCOPE",))] = "session"
    """The conversations that share a sandbox with its files: the turns of one `session`, all
    sessions of one `person`, or all sessions of the `agent`."""
    timeout: Annotated[Seconds, Aliases(env=("TERMINAL_TIMEOUT",))] = 180.0
    """Default timeout of a command in seconds."""
    env_passthrough: tuple[str, ...] = ()
    """Environment variables that commands see in addition to common ones such as PATH and HOME."""
    network: Annotated[tuple[str, ...], Aliases(env=("TERMINAL_NETWORK",))] = ("none",)
    """The network of commands in a sandbox: `none`, a list of host names such as `example.org` and
    `*.example.net`, or `open` for all public hosts."""
    secrets: tuple[str, ...] = ()
    """Names of environment variables with secrets that commands need. Their values are redacted in
    the output of commands."""
    sudo_password: Annotated[str, Aliases(env=("SUDO_PASSWORD",), secret=True)] = ""
    """The password that sudo gets with the backend `local`. No command and no model sees it."""
    mounts: tuple[str, ...] = ()
    """Absolute paths that commands in a sandbox can read, in addition to the workspace. A path that
    ends with `:rw` can also be written."""
    max_processes: Count = 512
    """Maximum number of processes of a command in a sandbox; 0 for no limit."""
    max_memory_mb: Annotated[
        Count,
        Aliases(env=("TERMINAL_CONTAINER_MEMORY",), keys=("terminal.container_memory",)),
    ] = 4000
    """Maximum memory of a command in a sandbox, in megabytes; 0 for no limit."""
    max_cpu_seconds: Count = 3600
    """Maximum CPU time of each process in a sandbox, in seconds; 0 for no limit."""
    max_file_mb: Count = 4000
    """Maximum size of each file that a command in a sandbox writes, in megabytes; 0 for no
    limit."""
    max_workspace_mb: Annotated[
        Count, Aliases(env=("TERMINAL_CONTAINER_DISK",), keys=("terminal.container_disk",))
    ] = 10_000
    """Maximum size of all files of a sandbox, in megabytes; 0 for no limit."""
    container_cpu: Annotated[
        float, msgspec.Meta(ge=0), Aliases(env=("TERMINAL_CONTAINER_CPU",))
    ] = 0
    """Number of processors that a container may use; 0 for no limit."""
    idle_seconds: Annotated[
        Seconds,
        Aliases(env=("TERMINAL_LIFETIME_SECONDS",), keys=("terminal.lifetime_seconds",)),
    ] = 300.0
    """Number of seconds after which an unused container is stopped. Its files are kept."""
    docker_program: Annotated[str, Aliases(env=("HERMES_DOCKER_BINARY",))] = ""
    """The container engine: `docker`, `podman` or the path of the program; empty for the first
    engine that works."""
    docker_image: Annotated[str, Aliases(env=("TERMINAL_DOCKER_IMAGE",))] = (
        "docker.io/library/python:3-slim"
    )
    """The image for the containers of the backend `docker`. The image must contain `sh`, `grep` and
    `sleep`."""
    docker_volumes: tuple[str, ...] = ()
    """More mounts of `docker`, each as `/path:/path/in/the/container`, with `:ro` at the end if
    commands may not write there."""
    docker_extra_args: tuple[str, ...] = ()
    """More arguments for the command that starts a container. They can weaken its isolation."""
    singularity_image: Annotated[str, Aliases(env=("TERMINAL_SINGULARITY_IMAGE",))] = (
        "docker://docker.io/library/python:3-slim"
    )
    """The image of `singularity`: a file, or an address such as `docker://python:3-slim`."""
    ssh_host: Annotated[str, Aliases(env=("TERMINAL_SSH_HOST",))] = ""
    """The machine on which `ssh` runs commands."""
    ssh_user: Annotated[str, Aliases(env=("TERMINAL_SSH_USER",))] = ""
    """The account on the machine `ssh_host`; empty for the account in the configuration of the
    program `ssh`."""
    ssh_port: Annotated[int, msgspec.Meta(ge=1, le=65_535), Aliases(env=("TERMINAL_SSH_PORT",))] = (
        22
    )
    """The port of the SSH server."""
    ssh_key_file: Annotated[str, Aliases(env=("TERMINAL_SSH_KEY",), keys=("terminal.ssh_key",))] = (
        ""
    )
    """The file of the private key; empty for the keys that `ssh` finds itself."""
    ssh_folder: str = "hermes"
    """The folder on the machine `ssh_host` in which each sandbox has its workspace. The path is
    absolute, or relative to the home folder of the account."""
    ssh_options: tuple[str, ...] = ()
    """More options of `ssh`, such as `ProxyJump=gate.example.org`."""

    def __repr__(self) -> str:
        return f"TerminalSettings(backend={self.backend!r})"
