"""Connects the network of a container with the proxy of its sandbox.

The module is run as a script and imports only the standard library and other modules of this
package. The script starts a process that listens on 127.0.0.1 in the network of the container, and
then exits. That process ends with the container. The image of the container needs no program for
this.
"""

import ctypes
import errno
import os
import socket
import sys
from typing import NoReturn

from hermes.boundary.execution.forwarder import (
    MOST_CONNECTIONS,
    PROXY_PORT,
    forward,
    join_namespaces,
    leave_descriptors,
)


def main() -> NoReturn:
    """Starts the forwarder, unless there is one already. Exits with 0 when commands can use it. The
    arguments are the folder of the sockets, the name of the sandbox, and the id of the first
    process of the container."""
    folder, sandbox, process = sys.argv[1:]
    listening, told = os.pipe()
    if os.fork():
        os.close(told)
        os._exit(0 if os.read(listening, 1) else 1)
    try:
        leave_descriptors({told})
        os.setsid()
        os.chdir(folder)
        container = os.pidfd_open(int(process))
        join_namespaces(ctypes.CDLL(None, use_errno=True), int(process))
        listener = _listener()
        os.write(told, b"l")
        os.close(told)
        if listener:
            forward(listener, sandbox, container)
    finally:
        os._exit(1)


def _listener() -> socket.socket | None:
    """Returns the listener; None if another forwarder listens already."""
    try:
        return socket.create_server(("", PROXY_PORT), backlog=MOST_CONNECTIONS)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return None
