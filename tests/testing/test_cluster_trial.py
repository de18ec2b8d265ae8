"""The gateways that `make cluster` starts answer requests."""

import re
import socket
import subprocess
import sys

import psutil
import pytest

from hermes.testing.bare import request


@pytest.mark.slow
async def test_three_gateways_answer_behind_one_address() -> None:
    command = [sys.executable, "-u", "-m", "hermes.testing.cluster_trial", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as trial:
        assert trial.stdout is not None
        try:
            shown = ""
            while "Ctrl-C" not in shown:
                line = trial.stdout.readline()
                assert line, shown
                shown += line
            assert len(re.findall(r"gateway \d: port \d+, pid \d+", shown)) == 3
            nats = re.search(r"NATS on port (\d+)", shown)
            assert nats is not None
            with socket.create_connection(("127.0.0.1", int(nats[1]))) as bus:
                assert bus.recv(4) == b"INFO"
            found = re.search(r"http://127.0.0.1:(\d+)/v1", shown)
            assert found is not None
            for _ in range(3):
                assert (await request(int(found[1]), "GET", "/health"))[0] == 200
            trial.terminate()
            assert trial.stdout.read().endswith("stopped\n")
        finally:
            trial.kill()
    pids = [int(pid) for pid in re.findall(r"pid (\d+)", shown)]
    assert not any(psutil.pid_exists(pid) for pid in pids)
