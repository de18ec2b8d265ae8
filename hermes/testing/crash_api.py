"""An API client that repeats each request until the gateway answers it, as SDKs do. The gateway may
be killed meanwhile."""

from pathlib import Path

import aiohttp
import anyio
import msgspec
from msgspec import Struct

from hermes.types.value import Value

API_KEY = "a-key-for-crash-tests"
AGAIN_SECONDS = 0.02
CLIENT_TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
}
QUESTION = '{q} tool:look{{"at":"{q}"}} tool:append{{"token":"{q}"}} steps:2'
"""The question of the client. In each of two steps, the model calls a tool of the client and a tool
of the agent."""


def address_file(home: Path) -> Path:
    """Returns the file in which a gateway process writes the address of its API."""
    return home / "api-address"


def tell_address(home: Path, address: str) -> None:
    address_file(home).write_text(address)


class Exchange(Value):
    """A question of an API client, and the final answer to the question."""

    token: str
    answer: str
    results: int
    """Number of different tool results that the client has sent."""


class _Function(Struct):
    name: str
    arguments: str


class _Call(Struct):
    id: str
    function: _Function


class _Message(Struct):
    content: str | None = None
    tool_calls: list[_Call] = []


class _Choice(Struct):
    message: _Message


class _Completion(Struct):
    choices: list[_Choice]


class ApiCaller:
    """Asks questions, and runs the client tools that the model calls. Repeats each request until
    the gateway answers it."""

    def __init__(self, home: Path, token: str, *, session: bool) -> None:
        self._home = home
        self._token = token
        self._headers = {
            "Authorization": f"Bearer {API_KEY}",
            "Content-Type": "application/json",
        }
        if session:
            self._headers["X-Hermes-Session-Id"] = token

    async def converse(self) -> Exchange:
        said: list[object] = [{"role": "user", "content": QUESTION.format(q=self._token)}]
        results = 0
        async with aiohttp.ClientSession() as http:
            while (message := await self._answered(http, said)).tool_calls:
                said.append({"role": "assistant", **msgspec.to_builtins(message)})
                for call in message.tool_calls:
                    text = f"looked {self._token} {call.function.name}"
                    said.append({"role": "tool", "tool_call_id": call.id, "content": text})
                    results += 1
        return Exchange(token=self._token, answer=message.content or "", results=results)

    async def _answered(self, http: aiohttp.ClientSession, said: list[object]) -> _Message:
        body = msgspec.json.encode({"model": "main", "messages": said, "tools": [CLIENT_TOOL]})
        # Each request has its own key. A repeat of the request has the same key as the request.
        headers = {**self._headers, "Idempotency-Key": f"{self._token}-{len(said)}"}
        while True:
            try:
                address = address_file(self._home).read_text()
                url = f"{address}/v1/chat/completions"
                async with http.post(url, data=body, headers=headers) as response:
                    text = await response.read()
                    if response.status == 200:
                        return msgspec.json.decode(text, type=_Completion).choices[0].message
                    assert response.status in (500, 502, 503), text
            except (OSError, aiohttp.ClientError):
                pass
            await anyio.sleep(AGAIN_SECONDS)
