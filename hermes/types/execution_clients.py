"""The options of execution backends that run commands in containers or on other machines."""

from collections.abc import Mapping

from hermes.types.value import Value


class ContainerOptions(Value):
    """The options of the backends `docker` and `singularity`."""

    program: str = ""
    """The container engine, as a name or a path; empty for the first engine that works."""
    image: str = ""
    """The image of the containers of `docker`."""
    singularity_image: str = ""
    """The image of the containers of `singularity`, as a file or an address."""
    volumes: tuple[str, ...] = ()
    """Folders and files that commands in containers of `docker` can see, in addition to the
    workspace. The form of an item is `path:path in the container`. With `:ro` at the end, the
    folder or file is read-only."""
    arguments: tuple[str, ...] = ()
    """Additional arguments of the command that starts a container."""
    cpus: float = 0.0
    """Number of processors that a container may use; 0 for no limit."""
    idle_seconds: float = 300.0
    """An unused container is stopped after this number of seconds."""


class SshOptions(Value):
    """The options of the backend `ssh`."""

    host: str = ""
    user: str = ""
    """The name of the account; empty for the name that the settings of `ssh` give."""
    port: int = 22
    key: str = ""
    """The file of the private key; empty for the keys that `ssh` finds itself."""
    folder: str = "hermes"
    """The folder on the other machine in which each sandbox has its workspace. The path is
    absolute, or relative to the home folder of the account."""
    options: tuple[str, ...] = ()
    """More options of `ssh`, as `Name=value`."""


class ClientOptions(Value):
    """The options of the backends that run commands through a program of this machine, such as
    `docker` or `ssh`."""

    environment: Mapping[str, str] = {}
    """The environment variables that the program gets. Commands do not see these variables."""
    containers: ContainerOptions = ContainerOptions()
    ssh: SshOptions = SshOptions()
