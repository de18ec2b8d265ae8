"""Replaces the program sudo in the commands of the backend `local`: it lets `sudo_server` run sudo.

This module is run as a script, which needs only the standard library. Its arguments are the name of
the server's abstract Unix socket, and the arguments of sudo.
"""

import json
import os
import socket
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Lets the gateway run sudo, and exits with the exit code of sudo."""
    address, *arguments = sys.argv[1:]
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(f"\0{address}")
            folder = os.open(".", os.O_RDONLY)
            socket.send_fds(server, [b"+"], [folder, 0, 1, 2])
            server.sendall(json.dumps(arguments).encode() + b"\n")
            code = server.recv(16)
    except OSError:
        sys.exit("sudo: the gateway that started this command has ended")
    sys.exit(int(code or b"1"))
