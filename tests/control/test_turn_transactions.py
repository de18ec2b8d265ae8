"""While a prompt is reused, each model request begins with the exact bytes of the previous
request."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.turn_transactions import PROMPT_IDLE_SECONDS
from hermes.core.models.openai_chat import OpenAIChat
from hermes.settings.sections import MemorySettings
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, until
from hermes.testing.running import running as running_gateway
from hermes.testing.scripted import Answer, ScriptedModel, calls, says
from hermes.types.models import ModelRequest

REMEMBERING = replace(QUIET, memory=MemorySettings(), tools=None)
TURNS = 50


class Clock:
    """Replaces `time.time`. The test moves the clock by changing `offset`."""

    def __init__(self) -> None:
        self.offset = 0.0

    def __call__(self) -> float:
        return time.monotonic() + 1_800_000_000.0 + self.offset


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    set_clock = Clock()
    monkeypatch.setattr(time, "time", set_clock)
    return set_clock


def note(number: int) -> Answer:
    edit = {"action": "add", "content": f"Note {number}."}
    return calls(("memory", {"target": "memory", "edits": [edit]}))


def script() -> Iterator[Answer]:
    """Yields the answers. Every fifth turn writes a note, and every seventh turn makes parallel
    searches."""
    for number in range(TURNS):
        if number % 5 == 0:
            yield note(number)
        if number % 7 == 0:
            yield calls(("session_search", {"query": "one"}), ("search_files", {"pattern": "x"}))
        yield says(f"answer {number}")


def sent(request: ModelRequest) -> bytes:
    """Returns the body of a request without its closing brackets, so that a longer conversation
    begins with the same bytes."""
    return OpenAIChat().body(request).removesuffix(b"]}")


async def test_each_request_of_fifty_turns_begins_with_the_bytes_of_the_previous_request(
    tmp_path: Path, clock: Clock
) -> None:
    """During the turns, notes are written, the clock is changed, other people send messages, and
    the gateway restarts."""
    server, model = ChatServer(), ScriptedModel(script())
    for part in range(5):
        adapter = PlainAdapter(server)
        async with running_gateway(tmp_path, [adapter], model, REMEMBERING):
            for number in range(part * 10, part * 10 + 10):
                clock.offset += (1700.0, -90_000.0, 30.0)[number % 3]
                name = ("Ada", "Ada L.", None)[number % 3]
                server.says(f"message {number}", kind="group", name=name)
                await until(lambda n=number: f"answer {n}" in server.texts("1"))  # type: ignore[misc]
    assert (tmp_path / "memories").exists()
    for earlier, later in zip(model.requests, model.requests[1:], strict=False):
        assert sent(later).startswith(sent(earlier))
    assert len({request.system for request in model.requests}) == 1


@pytest.mark.parametrize("end", ["/new", "an hour idle"])
async def test_notes_appear_in_the_next_prompt(tmp_path: Path, clock: Clock, end: str) -> None:
    server = ChatServer()
    morning = says("a new day")
    # After `/new`, the model is also called to update the notes. It is not known which of the last
    # two calls comes first, so both get the same answer.
    model = ScriptedModel([note(7), says("noted"), says("still here"), morning, morning])
    async with running_gateway(tmp_path, [PlainAdapter(server)], model, REMEMBERING):
        for text in ("note this", "go on"):
            before = len(server.texts())
            server.says(text)
            await until(lambda n=before: len(server.texts()) > n)  # type: ignore[misc]
        assert all("Note 7." not in request.system for request in model.requests)
        if end == "/new":
            server.says("/new")
        else:
            clock.offset += PROMPT_IDLE_SECONDS + 1
        server.says("good morning")
        await until(lambda: "a new day" in server.texts())
    (asked,) = (one for one in model.requests if one.messages[-1].text == "good morning")
    assert "Note 7." in asked.system
    assert len(asked.messages) == (1 if end == "/new" else 7)
