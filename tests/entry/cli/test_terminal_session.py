"""A terminal session sends messages and shows their turns on a screen."""

import math
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.control import approval_records
from hermes.control.context_use import ContextUse
from hermes.control.gateway import Gateway
from hermes.entry.cli.file_mentions import FileNotAttached
from hermes.entry.cli.terminal_session import (
    DECIDED_ELSEWHERE,
    EARLIER,
    LEFT,
    UNDECIDED,
    WALKED_AWAY,
    TerminalSession,
    TurnEnding,
)
from hermes.settings.sections import ModelSettings
from hermes.testing.approvals import DANGEROUS, make_folders, runs
from hermes.testing.running import Conditions, running, until
from hermes.testing.scripted import Answer, ScriptedModel, calls, hangs, says
from hermes.testing.stores import open_test_store
from hermes.types.errors import NotAccepted
from hermes.types.events import AgentEvent, QuestionAsked, TextDelta
from hermes.types.identity import SessionKey
from hermes.types.messages import AssistantMessage, ToolMessage, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit

COLORS = calls(("ask", {"question": "Which?", "choices": ["red", "blue", "3"]}))


class Heard:
    """A fake screen that records everything that the code under test shows on it."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []
        self.told: list[str] = []
        self.notes: list[str] = []
        self.questions: list[str] = []

    def show_question(self, text: str) -> None:
        self.questions.append(text)

    def show(self, event: AgentEvent) -> None:
        self.events.append(event)

    def show_reply(self, text: str) -> None:
        self.told.append(text)

    def remark(self, text: str) -> None:
        self.told.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def draw(self) -> float:
        return math.inf

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))


class Stage:
    def __init__(self, gateway: Gateway, model: ScriptedModel, folder: Path) -> None:
        self.gateway = gateway
        self.model = model
        self.screen = Heard()
        self.used: list[ContextUse] = []
        """The values for the status line, in the order in which the session passed them."""
        self.session = TerminalSession(gateway, "s", lambda: self.screen, folder, self.used.append)

    async def say(self, text: str, piped: str = "") -> TurnEnding:
        with anyio.fail_after(10):
            return await self.session.say(text, piped)

    @property
    def asked(self) -> list[str]:
        """Returns the actions and questions that were shown, in order."""
        return [
            one.detail or one.prompt for one in self.screen.events if isinstance(one, QuestionAsked)
        ]

    @property
    def results(self) -> list[str]:
        """Returns the tool results in the last model call."""
        last = self.model.requests[-1].messages
        return [message.text for message in last if isinstance(message, ToolMessage)]


@asynccontextmanager
async def conversing(home: Path, *answers: Answer) -> AsyncIterator[Stage]:
    model = ScriptedModel(answers)
    async with running(home, [], model, Conditions(terminal=True)) as gateway:
        yield Stage(gateway, model, home)


@asynccontextmanager
async def endangered(home: Path, model: ScriptedModel) -> AsyncIterator[Stage]:
    """Runs a session whose agent can delete the folders a and b."""
    if not (home / "workspace").exists():
        make_folders(home / "workspace", "a", "b")
    async with running(home, [], model, replace(DANGEROUS, terminal=True)) as gateway:
        yield Stage(gateway, model, home)


def left(home: Path) -> list[str]:
    """Returns the names of the folders that were not deleted."""
    return sorted(path.name for path in (home / "workspace").iterdir())


async def test_answers_and_replies_to_commands_are_shown(tmp_path: Path) -> None:
    async with conversing(tmp_path, says("Hello there.")) as stage:
        assert await stage.say("hi") == "completed"
        assert stage.screen.text == "Hello there."
        assert await stage.say("/status") == "completed"
        assert stage.screen.told == ["Idle."]


async def test_after_a_switch_the_messages_belong_to_the_other_session(tmp_path: Path) -> None:
    async with conversing(tmp_path, COLORS, says("A new start."), says("Blue.")) as stage:
        await stage.say("paint it")
        stage.session.switch("other")
        assert stage.session.name == "other"
        assert await stage.say("2") == "completed", "the question belongs to the first session"
        assert stage.model.requests[1].messages == (UserMessage(text="2"),)
        stage.session.switch("s")
        assert await stage.say("blue") == "completed"
        assert stage.results == ["the person said: blue"]


@pytest.mark.parametrize("answer", ["blue", "BLUE", "2"])
async def test_a_choice_is_selected_by_its_words_or_its_number(tmp_path: Path, answer: str) -> None:
    async with conversing(tmp_path, COLORS, says("Blue it is.")) as stage:
        assert await stage.say("paint it") == "suspended"
        assert await stage.say(answer) == "completed"
        assert stage.results == ["the person said: blue"]


async def test_a_question_may_be_answered_in_other_words(tmp_path: Path) -> None:
    async with conversing(tmp_path, COLORS, says("Green.")) as stage:
        await stage.say("paint it")
        assert await stage.say("/status") == "completed"
        assert await stage.say("green, please") == "completed"
        assert stage.results == ["the person said: green, please"]


async def test_a_number_is_a_plain_message_after_the_question_was_closed(tmp_path: Path) -> None:
    async with conversing(tmp_path, COLORS, says("One what?")) as stage:
        await stage.say("paint it")
        await stage.say("/stop")
        assert await stage.say("1") == "completed"
        assert stage.screen.text == "One what?"


async def test_a_number_that_matches_no_choice_is_reported_and_the_question_stays_open(
    tmp_path: Path,
) -> None:
    asked = calls(("ask", {"question": "Which?", "choices": ["red", "blue"]}))
    async with conversing(tmp_path, asked, says("Blue it is.")) as stage:
        await stage.say("paint it")
        assert await stage.say("3") == "refused"
        assert stage.screen.told == ["There are 2 choices: 1 to 2, or your own words."]
        await stage.say("2")
        assert stage.results == ["the person said: blue"]


async def test_messages_during_a_turn_are_queued_and_commands_act_at_once(
    tmp_path: Path,
) -> None:
    async with conversing(tmp_path, hangs(), says("Second.")) as stage:
        session, waiting = stage.session, Waiting(stage)
        async with anyio.create_task_group() as group:
            group.start_soon(waiting.ends)
            await until(lambda: stage.model.requests)
            await session.add("and then?")
            await session.add("/stop")
        assert waiting.endings == ["stopped"]
        assert stage.screen.notes == [
            "Queued (1): and then?",
            "Stopped. 1 queued message follows.",
        ]
        assert await session.owes()
        with anyio.fail_after(10):
            assert await session.follow() == "completed"
        assert stage.screen.questions == ["and then?"]
        assert stage.screen.text == "Second."
        assert not await session.owes()


async def test_a_command_that_fails_is_refused(tmp_path: Path) -> None:
    async with conversing(tmp_path) as stage:
        assert await stage.say("/nope") == "refused"
        assert await stage.say("/status") == "completed"
        assert not await stage.session.add("/nope")
        assert await stage.session.add("/status")


async def test_a_turn_that_is_stopped_twice_ends_once(tmp_path: Path) -> None:
    async with conversing(tmp_path, hangs()) as stage:
        waiting = Waiting(stage)
        async with anyio.create_task_group() as group:
            group.start_soon(waiting.ends)
            await until(lambda: stage.model.requests)
            await stage.session.stop()
            await stage.session.stop()
        assert waiting.endings == ["stopped"]


async def test_the_use_of_the_context_is_measured_after_each_tool_and_turn(tmp_path: Path) -> None:
    spoken = calls(("append", {"token": "x"}))
    async with conversing(tmp_path, spoken, says("Done.")) as stage:
        await stage.session.measure()
        assert [use.tokens for use in stage.used] == [0]
        await stage.say("append x")
        assert len(stage.used) >= 2
        assert stage.used[-1].tokens > 0
        assert stage.used[-1] == await stage.gateway.context_use(
            SessionKey.parse(stage.session.key)
        )


async def test_a_turn_that_waits_for_an_earlier_turn_says_so(tmp_path: Path) -> None:
    async with conversing(tmp_path, hangs(), says("Second.")) as stage:
        first, second = Waiting(stage), Waiting(stage)
        async with anyio.create_task_group() as group:
            group.start_soon(first.ends)
            await until(lambda: stage.model.requests)
            group.start_soon(second.ends)
            await until(lambda: EARLIER in stage.screen.notes)
            await stage.session.add("/stop")
        assert second.endings == ["completed"]


async def test_a_mentioned_file_is_sent_with_the_message(tmp_path: Path) -> None:
    (tmp_path / "todo.txt").write_text("milk")
    async with conversing(tmp_path, says("Milk."), says("Nothing.")) as stage:
        await stage.say("what is in @todo.txt")
        assert stage.screen.notes == ["Attached: todo.txt"]
        await stage.say("this is a log", piped="see @todo.txt")
        assert [one.text for one in stage.model.requests[-1].messages[::2]] == [
            "what is in @todo.txt\n\n[file todo.txt]\nmilk\n[end of file todo.txt]",
            "this is a log\n\nsee @todo.txt",
        ]


async def test_a_mentioned_image_is_an_attachment(tmp_path: Path) -> None:
    image = b"\x89PNG\r\n\x1a\n" + b"\0" * 9
    (tmp_path / "cat.png").write_bytes(image)
    async with conversing(tmp_path, says("A cat.")) as stage:
        assert await stage.say("who is @cat.png") == "completed"
    (asked,) = stage.model.requests[-1].messages
    assert isinstance(asked, UserMessage)
    (sent,) = asked.attachments
    assert (sent.kind, sent.name, sent.size) == ("image", "cat.png", len(image))
    assert sent.path
    assert sent.at == len("who is @cat.png")


async def test_an_image_is_not_sent_to_a_model_that_accepts_none(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    blind = ModelSettings(default="m", base_url="http://127.0.0.1:9/v1", attachments=())
    model = ScriptedModel([])
    async with running(tmp_path, [], model, Conditions(terminal=True, model=blind)) as gateway:
        stage = Stage(gateway, model, tmp_path)
        with pytest.raises(NotAccepted, match="The model 'm' does not accept images"):
            await stage.say("who is @cat.png")
    assert model.requests == []


async def test_a_message_with_a_missing_file_is_not_sent(tmp_path: Path) -> None:
    async with conversing(tmp_path) as stage:
        with pytest.raises(FileNotAttached, match="There is no file"):
            await stage.say("what is in @nope.txt")
        await stage.session.add("and @nope.txt")
        assert stage.model.requests == []
        (note,) = stage.screen.notes
        assert note.startswith("There is no file 'nope.txt'.")


@pytest.mark.parametrize("answer", ["yes", "Y", "o", "once", "1", "Yes!"])
async def test_an_approved_action_is_done_and_the_turn_continues(
    tmp_path: Path, answer: str
) -> None:
    model = ScriptedModel([runs("rm -rf a"), says("Gone.")])
    async with endangered(tmp_path, model) as stage:
        assert await stage.say("clean up") == "suspended"
        assert stage.asked == ["rm -rf a"]
        assert left(tmp_path) == ["a", "b"]
        assert await stage.say(answer) == "completed"
        assert stage.screen.text == "Gone."
    assert left(tmp_path) == ["b"]


@pytest.mark.parametrize("answer", ["no", "N", "4", "deny"])
async def test_a_denied_action_is_not_done(tmp_path: Path, answer: str) -> None:
    model = ScriptedModel([runs("rm -rf a"), says("Kept.")])
    async with endangered(tmp_path, model) as stage:
        await stage.say("clean up")
        assert await stage.say(answer) == "completed"
        assert stage.screen.text == "Kept."
    assert left(tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    ("answer", "again"), [("1", True), ("s", False), ("2", False), ("always", False), ("a", False)]
)
async def test_an_approval_lasts_as_long_as_the_person_says(
    tmp_path: Path, answer: str, *, again: bool
) -> None:
    model = ScriptedModel([runs("rm -rf a"), runs("rm -rf a"), says("Done.")])
    async with endangered(tmp_path, model) as stage:
        await stage.say("clean up")
        assert await stage.say(answer) == ("suspended" if again else "completed")
        assert len(stage.asked) == 1 + again


async def test_another_text_waits_until_the_decision(tmp_path: Path) -> None:
    model = ScriptedModel([runs("rm -rf a"), says("Gone."), says("Blue.")])
    async with endangered(tmp_path, model) as stage:
        await stage.say("clean up")
        assert await stage.say("what is the color of the sky?") == "suspended"
        assert stage.screen.told == [UNDECIDED]
        assert not await stage.session.owes()
        assert left(tmp_path) == ["a", "b"]
        assert await stage.say("yes") == "completed"
        assert await stage.session.owes()
        assert await stage.session.follow() == "completed"
    assert stage.screen.text == "Gone.Blue."


async def test_two_approvals_are_asked_one_after_the_other_and_never_swap(tmp_path: Path) -> None:
    model = ScriptedModel([runs("rm -rf a", "rm -rf b"), says("Done.")])
    async with endangered(tmp_path, model) as stage:
        await stage.say("clean up")
        assert stage.asked == ["rm -rf a"]
        await stage.say("no")
        assert stage.asked == ["rm -rf a", "rm -rf b"]
        assert await stage.say("yes") == "completed"
    assert left(tmp_path) == ["a"]


async def test_an_answer_is_never_for_an_approval_that_was_not_shown(tmp_path: Path) -> None:
    model = ScriptedModel([runs("rm -rf a", "rm -rf b"), says("Done.")])
    async with endangered(tmp_path, model) as stage:
        await stage.say("clean up")
        (first, _) = await stage.session.open_questions()
        async with open_test_store(tmp_path) as store:
            await store.run(approval_records.decide, first.id, None, "", time.time())
        assert await stage.say("yes") == "refused"
        assert stage.screen.told == ["this question is no longer open"]
        assert stage.asked == ["rm -rf a", "rm -rf b"]
        assert left(tmp_path) == ["a", "b"]
        assert await stage.say("yes") == "completed"
    assert left(tmp_path) == ["a"]


async def test_an_approval_is_asked_again_after_a_restart_and_can_be_given(tmp_path: Path) -> None:
    model = ScriptedModel([runs("rm -rf a"), says("Gone.")])
    async with endangered(tmp_path, model) as stage:
        await stage.say("clean up")
    async with endangered(tmp_path, model) as stage:
        await stage.session.ask_again()
        assert stage.asked == ["rm -rf a"]
        assert left(tmp_path) == ["a", "b"]
        assert await stage.say("1") == "completed"
        assert stage.screen.text == "Gone."
    assert left(tmp_path) == ["b"]


async def test_a_turn_whose_approval_was_given_elsewhere_is_shown_after_a_restart(
    tmp_path: Path,
) -> None:
    entered, released = anyio.Event(), anyio.Event()

    async def slow(request: ModelRequest, emit: Emit) -> AssistantMessage:
        entered.set()
        await released.wait()
        return await says("Gone.")(request, emit)

    model = ScriptedModel([runs("rm -rf a"), slow])
    async with endangered(tmp_path, model) as stage:
        await stage.say("clean up")
        (asked,) = await stage.session.open_questions()
    async with open_test_store(tmp_path) as store:
        await store.run(approval_records.decide, asked.id, "once", "", time.time())
    async with endangered(tmp_path, model) as stage, anyio.create_task_group() as group:
        group.start_soon(stage.session.catch_up)
        await entered.wait()
        released.set()
        await until(lambda: stage.screen.text == "Gone.")
        assert await stage.session.catch_up() is None
    assert left(tmp_path) == ["b"]


async def test_a_turn_whose_approval_is_given_elsewhere_is_shown(tmp_path: Path) -> None:
    model = ScriptedModel([runs("rm -rf a"), says("Gone.")])
    async with endangered(tmp_path, model) as stage:
        await stage.say("clean up")
        (asked,) = await stage.session.open_questions()
        async with anyio.create_task_group() as group:
            group.start_soon(stage.session.await_decision)
            async with open_test_store(tmp_path) as store:
                await store.run(approval_records.decide, asked.id, "once", "", time.time())
        assert stage.session.continued
        assert await stage.session.catch_up() == "completed"
        assert stage.screen.told == [DECIDED_ELSEWHERE]
        assert stage.screen.text == "Gone."
        assert not stage.session.asked
    assert left(tmp_path) == ["b"]


async def test_a_number_without_a_choice_and_a_grant_that_is_not_offered_are_refused(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([runs("rm -rf a")])
    async with endangered(tmp_path, model) as stage:
        await stage.say("clean up")
        assert await stage.say("5") == "refused"
        assert stage.screen.told == ["There are 4 choices: 1 to 4."]
        await stage.say("/stop")
        assert not stage.session.asked
    assert left(tmp_path) == ["a", "b"]


class Waiting:
    """Runs a turn in a task, so that the test can send signals meanwhile. Records how the turn
    ended."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.endings: list[TurnEnding] = []

    async def ends(self) -> None:
        self.endings.append(await self._stage.say("wait"))


async def test_an_interrupt_stops_the_turn(tmp_path: Path) -> None:
    async with conversing(tmp_path, hangs()) as stage:
        waiting = Waiting(stage)
        async with stage.session.interrupts.handled(), anyio.create_task_group() as group:
            group.start_soon(waiting.ends)
            await until(lambda: stage.model.requests)
            os.kill(os.getpid(), signal.SIGINT)
        assert waiting.endings == ["stopped"]


async def test_a_second_interrupt_does_not_wait_for_the_end(tmp_path: Path) -> None:
    stopping, released = anyio.Event(), anyio.Event()

    async def stubborn(_request: ModelRequest, _emit: Emit) -> AssistantMessage:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                stopping.set()
                await released.wait()
        raise AssertionError("unreachable")

    async with conversing(tmp_path, stubborn) as stage:
        waiting = Waiting(stage)
        async with stage.session.interrupts.handled(), anyio.create_task_group() as group:
            group.start_soon(waiting.ends)
            await until(lambda: stage.model.requests)
            os.kill(os.getpid(), signal.SIGINT)
            await stopping.wait()
            assert waiting.endings == []
            os.kill(os.getpid(), signal.SIGINT)
        assert waiting.endings == ["left"]
        assert stage.screen.told == [WALKED_AWAY]
        released.set()


async def test_sigterm_does_not_stop_the_turn(tmp_path: Path) -> None:
    async with conversing(tmp_path, hangs()) as stage:
        waiting = Waiting(stage)
        async with stage.session.interrupts.handled(), anyio.create_task_group() as group:
            group.start_soon(waiting.ends)
            await until(lambda: stage.model.requests)
            os.kill(os.getpid(), signal.SIGTERM)
        assert waiting.endings == ["left"]
        assert stage.session.interrupts.leaving


async def test_a_turn_that_is_left_to_another_process_says_so(tmp_path: Path) -> None:
    async with conversing(tmp_path, hangs()) as stage:
        waiting = Waiting(stage)
        async with anyio.create_task_group() as group:
            group.start_soon(waiting.ends)
            await until(lambda: stage.gateway.busy)
            await stage.gateway.drain(0)
        assert waiting.endings == ["left"]
        assert stage.screen.told == [LEFT]
