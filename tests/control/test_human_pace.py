"""Between the messages of a long answer, there are pauses with a typing indicator."""

from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.control.human_pace import HumanPace
from hermes.control.rate_gate import RateGate
from hermes.settings.sections import HumanDelaySettings, StreamingSettings
from hermes.testing.platforms import ChatServer, PlainAdapter, RichAdapter
from hermes.testing.running import QUIET, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.errors import Disconnected, RateLimited
from hermes.types.identity import Target

CHAT = Target(account="rich", chat_id="1")
SLOW = HumanPace(shortest=0.12, longest=0.15)
LONG = " ".join(f"word{number}" for number in range(1200))


async def test_the_messages_of_an_answer_are_apart_and_typing_is_shown_between(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    conditions = replace(
        QUIET,
        streaming=StreamingSettings(enabled=False, edit_interval=0.0),
        human_delay=HumanDelaySettings(mode="custom", min_ms=200, max_ms=250),
    )
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([says(LONG)]), conditions):
        server.says("a")
        await until(lambda: "word1199" in " ".join(server.texts()), within=10.0)
    sends = [at for at, kind, _ in server.calls if kind == "send"]
    assert len(sends) == 3
    for earlier, later in pairwise(sends):
        assert later - earlier >= 0.2
        assert any(earlier < at < later for at, _ in server.typed)


async def test_by_default_there_is_no_pause() -> None:
    server = ChatServer()
    await HumanPace().pause(RateGate(), RichAdapter(server), CHAT)
    assert server.typed == []


async def test_a_platform_without_a_typing_indicator_only_waits() -> None:
    started = anyio.current_time()
    await SLOW.pause(RateGate(), PlainAdapter(ChatServer()), CHAT)
    assert anyio.current_time() - started >= 0.12


async def test_an_indicator_that_fails_does_not_stop_the_delivery_but_a_rate_limit_does() -> None:
    server = ChatServer()
    server.trouble = lambda kind, chat: Disconnected("cut")
    await SLOW.pause(RateGate(), RichAdapter(server), CHAT)
    server.trouble = lambda kind, chat: RateLimited("slow down", 1.0)
    with pytest.raises(RateLimited):
        await SLOW.pause(RateGate(), RichAdapter(server), CHAT)
