"""Lets the commands of the backend `local` use sudo, without giving them the password."""

import json
import os
import shlex
import shutil
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from hermes.boundary.execution import sudo_client, sudo_server
from hermes.boundary.execution.scripts import script
from hermes.boundary.execution.supervised import ServerProcess
from hermes.types.identity import new_id

SUDO_FOLDERS = "/usr/bin:/bin:/usr/local/bin:/run/wrappers/bin"
"""The folders in which the program `sudo` is looked for. Other folders in PATH are left out,
because a command could put its own program there."""
ADDRESS_VARIABLE = "HERMES_SUDO"
"""The environment variable that tells commands the address of the server that runs sudo. The
address is the name of an abstract Unix socket."""


class SudoAccess:
    """Lets commands use sudo through a server process, which knows the password. The server is
    started when the first command starts."""

    def __init__(self, program: str, password: str, folder: Path) -> None:
        """`folder` is the folder for the program that commands find instead of sudo."""
        self.password = password
        self._program = program
        self._folder = folder
        self._address = ""
        self._server: ServerProcess | None = None
        self._lock = threading.Lock()

    def environment(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the environment, changed so that a command finds sudo. May block."""
        with self._lock:
            if self._server is None:
                self._start()
        path = f"{self._folder}:{environment.get('PATH', os.defpath)}"
        return {**environment, "PATH": path, ADDRESS_VARIABLE: self._address}

    def close(self) -> None:
        """Ends the server. Background commands continue, but can't use sudo any more."""
        if self._server is not None:
            self._server.end()
            self._server = None

    def _start(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        program = self._folder / "sudo"
        fresh = self._folder / f"sudo.{new_id()}"
        run = shlex.join(script(sudo_client))
        fresh.write_text(f'#!/bin/sh\nexec {run} "${ADDRESS_VARIABLE}" "$@"\n')
        fresh.chmod(0o700)
        fresh.replace(program)
        self._address = f"hermes-sudo-{new_id()}"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"\0{self._address}")
            listener.listen()
            self._server = ServerProcess(sudo_server, listener)
        fields = {"program": self._program, "password": self.password}
        self._server.requests.sendall(json.dumps(fields).encode() + b"\n")


def sudo_access(password: str, folder: Path) -> SudoAccess | None:
    """Returns an object that lets commands use sudo; None if there is no password or no sudo on
    this machine."""
    program = shutil.which("sudo", path=SUDO_FOLDERS) if password else None
    if program is None or sys.platform != "linux" or Path(program).stat().st_uid:
        return None
    return SudoAccess(program, password, folder)
