"""An API client with tools of its own, built on OpenAI's client."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageToolCall

from hermes.testing.openai_client import KITCHEN, client_of
from hermes.testing.service import Service, serving
from hermes.testing.stores import stored_rows


def client_tool(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"at": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


CLIENT_TOOLS = [client_tool("look"), client_tool("listen")]
BOTH = 'tool:look{"at":"sky"} tool:append{"token":"t"} tool:listen{"at":"sea"}'
"""A message that makes the model call three tools: one of the client, one of the agent, and another
tool of the client."""


class ToolClient:
    """A client that keeps its conversation, as chat clients do."""

    def __init__(self, service: Service, api: openai.AsyncOpenAI, session: bool) -> None:
        self.service = service
        self.said: list[dict[str, Any]] = []
        self.stream = False
        self._api = api
        self.headers = KITCHEN if session else {}
        """The headers of the next request."""

    async def ask(self, text: str, **options: Any) -> ChatCompletion:
        self.said.append({"role": "user", "content": text})
        return await self.send(**options)

    async def send(self, **options: Any) -> ChatCompletion:
        options = {"tools": CLIENT_TOOLS, **options}
        if self.stream:
            answer = await self._streamed(options)
        else:
            answer = await self._api.chat.completions.create(
                model="main", messages=cast(Any, self.said), extra_headers=self.headers, **options
            )
        return answer

    async def _streamed(self, options: dict[str, Any]) -> ChatCompletion:
        async with self._api.chat.completions.stream(
            model="main", messages=cast(Any, self.said), extra_headers=self.headers, **options
        ) as stream:
            return await stream.get_final_completion()

    def heard(self, answer: ChatCompletion) -> list[ChatCompletionMessageToolCall]:
        """Adds the assistant's message to the conversation. Returns the calls in the message."""
        message = answer.choices[0].message
        self.said.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        calls = message.tool_calls or []
        assert all(isinstance(call, ChatCompletionMessageToolCall) for call in calls)
        return [call for call in calls if isinstance(call, ChatCompletionMessageToolCall)]

    def results(self, calls: Sequence[ChatCompletionMessageToolCall], **texts: str) -> None:
        for call in calls:
            text = texts.get(call.function.name, f"result of {call.function.name}")
            self.said.append({"role": "tool", "tool_call_id": call.id, "content": text})


@asynccontextmanager
async def talking(
    home: Path,
    *,
    session: bool = False,
    said: list[dict[str, Any]] | None = None,
    **environ: str,
) -> AsyncIterator[ToolClient]:
    """Runs a service on the home's store, and yields a client of this service. `said` is the
    conversation that the client begins with."""
    async with serving(home, environ=environ) as service, client_of(service) as api:
        client = ToolClient(service, api, session)
        client.said = said if said is not None else []
        yield client


@asynccontextmanager
async def second_client(client: ToolClient) -> AsyncIterator[ToolClient]:
    """Yields a second client of the same service and session."""
    async with client_of(client.service) as api:
        yield ToolClient(client.service, api, session=True)


def text_of(answer: ChatCompletion) -> str:
    """Returns the answer without the tags of the fake model."""
    return re.sub(r"\[[0-9a-f]{4}:[0-9.]+\] ?", "", answer.choices[0].message.content or "")


def ids_of(answer: ChatCompletion) -> list[str]:
    return [call.id for call in answer.choices[0].message.tool_calls or ()]


def states_in(home: Path) -> list[str]:
    """The states of all turns, oldest first."""
    return [state for (state,) in stored_rows(home, "select state from turns order by id")]
