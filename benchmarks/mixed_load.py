"""Runs clients of every kind. They repeat each request until it is answered, even if the gateway is
restarted meanwhile."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from benchmarks.client import Answer, Client, encode
from benchmarks.load import PATH, SESSION_HEADER
from hermes.testing.scripted import is_complete

PAUSE_SECONDS = 0.15
"""Seconds between two requests of a client."""
AGAIN_SECONDS = 0.2
PATIENCE = 90.0
"""Seconds within which a request must be answered, including all its repeats."""
SESSIONS = 20
"""Number of conversations that the clients use at the same time. After `SESSION_TURNS` messages in
each conversation, new conversations replace these conversations."""
SESSION_TURNS = 30
TRANSIENT = frozenset({0, 429, 500, 502, 503})
"""Statuses after which a request is repeated. 0 means a lost connection."""
TOOL = {
    "type": "function",
    "function": {
        "name": "shop",
        "description": "Looks a product up.",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    },
}
Said = Sequence[object]


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    tool_calls: tuple[msgspec.Raw, ...] = ()


class _Choice(msgspec.Struct):
    message: _Delta = _Delta()
    delta: _Delta = _Delta()


class _Reply(msgspec.Struct):
    choices: list[_Choice] = []


class _Call(msgspec.Struct):
    id: str


class MixedLoad:
    """Plain and streamed requests, sessions, client tools and commands, all at the same time."""

    def __init__(self, port: int, key: str) -> None:
        self.turns = 0
        """Number of requests that were answered completely."""
        self.failures: list[str] = []
        """Descriptions of the requests that were not answered completely."""
        self._port = port
        self._key = key
        self._numbers = itertools.count(1)

    async def run(self) -> None:
        """Sends requests until the task is cancelled."""
        kinds: Sequence[Callable[[Client], Awaitable[None]]] = (
            self._plain,
            self._streamed,
            self._in_session,
            self._with_client_tool,
            self._with_command,
        )
        async with asyncio.TaskGroup() as group:
            for kind in kinds:
                group.create_task(self._repeat(kind))

    async def _repeat(self, kind: Callable[[Client], Awaitable[None]]) -> None:
        client = Client(self._port)
        try:
            while True:
                await kind(client)
                await asyncio.sleep(PAUSE_SECONDS)
        finally:
            client.close()

    async def _plain(self, client: Client) -> None:
        await self._check(client, [{"role": "user", "content": "tokens:40"}])

    async def _streamed(self, client: Client) -> None:
        said = [{"role": "user", "content": "tokens:80 delay:0.005"}]
        await self._check(client, said, stream=True)

    async def _in_session(self, client: Client) -> None:
        number = next(self._numbers)
        life, place = divmod(number, SESSIONS * SESSION_TURNS)
        session = f"soak-{life}-{place % SESSIONS}"
        said = [{"role": "user", "content": f"tokens:30 message {number}"}]
        await self._check(client, said, session=session)

    async def _with_command(self, client: Client) -> None:
        command = '{"command":"echo $((6 * 7)); head -c 20000 /dev/zero | tr 0 x"}'
        await self._check(client, [{"role": "user", "content": f"tool:terminal{command} tokens:9"}])

    async def _with_client_tool(self, client: Client) -> None:
        said: list[object] = [{"role": "user", "content": 'tool:shop{"q":"a"} tokens:12'}]
        answer = await self._answered(client, said, tools=[TOOL])
        message = _message(answer)
        if answer.status != 200 or not message.tool_calls:
            self.failures.append(answer.told())
            return
        calls = [msgspec.json.decode(call) for call in message.tool_calls]
        said.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        for call in message.tool_calls:
            id = msgspec.json.decode(call, type=_Call).id
            said.append({"role": "tool", "tool_call_id": id, "content": "in stock"})
        await self._check(client, said, tools=[TOOL])

    async def _check(
        self, client: Client, said: Said, *, session: str = "", **fields: object
    ) -> None:
        """Sends a request, and records whether the answer was complete."""
        answer = await self._answered(client, said, session=session, **fields)
        if answer.status == 200 and is_complete(_text(answer)):
            self.turns += 1
        else:
            self.failures.append(answer.told())

    async def _answered(
        self, client: Client, said: Said, *, session: str = "", **fields: object
    ) -> Answer:
        """Sends the request, and repeats it while the answer shows that the gateway restarts or is
        overloaded, for at most `PATIENCE` seconds. Returns the last answer."""
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Idempotency-Key": f"soak-{next(self._numbers)}",
        }
        if session:
            headers[SESSION_HEADER] = session
        body = msgspec.json.encode({"model": "hermes-agent", "messages": said, **fields})
        request = encode("POST", PATH, headers, body)
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        while True:
            answer = await client.ask(request)
            again = answer.status in TRANSIENT or answer.error or _broken_off(answer)
            if not again or loop.time() > end:
                return answer
            await asyncio.sleep(AGAIN_SECONDS)


def _broken_off(answer: Answer) -> bool:
    """Returns whether a stream ended with an error event. The run itself goes on in the
    gateway, so a repeated request gets the answer of this run."""
    return b'data: {"error"' in answer.body


def _message(answer: Answer) -> _Delta:
    try:
        reply = msgspec.json.decode(answer.body, type=_Reply)
    except msgspec.DecodeError:
        return _Delta()
    return reply.choices[0].message if reply.choices else _Delta()


def _text(answer: Answer) -> str:
    """Returns the text of an answer, streamed or not."""
    if not answer.body.startswith(b"data:"):
        return _message(answer).content or ""
    frames = [line[6:] for line in answer.body.splitlines() if line.startswith(b"data: {")]
    replies = [msgspec.json.decode(frame, type=_Reply) for frame in frames]
    return "".join(choice.delta.content or "" for one in replies for choice in one.choices)
