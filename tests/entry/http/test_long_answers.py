"""A long plain answer is complete for every client, and slow readers cost little memory."""

import socket
from pathlib import Path

import msgspec
import psutil
import pytest

from hermes.entry.http.descriptors import raise_descriptor_limit
from hermes.testing.bare import request
from hermes.testing.gateway_process import gateway_process
from hermes.testing.model import FakeModel
from hermes.testing.running import until
from hermes.testing.scripted import is_complete
from hermes.testing.service import SERVICE_KEY, serving

PATH = "/v1/chat/completions"


def body(said: str, **fields: object) -> bytes:
    messages = [{"role": "user", "content": said}]
    return msgspec.json.encode({"model": "main", "messages": messages, **fields})


def text_of(answer: bytes) -> str:
    text: str = msgspec.json.decode(answer)["choices"][0]["message"]["content"]
    return text


@pytest.mark.parametrize("tokens", [100, 12_000])
async def test_an_answer_of_any_length_is_complete_and_so_is_its_repeat(
    tmp_path: Path, tokens: int
) -> None:
    asked = body(f"tokens:{tokens}")
    async with serving(tmp_path) as service:
        first = await request(service.port, "POST", PATH, asked, idempotency_key="one")
        again = await request(service.port, "POST", PATH, asked, idempotency_key="one")
    assert [first[0], again[0]] == [200, 200]
    assert first[1]["content-type"] == "application/json"
    assert first[1]["x-hermes-run-id"] == again[1]["x-hermes-run-id"]
    assert is_complete(text_of(first[2]))
    assert text_of(first[2]) == text_of(again[2])
    assert msgspec.json.decode(first[2])["usage"]["completion_tokens"] > 0


@pytest.mark.slow
async def test_slow_readers_of_a_plain_answer_cost_little_memory(tmp_path: Path) -> None:
    raise_descriptor_limit()
    readers: list[socket.socket] = []
    asked = body("tokens:120000")
    head = (
        f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {SERVICE_KEY}\r\n"
        f"idempotency-key: one\r\ncontent-length: {len(asked)}\r\n\r\n"
    )
    async with FakeModel() as model, gateway_process(tmp_path, model.base_url) as gateway:
        _, _, answer = await request(gateway.port, "POST", PATH, asked, idempotency_key="one")
        assert len(answer) > 800_000
        process = psutil.Process(gateway.pid)
        before, descriptors = process.memory_info().rss, process.num_fds()
        try:
            for _ in range(150):
                reader = socket.socket()
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                # With the larger segments of the loopback interface, the kernel would buffer
                # megabytes for each reader.
                reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)
                readers.append(reader)
                reader.connect(("127.0.0.1", gateway.port))
                reader.sendall(head.encode() + asked)
            await until(lambda: process.num_fds() >= descriptors + len(readers), within=30)
            peak = 0
            for _ in range(100):
                assert (await request(gateway.port, "GET", "/health"))[0] == 200
                peak = max(peak, process.memory_info().rss)
            # One copy of the answer for each reader would cost 120 MB.
            assert peak - before < 40_000_000
        finally:
            for reader in readers:
                reader.close()
