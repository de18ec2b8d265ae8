"""Runs small Python programs in forks of one process, which has imported their modules already.

A test of a remote sandbox runs dozens of these programs, and most of their time is the start of
Python. This module is run as a script. It reads requests from its standard input, which is a
socket. A request is a JSON object with the code and the folder of a program. The client sends the
file descriptors of the program's standard streams with the request. The only command-line argument
of the script is the folder with Hermes's modules.
"""

import contextlib
import importlib
import json
import os
import socket
import sys
from typing import Any, NoReturn

LARGEST_REQUEST = 100_000


def main() -> None:
    sys.path.append(sys.argv[1])
    importlib.import_module("hermes.boundary.execution.remote_agent")
    for name in ("contextlib", "io", "tempfile", "zipfile"):
        importlib.import_module(name)
    with socket.socket(fileno=0) as requests:
        while True:
            data, streams, *_ = socket.recv_fds(requests, LARGEST_REQUEST, 3)
            if not data:
                return
            if not os.fork():
                requests.close()
                _run(json.loads(data), streams)
            for stream in streams:
                os.close(stream)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    """Programs that have ended are reaped."""


def _run(request: dict[str, Any], streams: list[int]) -> NoReturn:
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
        os.close(stream)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    os.chdir(request["folder"])
    try:
        exec(request["code"], {"__name__": "__main__"})  # noqa: S102  # its purpose
    except SystemExit:
        sys.stdout.flush()
    finally:
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
