"""The log has one line for each accepted message and each finished turn."""

import logging
import re
from pathlib import Path

import pytest

from hermes.control.turn_log import ACCEPTED_LINE, FINISHED, PRICED
from hermes.settings.sections import AccessSettings
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import Conditions, running, until
from hermes.testing.scripted import Answer, ScriptedModel, calls, fails, says
from hermes.types.errors import Disconnected
from hermes.types.events import UsageReported
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit

LOGGER = "hermes.control.turn_log"


@pytest.fixture(autouse=True)
def level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == LOGGER]


def metered(answer: Answer, cost: float | None) -> Answer:
    """Returns an answer that first reports 100 input tokens, 10 output tokens and this cost, and
    then gives `answer`."""

    async def reporting(request: ModelRequest, emit: Emit) -> AssistantMessage:
        emit(UsageReported(prompt_tokens=100, completion_tokens=10, cost=cost))
        return await answer(request, emit)

    return reporting


async def answered(tmp_path: Path, *answers: Answer, text: str = "hi") -> None:
    server = ChatServer()
    server.says(text)
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel(answers)):
        await until(server.texts)


async def test_a_message_and_its_turn_have_one_line_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    todo = calls(("append", {"token": "x"}))
    await answered(tmp_path, metered(todo, 0.25), metered(says("done"), 0.5))
    accepted, finished = lines(caplog)
    session = "agent:main:plain:private:1"
    assert re.fullmatch(rf"accepted message \w+ of {session} for turn \w+", accepted)
    assert re.fullmatch(
        rf"turn \w+ of {session} completed in \d+\.\d s: 2 steps, 200 tokens in, 20 out, \$0\.7500",
        finished,
    )


async def test_an_unknown_cost_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await answered(tmp_path, metered(says("done"), None))
    assert lines(caplog)[-1].endswith("1 step, 100 tokens in, 10 out")


async def test_a_failed_turn_is_a_warning_with_its_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await answered(tmp_path, fails(Disconnected("the line was cut")))
    (failed,) = (one for one in caplog.records if one.levelno >= logging.WARNING)
    assert failed.getMessage().startswith("disconnected: turn ")
    assert failed.getMessage().endswith("0 steps, 0 tokens in, 0 out: the line was cut")
    assert isinstance(failed.args, dict)
    fields = {"turn", "session", "outcome", "seconds", "steps", "tokens_in", "tokens_out", "cost"}
    assert set(failed.args) == fields | {"code", "reason"}
    assert (failed.args["outcome"], failed.args["code"]) == ("failed", "disconnected")


async def test_a_command_is_a_message_without_a_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await answered(tmp_path, text="/help")
    (line,) = lines(caplog)
    assert line.endswith("for turn none")


async def test_the_message_of_a_stranger_has_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = ChatServer()
    server.says("let me in", user="99")
    closed = Conditions(access=AccessSettings())
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([]), closed):
        await until(lambda: "not admitted: user 99 of plain" in caplog.messages)
    assert lines(caplog) == []


@pytest.mark.parametrize("message", [ACCEPTED_LINE, FINISHED, PRICED])
def test_the_lines_about_messages_and_turns_contain_no_free_text(message: str) -> None:
    allowed = {"message_id", "session", "turn", "outcome", "seconds", "steps", "cost"}
    assert set(re.findall(r"%\((\w+)\)", message)) <= allowed | {"tokens_in", "tokens_out"}
