"""Runs sudo for the commands of the backend `local`, so that no command gets the password.

A gateway runs this module as a script, which needs only the standard library. Stdin is a socket, on
which the gateway writes a line of JSON with the password. Stdout is a listening Unix socket. The
server ends when the gateway closes its end of stdin.

A client (`sudo_client`) sends its working directory and its three standard streams as descriptors,
and then a line of JSON with the arguments. The server runs sudo twice: the first call checks the
password, which it reads from stdin, and runs no command. The second call runs the command of the
client and needs no password, because sudo remembers the parent process of the first call. So no
command can read the password from its stdin. The answer is the exit code.
"""

import contextlib
import json
import os
import select
import signal
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypedDict

from hermes.boundary.execution.process_tree import forbid_inspection

FAILED = 1
_CREDENTIALS = struct.Struct("3i")


class SudoFields(TypedDict):
    """The fields of the JSON line that the gateway sends."""

    program: str
    password: str


def main() -> None:
    """Serves clients until the gateway closes stdin."""
    forbid_inspection()
    control = socket.socket(fileno=os.dup(0))
    listener = socket.socket(fileno=os.dup(1))
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.chdir("/")
    fields: SudoFields = json.loads(read_line(control))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(listener, select.POLLIN)
    while control.fileno() not in (ready := [one for one, _ in poll.poll()]):
        if ready:
            client, _ = listener.accept()
            if not os.fork():
                control.close()
                listener.close()
                _serve(client, fields)
            client.close()


def read_line(source: socket.socket) -> bytes:
    """Reads until the end of the line, or until the other side closes the socket."""
    line = b""
    while not line.endswith(b"\n") and (piece := source.recv(65536)):
        line += piece
    return line


def _serve(client: socket.socket, fields: SudoFields) -> NoReturn:
    """Runs sudo for one client."""
    code = FAILED
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid, user, _ = _CREDENTIALS.unpack(
            client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        if user == os.geteuid():
            environment = _environment_of(pid)
            _, (folder, *streams), _, _ = socket.recv_fds(client, 1, 4)
            arguments: list[str] = json.loads(read_line(client))
            os.fchdir(folder)
            code = _check_password(client, fields, streams[2])
            if not code:
                command = [fields["program"], "-n", *arguments]
                code = _run(client, command, environment, streams)
    finally:
        with contextlib.suppress(OSError):
            client.sendall(b"%d\n" % code)
        os._exit(0)


def _environment_of(pid: int) -> dict[bytes, bytes]:
    with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123  # without pathlib, it starts sooner
        entries = file.read().split(b"\0")
    pairs = (entry.partition(b"=") for entry in entries if b"=" in entry)
    return {name: value for name, _, value in pairs if name}


def _check_password(client: socket.socket, fields: SudoFields, errors: int) -> int:
    reading, writing = os.pipe()
    os.write(writing, os.fsencode(fields["password"]) + b"\n")
    os.close(writing)
    # These options run no command, so nothing but sudo reads the password.
    command = [fields["program"], "-S", "-v", "-p", ""]
    return _run(client, command, {b"PATH": os.fsencode(os.defpath)}, (reading, 1, errors))


def _run(
    client: socket.socket,
    command: list[str],
    environment: Mapping[bytes, bytes],
    streams: Sequence[int],
) -> int:
    """Runs the program until it ends or the client ends. Returns the exit code."""
    actions = [(os.POSIX_SPAWN_DUP2, stream, number) for number, stream in enumerate(streams)]
    pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
    poll, ended = select.poll(), os.pidfd_open(pid)
    poll.register(ended, select.POLLIN)
    poll.register(client, select.POLLIN)
    while ended not in [one for one, _ in poll.poll()]:
        poll.unregister(client)
        # If sudo runs as another user, this process can't signal it. Then the command continues
        # until it ends by itself.
        with contextlib.suppress(PermissionError):
            os.kill(pid, signal.SIGTERM)
    os.close(ended)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code if code >= 0 else 128 - code
