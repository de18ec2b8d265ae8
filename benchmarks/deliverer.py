"""`python -m benchmarks.deliverer`: delivers updates to a webhook at an even rate, in a process of
its own."""

import sys
import time
from collections import defaultdict
from pathlib import Path

import anyio
import msgspec

from benchmarks.client import Client, encode


class PlannedDelivery(msgspec.Struct, frozen=True, kw_only=True):
    chat: int
    token: str
    body: bytes


class DeliveryResult(msgspec.Struct, frozen=True, kw_only=True):
    chat: int
    token: str
    status: int
    seconds: float


async def deliver_all(
    port: int, secret: str, planned: list[PlannedDelivery], seconds: float
) -> list[DeliveryResult]:
    """Starts the deliveries at even intervals over `seconds` seconds. As in Telegram, the updates
    of one chat are delivered one after the other."""
    locks: dict[int, anyio.Lock] = defaultdict(anyio.Lock)
    idle: list[Client] = []
    results: list[DeliveryResult] = []
    headers = {"X-Telegram-Bot-Api-Secret-Token": secret}

    async def deliver(one: PlannedDelivery) -> None:
        request = encode("POST", "/telegram", headers, one.body)
        async with locks[one.chat]:
            client = idle.pop() if idle else Client(port)
            answer = await client.ask(request)
            idle.append(client)
        results.append(
            DeliveryResult(
                chat=one.chat, token=one.token, status=answer.status, seconds=answer.total
            )
        )

    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        for number, one in enumerate(planned):
            due = began + number * seconds / len(planned)
            await anyio.sleep(max(due - time.perf_counter(), 0.0))
            group.start_soon(deliver, one)
    for client in idle:
        client.close()
    return results


def main() -> None:
    port, secret, seconds, source, result = sys.argv[1:]
    planned = msgspec.json.decode(Path(source).read_bytes(), type=list[PlannedDelivery])
    uvloop = {"use_uvloop": True}
    found = anyio.run(
        deliver_all, int(port), secret, planned, float(seconds), backend_options=uvloop
    )
    Path(result).write_bytes(msgspec.json.encode(found))


if __name__ == "__main__":
    main()
