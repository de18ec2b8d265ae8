"""The middle of a long conversation is summarised, and no message is lost."""

import re
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace

from hermes.control import sessions
from hermes.core.auxiliary import Auxiliary
from hermes.core.compaction import SUMMARY_SYSTEM, Compactor
from hermes.core.conversation import ModelConversation
from hermes.core.prompt import PromptWriter
from hermes.core.window import Window
from hermes.settings.sections import ModelSettings
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, refused, rows, running, until
from hermes.testing.turns import CHOICE, Notebook, a_turn
from hermes.types.errors import Disconnected
from hermes.types.events import SegmentEnded, TextDelta, UsageReported
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Attachment,
    Sampling,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.types.models import ModelRequest
from hermes.types.profile import UNKNOWN_LENGTH, Quirks
from hermes.types.protocols import Emit

SMALL = replace(
    QUIET, model=ModelSettings(default="m", base_url="http://127.0.0.1:9/v1", context_length=3000)
)
KEY = "agent:main:plain:private:1"
FACT = re.compile(r"FACT-\d+ is \w+")


class Summariser:
    """A model that answers with a number. If a request asks for a summary, the model lists the
    facts in the text that must be summarised."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.requests: list[ModelRequest] = []
        self.shown: list[str] = []
        """The texts that the model was asked to summarise, in order."""

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        if request.system == SUMMARY_SYSTEM:
            if self.fails:
                raise Disconnected("the summariser is away")
            (question,) = request.messages
            assert isinstance(question, UserMessage)
            self.shown.append(question.text)
            return AssistantMessage(text="; ".join(dict.fromkeys(FACT.findall(question.text))))
        self.requests.append(request)
        text = f"answer {len(self.requests)}"
        emit(TextDelta(text=text))
        emit(SegmentEnded())
        return AssistantMessage(text=text)


def facts() -> list[str]:
    return [f"FACT-{number} is {'abcdefghij'[number % 10] * 6}" for number in range(20)]


async def converse(server: ChatServer, model: Summariser, texts: list[str]) -> None:
    for text in texts:
        before = len(model.requests)
        server.says(text)
        await until(lambda n=before: f"answer {n + 1}" in "".join(server.texts()[-1:]))  # type: ignore[misc]


async def talk(home: Path, server: ChatServer, model: Summariser) -> list[str]:
    """Runs a conversation with twenty facts in its middle, and returns the stored messages."""
    opening = ["let us begin " + "x" * 50]
    middle = [f"{fact} " + "filler " * 40 for fact in facts()]
    ending = [f"and then {number} " + "words " * 40 for number in range(12)]
    async with running(home, [PlainAdapter(server)], model, SMALL) as gateway:
        await converse(server, model, [*opening, *middle, *ending])
        entries = await gateway._store.read(sessions.entries, KEY)
    return [entry.message.text for entry in entries]


async def test_facts_in_the_middle_reach_the_summary_and_can_be_restored(tmp_path: Path) -> None:
    server, model = ChatServer(), Summariser()
    stored = await talk(tmp_path, server, model)
    for fact in facts():
        assert any(fact in text for text in model.shown)
        assert any(text.startswith(fact) for text in stored)
    last = model.requests[-1]
    assert refused(last) is None
    notes = [m for m in last.messages if isinstance(m, UserMessage) and m.summary]
    assert len(notes) == 1
    assert notes[0].trusted
    for fact in facts():
        assert fact in notes[0].text
    assert last.messages[0].text.startswith("let us begin")

    async with running(tmp_path, [PlainAdapter(server)], model, QUIET) as gateway:
        assert await gateway._store.run(sessions.restore, KEY) >= 1
        before = len(model.requests)
        server.says("what was it?")
        await until(lambda: len(model.requests) > before)
    sent = [message.text for message in model.requests[-1].messages]
    assert sent == [*stored, "what was it?"]


async def test_a_failed_summary_drops_no_messages(tmp_path: Path) -> None:
    server, model = ChatServer(), Summariser(fails=True)
    stored = await talk(tmp_path, server, model)
    assert len(stored) == 2 * 33
    sent = [message.text for message in model.requests[-1].messages]
    assert [*sent, stored[-1]] == stored
    assert (
        "could not be summarised (the summariser is away). Nothing was dropped."
        in (server.texts()[-1])
    )


async def test_a_conversation_continues_unchanged_after_a_restart(tmp_path: Path) -> None:
    server, model = ChatServer(), Summariser()
    await talk(tmp_path, server, model)
    before = model.requests[-1]
    async with running(tmp_path, [PlainAdapter(server)], model, SMALL) as gateway:
        count = len(model.requests)
        server.says("go on")
        await until(lambda: len(model.requests) > count)
        assert await rows(gateway._store, "select count(*) from compactions") != [(0,)]
    assert model.requests[-1].messages[: len(before.messages)] == before.messages
    assert model.requests[-1].system == before.system


async def conversation(
    *texts: str, size: int = 1000, threshold: float | None = 0.75
) -> ModelConversation:
    history = [UserMessage(text=text) for text in texts]
    window = Window.of(size, 100, threshold)
    made = ModelConversation(a_turn(*history), CHOICE, {}, window, lambda event: None, Notebook())
    await made.begin(PromptWriter())
    return made


@pytest.mark.parametrize(("reported", "long"), [(900, True), (500, False)])
async def test_the_reported_usage_decides_when_to_summarise(reported: int, long: bool) -> None:
    made = await conversation("x" * 2100)
    made.is_long()
    made.emit(UsageReported(prompt_tokens=reported, completion_tokens=1))
    assert made.is_long() is long


async def test_recalled_text_precedes_the_last_request_and_is_not_stored() -> None:
    made = await conversation("one", "two")
    made.recalled = "you spoke of tea"
    assert [m.text for m in made.request(0).messages] == ["one", "you spoke of tea", "two"]
    assert [m.text for m in made.history] == ["one", "two"]
    made.add(UserMessage(text="notes", summary=True))
    assert [m.text for m in made.request(0).messages][1:] == ["you spoke of tea", "two", "notes"]


async def test_a_long_conversation_is_summarised_again_only_after_it_has_grown() -> None:
    made = await conversation("do it " * 400)
    compactor = Compactor(Auxiliary(Summariser(), lambda main: main))
    made.add(*(AssistantMessage(text="FACT-1 is so " * 30) for _ in range(6)))
    assert made.is_long()
    assert await made.compact(compactor, PromptWriter())
    assert not made.is_long()
    made.add(AssistantMessage(text="y" * 100))
    assert not made.is_long()
    made.add(AssistantMessage(text="y" * 400))
    assert made.is_long()


async def test_a_conversation_that_the_model_rejects_is_summarised_even_if_it_has_not_grown() -> (
    None
):
    made = await conversation("do it " * 400)
    compactor = Compactor(Auxiliary(Summariser(), lambda main: main))
    made.add(*(AssistantMessage(text="FACT-1 is so " * 30) for _ in range(6)))
    await made.compact(compactor, PromptWriter())
    made.add(*(AssistantMessage(text="y" * 100) for _ in range(2)))
    assert not made.is_long()
    made.reduce_window()
    assert await made.compact(compactor, PromptWriter())


async def test_without_a_threshold_no_conversation_is_summarised() -> None:
    made = await conversation("x" * 9000, threshold=None)
    assert not made.is_long()
    made.reduce_window()
    assert not made.is_long()


async def test_prefilled_messages_precede_all_others() -> None:
    turn = a_turn()
    prefill = (UserMessage(text="ping"), AssistantMessage(text="pong"))
    turn = replace(turn, profile=replace(turn.profile, prefill=prefill))
    window = Window.of(UNKNOWN_LENGTH, None, 0.75)
    made = ModelConversation(turn, CHOICE, {}, window, lambda event: None, Notebook())
    await made.begin(PromptWriter())
    assert [m.text for m in made.request(0).messages] == ["ping", "pong", "hi"]


async def test_results_are_in_the_order_of_their_calls_even_after_a_restart() -> None:
    calls = [ToolCall(id=CallId(id), name="n", arguments="{}") for id in "abc"]
    a, b, c = (ToolMessage(call=call.id, text=call.id) for call in calls)
    asked = UserMessage(text="hi"), AssistantMessage(calls=tuple(calls))
    window = Window.of(1000, None, 0.75)
    made = ModelConversation(a_turn(*asked, b), CHOICE, {}, window, lambda event: None, Notebook())
    made.answer([a, c])
    assert made.history == [*asked, a, b, c]


@pytest.mark.parametrize(("size", "looked"), [(2500, False), (25_000, True)])
async def test_tokens_are_counted_only_if_a_conversation_may_be_long(
    size: int, looked: bool
) -> None:
    turn = replace(a_turn(UserMessage(text="x" * 2000), UserMessage(text="hi")), size=size)
    window = Window.of(8000, 1000, 0.75)
    made = ModelConversation(turn, CHOICE, {}, window, lambda event: None, Notebook())
    await made.begin(PromptWriter())
    assert not made.is_long()
    assert (made._counted is not None) is looked


async def test_a_conversation_with_few_words_and_many_images_may_be_long() -> None:
    image = UserMessage(text="", attachments=(Attachment(kind="image", path="a"),))
    turn = replace(a_turn(*[image] * 5, UserMessage(text="hi")), size=500)
    window = Window.of(8000, 1000, 0.75)
    made = ModelConversation(turn, CHOICE, {}, window, lambda event: None, Notebook())
    await made.begin(PromptWriter())
    assert made.is_long()


@pytest.mark.parametrize(
    ("chosen", "requested", "kind", "sent"),
    [
        ("high", None, "budget", "high"),
        ("high", "low", "effort", "low"),
        ("high", None, "none", None),
        (None, "low", "none", "low"),
        (None, None, "budget", None),
    ],
)
async def test_a_model_that_does_not_reason_gets_no_chosen_effort(
    chosen: str | None,
    requested: str | None,
    kind: Literal["budget", "effort", "none"],
    sent: str | None,
) -> None:
    turn = replace(
        a_turn(UserMessage(text="hi")),
        reasoning=chosen,
        sampling=Sampling(reasoning_effort=requested),
    )
    choice = replace(CHOICE, quirks=Quirks(reasoning=kind))
    window = Window.of(1000, 100, 0.75)
    made = ModelConversation(turn, choice, {}, window, lambda event: None, Notebook())
    await made.begin(PromptWriter())
    assert made.request(0).sampling.reasoning_effort == sent
