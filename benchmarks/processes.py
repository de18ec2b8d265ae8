"""Measures the resources that the process trees of the benchmark use, and ends these processes by
their pids."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

STOP_SECONDS = 8.0
TREES: list["Tree"] = []
"""All running process trees of the benchmark."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    rss: float
    """Memory in megabytes."""
    threads: int


def cpu_of(pid: int) -> float:
    """Returns the seconds of CPU time that a process and all its children have used, including
    children that have ended."""
    spent = 0.0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        for one in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = one.cpu_times()
                spent += times.user + times.system + times.children_user + times.children_system
    return spent


class Tree:
    """The process of a command, and all its child processes."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as out:
            self._popen = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.log = log
        self.root = psutil.Process(self._popen.pid)
        TREES.append(self)

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def members(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            return [self.root, *self.root.children(recursive=True)]
        return []

    def cpu(self) -> float:
        """Returns the seconds of CPU that the tree has used."""
        return cpu_of(self.root.pid)

    def usage(self) -> Usage:
        rss, threads = 0, 0
        for one in self.members():
            with contextlib.suppress(psutil.Error):
                rss += one.memory_info().rss
                threads += one.num_threads()
        return Usage(rss=rss / 2**20, threads=threads)

    def established(self, port: int) -> int:
        """Returns the number of open connections of clients to the port."""
        return sum(
            connection.status == psutil.CONN_ESTABLISHED and connection.laddr[1] == port
            for one in self.members()
            for connection in one.net_connections("tcp")
        )

    def kill(self) -> None:
        """Ends the command with SIGKILL. Its child processes keep running."""
        if self in TREES:
            TREES.remove(self)
        self._popen.kill()
        self._popen.wait(STOP_SECONDS)

    def stop(self) -> None:
        """Ends the command with SIGTERM, and kills the processes that are still running after a
        while."""
        if self in TREES:
            TREES.remove(self)
        members = self.members()
        with contextlib.suppress(psutil.Error):
            self.root.terminate()
        _, left = psutil.wait_procs(members, timeout=STOP_SECONDS)
        for one in left:
            with contextlib.suppress(psutil.Error):
                one.kill()
        self._popen.wait(STOP_SECONDS)


class Others:
    """Measures the CPU that other processes of the machine use between two moments."""

    def __init__(self) -> None:
        self._busy, self._ours = self._read()

    @staticmethod
    def _read() -> tuple[float, float]:
        times, own = psutil.cpu_times(), os.times()
        busy = sum(times) - times.idle
        for waiting in ("iowait", "steal", "guest", "guest_nice"):
            busy -= times._asdict().get(waiting, 0.0)
        return busy, own.user + own.system + sum(tree.cpu() for tree in TREES)

    def seconds(self) -> float:
        """Returns the seconds of CPU that processes outside of the benchmark have used since this
        object was created."""
        busy, ours = self._read()
        return busy - self._busy - ours + self._ours


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def file_system(folder: Path) -> str:
    """Returns the type of the file system of the folder."""
    mounts = {Path(one.mountpoint): one.fstype for one in psutil.disk_partitions(all=True)}
    return next((mounts[one] for one in (folder, *folder.parents) if one in mounts), "unknown")
