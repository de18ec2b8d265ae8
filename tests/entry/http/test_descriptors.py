"""Client connections are limited, so that file descriptors remain for other purposes."""

import resource
import socket
from pathlib import Path

import psutil
import pytest

from hermes.entry.http.descriptors import (
    MOST_DESCRIPTORS,
    RESERVED_DESCRIPTORS,
    most_connections,
    raise_descriptor_limit,
)
from hermes.testing.bare import request
from hermes.testing.gateway_process import gateway_process
from hermes.testing.model import FakeModel
from hermes.testing.running import until

HELLO = b'{"model":"main","messages":[{"role":"user","content":"hello"}]}'


def test_the_limit_leaves_descriptors_for_the_store_and_for_models() -> None:
    raise_descriptor_limit()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = most_connections()
    assert most > 0
    assert 2 * most + RESERVED_DESCRIPTORS <= min(soft, MOST_DESCRIPTORS)


def test_the_soft_limit_is_raised_to_the_hard_limit_and_never_lowered() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        raise_descriptor_limit()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert soft == min(hard, MOST_DESCRIPTORS)
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
@pytest.mark.parametrize("opening", [b"", b"G"], ids=["idle", "half a header"])
async def test_new_clients_can_connect_after_more_connections_than_descriptors(
    tmp_path: Path, opening: bytes
) -> None:
    raise_descriptor_limit()
    idle: list[socket.socket] = []
    async with (
        FakeModel() as model,
        gateway_process(tmp_path, model.base_url, descriptors=1024) as gateway,
    ):
        process = psutil.Process(gateway.pid)
        try:
            for _ in range(1200):
                client = socket.create_connection(("127.0.0.1", gateway.port))
                client.sendall(opening)
                idle.append(client)
            for _ in range(3):
                status, _, _ = await request(
                    gateway.port, "POST", "/v1/chat/completions", HELLO, x_hermes_session_id="s"
                )
                assert status == 200
            await until(lambda: process.num_fds() < 1024 - RESERVED_DESCRIPTORS)
        finally:
            for client in idle:
                client.close()
