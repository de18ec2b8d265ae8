"""The gateway reports the share of the context window that a session uses."""

from pathlib import Path

from msgspec.structs import replace

from hermes.core.compaction import SUMMARY_SYSTEM
from hermes.settings.sections import ModelSettings
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.events import SegmentEnded, TextDelta
from hermes.types.identity import SessionKey
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit

KEY = SessionKey.parse("agent:main:plain:private:1")
WINDOW = 3000
SMALL = replace(
    QUIET, model=ModelSettings(default="m", base_url="http://127.0.0.1:9/v1", context_length=WINDOW)
)


class Summariser:
    """A model that counts how many answers and how many summaries it has written."""

    def __init__(self) -> None:
        self.answers = 0
        self.summaries = 0

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        if request.system == SUMMARY_SYSTEM:
            self.summaries += 1
            return AssistantMessage(text="notes")
        self.answers += 1
        emit(TextDelta(text=f"answer {self.answers}"))
        emit(SegmentEnded())
        return AssistantMessage(text=f"answer {self.answers}")


async def test_a_new_session_has_a_model_and_uses_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([]), SMALL) as gateway:
        use = await gateway.context_use(KEY)
    assert (use.model, use.window, use.parts, use.share) == ("m", WINDOW, (), 0.0)


async def test_without_a_model_there_is_no_context_window(tmp_path: Path) -> None:
    nothing = replace(QUIET, model=ModelSettings())
    async with running(tmp_path, [], ScriptedModel([]), nothing) as gateway:
        use = await gateway.context_use(KEY)
    assert (use.model, use.window, use.share) == ("", 0, 0.0)


async def test_the_use_is_the_same_as_in_the_context_command(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model, SMALL) as gateway:
        server.says("hi")
        await until(lambda: server.texts() == ["hello"])
        use = await gateway.context_use(KEY)
        server.says("/context")
        await until(lambda: len(server.texts()) == 2)
    assert [part.name for part in use.parts][-2:] == ["tools", "conversation (2 messages)"]
    assert 0 < use.share < 1
    told = f"together about {use.tokens:,} of 3,000 ({use.share:.0%})"
    assert server.texts()[1].splitlines()[-1] == told


async def test_a_summary_frees_a_part_of_the_context_window(tmp_path: Path) -> None:
    server, model = ChatServer(), Summariser()
    used = list[int]()
    async with running(tmp_path, [PlainAdapter(server)], model, SMALL) as gateway:
        while not model.summaries:
            assert len(used) < 50, "nothing was summarised"
            number = model.answers + 1
            server.says("words " * 40)
            await until(lambda n=number: f"answer {n}" in server.texts())  # type: ignore[misc]
            await until(lambda: not gateway.busy)
            used.append((await gateway.context_use(KEY)).tokens)
    *before, full, after = used
    assert sorted(before) == before
    assert after < full < WINDOW
