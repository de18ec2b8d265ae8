"""Several gateway processes on one store, and a client that sends its requests to these processes
in turn."""

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import msgspec

from hermes.testing.gateway_process import GatewayProcess, SharedStore, gateway_process
from hermes.testing.service import SERVICE_KEY
from hermes.types.value import Value

NEXT_NODE_SECONDS = 0.05
SILENT_SECONDS = 20.0
"""If a node sends nothing for this many seconds, not even an SSE comment, the client considers it
dead."""
RUN_END = "run."
"""Prefix of the names of the events that end a run."""


@asynccontextmanager
async def cluster(
    folder: Path, store: SharedStore, model_url: str, count: int
) -> AsyncIterator[list[GatewayProcess]]:
    """Yields `count` started gateways, each with its own home. The gateways are killed when the
    block ends."""
    async with AsyncExitStack() as opened:
        yield [
            await opened.enter_async_context(
                gateway_process(folder / f"node{number}", model_url, store=store)
            )
            for number in range(count)
        ]


class RunFrame(Value):
    """A server-sent event of a run."""

    id: int
    name: str
    delta: str = ""
    output: str = ""
    from_seq: int = 0


class _Data(msgspec.Struct):
    delta: str = ""
    output: str = ""
    from_seq: int = 0


class ClusterClient:
    """Holds a conversation with the nodes. Each request goes to the next node."""

    def __init__(self, nodes: Sequence[GatewayProcess], session: str, first: int = 0) -> None:
        self._nodes = itertools.cycle([*nodes[first:], *nodes[:first]])
        self.session = session
        self.run = ""
        """The id of the last run that a node has accepted."""

    async def ask(self, text: str) -> list[RunFrame]:
        """Sends the text, and returns the events of the run that answers it. The text is also part
        of the idempotency key, so each text can be sent only once in a session."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=SILENT_SECONDS)
        headers = {"Authorization": f"Bearer {SERVICE_KEY}"}
        async with aiohttp.ClientSession(headers=headers, timeout=timeout) as http:
            run = self.run = await self._started(http, text)
            found: list[RunFrame] = []
            while not found or not found[-1].name.startswith(RUN_END):
                try:
                    await self._read(http, run, found)
                except (OSError, aiohttp.ClientError, TimeoutError):
                    await anyio.sleep(NEXT_NODE_SECONDS)
            return found

    async def _started(self, http: aiohttp.ClientSession, text: str) -> str:
        """Sends the request to one gateway (node) after the other until a gateway accepts the
        request. Returns the id of the run."""
        said = [{"role": "user", "content": text}]
        body = msgspec.json.encode({"model": "main", "stream": True, "messages": said})
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": f"{self.session} {text}",
            "X-Hermes-Session-Id": self.session,
        }
        while True:
            url = f"{next(self._nodes).base_url}/chat/completions"
            try:
                # Only the head of the response is read. The events are read later, over another
                # connection, as if the client had lost this one.
                async with http.post(url, data=body, headers=headers) as response:
                    if response.status == 200:
                        return response.headers["x-hermes-run-id"]
                    assert response.status == 503, await response.text()
            except (OSError, aiohttp.ClientError, TimeoutError):
                pass
            await anyio.sleep(NEXT_NODE_SECONDS)

    async def _read(self, http: aiohttp.ClientSession, run: str, found: list[RunFrame]) -> None:
        """Reads the events of the run from the next node, beginning after the last event in
        `found`."""
        url = f"{next(self._nodes).base_url}/runs/{run}/events"
        last = str(found[-1].id) if found else "0"
        async with http.get(url, headers={"Last-Event-ID": last}) as response:
            if response.status != 200:
                assert response.status in (404, 503), await response.text()
                raise aiohttp.ClientError(f"status {response.status}")
            rest = b""
            async for data in response.content.iter_any():
                *frames, rest = (rest + data).split(b"\n\n")
                found += filter(None, map(_frame, frames))


def _frame(frame: bytes) -> RunFrame | None:
    """Returns the event of a frame, or None for a comment."""
    lines = frame.decode().splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line and line[0] != ":")
    if "data" not in fields:
        return None
    data = msgspec.json.decode(fields["data"], type=_Data)
    return RunFrame(
        id=int(fields["id"]),
        name=fields["event"],
        delta=data.delta if fields["event"] == "message.delta" else "",
        output=data.output,
        from_seq=data.from_seq,
    )


def shown_text(frames: Sequence[RunFrame]) -> str:
    """Returns the text that a reader has after all these frames: the deltas without the parts that
    a later frame discards."""
    kept: list[RunFrame] = []
    for frame in frames:
        if frame.from_seq:
            kept = [one for one in kept if one.id < frame.from_seq]
        kept.append(frame)
    return "".join(frame.delta for frame in kept)
