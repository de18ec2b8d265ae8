"""Wire formats are found by their names."""

import subprocess
import sys

import pytest

from hermes.core.models.openai_chat import OpenAIChat
from hermes.core.models.wires import builtin_wire_formats, find_wire, wire_formats
from hermes.testing.upstream import STREAM, answering, ask, choice_of, request_to
from hermes.types.errors import ConfigError
from hermes.types.models import AnswerBuilder, ModelRequest, StreamParser


class Lines:
    """A parser for answers that are plain text."""

    def __init__(self, answer: AnswerBuilder) -> None:
        self._answer = answer

    def take(self, payload: bytes) -> None:
        self._answer.say(payload.decode())
        self._answer.finished = True


class Telegraph(OpenAIChat):
    """A wire format that a plugin adds."""

    name = "telegraph"

    def body(self, request: ModelRequest) -> bytes:
        return b"STOP"

    def parser(self, answer: AnswerBuilder) -> StreamParser:  # type: ignore[override]  # another
        return Lines(answer)


def test_the_built_in_wire_formats_are_found_by_name() -> None:
    wires = wire_formats(builtin_wire_formats())
    assert list(wires) == ["chat", "responses", "anthropic"]
    assert all(find_wire(wires, name).name == name for name in wires)


def test_the_error_for_an_unknown_wire_format_lists_the_known_formats() -> None:
    with pytest.raises(ConfigError, match="wire format 'morse' is unknown: choose one of chat,"):
        find_wire(wire_formats(builtin_wire_formats()), "morse")


def test_two_wire_formats_can_not_have_the_same_name() -> None:
    with pytest.raises(ConfigError, match="two plugins register the wire format 'chat'"):
        wire_formats([*builtin_wire_formats(), OpenAIChat()])


async def test_a_plugin_adds_a_wire_format() -> None:
    async with answering(STREAM + b"data: hello\n\n") as base_url:
        message, _ = await ask(request_to(choice_of("telegraph", base_url)), Telegraph())
    assert message.text == "hello"


def test_wire_formats_do_no_io() -> None:
    script = "import sys, hermes.core.models.wires; print(*{'aiohttp', 'anyio'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
