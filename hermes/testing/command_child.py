"""A process that runs a command in a sandbox until a test kills the process, as if a gateway were
killed."""

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec

from hermes.boundary.execution.docker import DockerBackend
from hermes.boundary.execution.ssh import SshBackend
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.types.execution import BackendOptions, ExecutionBackend, SandboxScope


class HandleOnOutput(RecordedCommand):
    """Prints the handle of the command as soon as the command starts."""

    async def started(self, handle: str) -> None:
        sys.stdout.write(f"{handle}\n")
        sys.stdout.flush()


def command_line(
    options: BackendOptions, scope: SandboxScope, command: str, *scripts: str
) -> list[str]:
    """Returns the command line of a process that runs `command`. In this process, `scripts` are the
    files that a person has approved together with the command."""
    texts = [msgspec.json.encode(one, enc_hook=str).decode() for one in (options, scope)]
    return [sys.executable, "-m", __name__, *texts, command, *scripts]


async def run(
    options: BackendOptions, scope: SandboxScope, command: str, scripts: Sequence[str]
) -> None:
    kind = SshBackend if options.clients.ssh.host else DockerBackend
    backend: ExecutionBackend = kind(options)
    sandbox = await backend.open(scope)
    place = await sandbox.locate(".", scripts)
    await sandbox.run(command, HandleOnOutput(), seconds=600.0, place=place)


def main() -> None:
    given, scope, command, *scripts = sys.argv[1:]
    options = msgspec.json.decode(
        given, type=BackendOptions, dec_hook=lambda kind, value: Path(value)
    )
    anyio.run(run, options, msgspec.json.decode(scope, type=SandboxScope), command, scripts)


if __name__ == "__main__":
    main()
