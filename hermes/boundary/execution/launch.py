"""Describes how a command is started: its arguments, its environment and its restrictions."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec.structs import asdict, replace

from hermes.boundary.execution.command_place import PlaceCheck, ScriptFiles
from hermes.boundary.execution.restrictions import RestrictionFields
from hermes.types.execution import CommandLimits, CommandPlace
from hermes.types.value import Value


class SudoProvider(Protocol):
    """Lets commands use sudo, without giving them the password."""

    @property
    def password(self) -> str: ...

    def environment(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the environment, changed so that a command finds sudo."""
        ...


class LandlockRules(Value):
    """The paths that a command can use under Landlock."""

    readable: tuple[str, ...]
    """Files and folders that can be read and executed."""
    listable: tuple[str, ...]
    """Folders whose entries can be listed."""
    writable: tuple[str, ...]
    """Files and folders that can be read, executed and changed."""


class Restrictions(Value):
    """The restrictions that a supervisor applies to a command."""

    limits: CommandLimits | None = None
    folders: tuple[str, ...] = ()
    """The folders whose size is limited."""
    landlock: LandlockRules | None = None
    seccomp: str = ""
    """The seccomp filter, in base64; empty if there is no filter."""
    wrapped: bool = False
    """Whether the executed program is bubblewrap. Bubblewrap installs the filter itself, and a
    SIGTERM for the command must not end the two processes of bubblewrap itself."""
    group: str = ""
    """The control group in which each command gets a subgroup; empty if there is no such group."""

    def fields(self) -> RestrictionFields:
        """Returns the restrictions in the form that supervisors read."""
        landlock = self.landlock
        return {
            "limits": asdict(self.limits) if self.limits else None,
            "folders": self.folders,
            "landlock": None
            if landlock is None
            else {
                "readable": landlock.readable,
                "listable": landlock.listable,
                "writable": landlock.writable,
            },
            "seccomp": self.seccomp,
            "wrapped": self.wrapped,
            "group": self.group,
        }

    def text(self) -> str:
        """Returns the fields as JSON."""
        return json.dumps(self.fields())


NO_RESTRICTIONS = Restrictions()


class CommandLaunch(Value):
    """A command that is ready to start."""

    arguments: tuple[str, ...]
    """The program with its whole path, and its arguments."""
    environment: Mapping[str, str]
    folder: Path
    """The folder on this machine in which the program starts."""
    restrictions: Restrictions = NO_RESTRICTIONS
    sandbox: str = ""
    """The id of the sandbox in which the command runs; empty if it runs in no sandbox."""
    secrets: tuple[str, ...] = ()
    """Values that are redacted in the output of a background command."""
    check: Callable[[], None] = lambda: None
    """Called right before the command begins. Raises ToolFailed if the command must not begin."""
    input: bytes = b""
    """The first input of a background command. The command gets this input even if the gateway
    ends."""
    handle: str = ""
    """The handle of the command on another machine; empty for a command of this machine."""


class Launcher(Protocol):
    """Decides how the commands of a sandbox are started."""

    def locate(self, folder: Path, scripts: Sequence[str]) -> CommandPlace:
        """Returns the place (backend, folder, variables and scripts) for a command that begins in a
        folder of this machine and runs these scripts."""
        ...

    def launch(
        self, command: str, folder: Path, *, background: bool, place: CommandPlace | None = None
    ) -> CommandLaunch:
        """Returns everything that is needed to start a shell command in a folder of this machine.
        If `place` is given, the command runs only if its folder, environment and scripts are still
        the ones in `place`. Raises ToolFailed if commands can't run."""
        ...

    def shell(self) -> tuple[str, ...]:
        """Returns the command line of an interactive shell."""
        ...


class ShellLauncher:
    """Starts commands in a shell, without restrictions."""

    def __init__(
        self,
        shell: str,
        environment: Mapping[str, str],
        secrets: Mapping[str, str] | None = None,
        sudo: SudoProvider | None = None,
    ) -> None:
        """`secrets` are further environment variables of commands, whose values are redacted in the
        output."""
        self._shell = shell
        self._environment = {**environment, **(secrets or {})}
        self._sudo = sudo
        self._secrets = (*(secrets or {}).values(), *((sudo.password,) if sudo else ()))
        files = ScriptFiles(environment.get("HOME", "/"))
        self._place_check = PlaceCheck("local", environment, files)

    def locate(self, folder: Path, scripts: Sequence[str]) -> CommandPlace:
        return self._place_check.locate(str(folder), scripts)

    def launch(
        self, command: str, folder: Path, *, background: bool, place: CommandPlace | None = None
    ) -> CommandLaunch:
        sudo, environment = self._sudo, self._environment
        launch = CommandLaunch(
            arguments=(self._shell, "-c", command),
            environment=sudo.environment(environment) if sudo else environment,
            folder=folder,
            secrets=self._secrets,
        )
        if place is None:
            return launch
        return replace(launch, check=partial(self._place_check.check, place, str(folder)))

    def shell(self) -> tuple[str, ...]:
        return self._shell, "-i"


def encoded(program: bytes) -> str:
    """Returns a seccomp filter in the form of `Restrictions.seccomp`."""
    return base64.b64encode(program).decode()
