"""The story of a newcomer's first evening with the agent, from the pairing to a restart."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from click.testing import CliRunner
from msgspec.structs import replace

from hermes.app.application import Application
from hermes.control.gateway import Gateway
from hermes.control.pairing import ALPHABET, WELCOME
from hermes.core.tools.send_message import send_message
from hermes.core.tools.write_file import write_file
from hermes.entry.cli.main import cli
from hermes.settings.sections import AccessSettings
from hermes.testing.evening_chats import AgentMessage, EveningChat
from hermes.testing.running import QUIET, held, running
from hermes.testing.scripted import Answer, ScriptedModel, calls, says
from hermes.testing.stores import store_url
from hermes.types.events import SegmentEnded, TextDelta
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit

CODE = re.compile(rf"\b[{ALPHABET}]{{8}}\b")
OWNERS = ("telegram:1",)
"""The owner of the gateway, who writes in no chat of this story. Because there is an owner, the
newcomer is paired as an ordinary user."""
FILE, RECIPE = "recipe.txt", "500 g flour\n350 g water\n10 g salt\n"


async def hermes(home: Path, *args: str) -> str:
    """Runs a `hermes` command with this home, as a person does in a terminal while the gateway
    runs. Returns its output. Fails if the command fails."""
    environ = {"HERMES_HOME": str(home), "HERMES_STORE_URL": store_url(home)}
    run = partial(CliRunner(env=environ).invoke, cli, args, obj=Application())
    done = await anyio.to_thread.run_sync(run)
    assert done.exit_code == 0, done.output
    return done.stdout


@asynccontextmanager
async def serving(
    home: Path, chats: Sequence[EveningChat], model: ScriptedModel
) -> AsyncIterator[Gateway]:
    """Runs a gateway that serves the chats until the block ends. The gateway and the `hermes`
    command know one owner, and everybody else must be paired."""
    (home / "config.yaml").write_text(f"owners: {list(OWNERS)}\n")
    conditions = replace(
        QUIET,
        access=AccessSettings(owners=OWNERS),
        tools=(write_file, send_message),
        targets=tuple(chat.target for chat in chats),
    )
    async with running(home, [chat.adapter() for chat in chats], model, conditions) as gateway:
        yield gateway


def person_texts(request: ModelRequest) -> list[str]:
    """Returns the texts that people wrote, from the messages of the request."""
    return [one.text for one in request.messages if isinstance(one, UserMessage)]


async def paired(home: Path, chat: EveningChat) -> str:
    """Lets a stranger write and the owner approve the stranger's code. Returns the output of the
    approval."""
    await chat.opens()
    chat.says("Hello? May I ask something?")
    await chat.until(lambda shown: CODE.search(_last(shown)))
    offer = _last(chat.shown())
    code = CODE.findall(offer)[-1]
    assert f"hermes pairing approve {chat.account} {code}" in offer
    approved = await hermes(home, "pairing", "approve", chat.account, code)
    await chat.until(lambda shown: _last(shown) == WELCOME)
    return approved


def grows(first: str, go: anyio.Event, rest: str) -> Answer:
    """Returns an answer that says `first`, waits for the event, and then says `rest`."""

    async def answer(_request: ModelRequest, emit: Emit) -> AssistantMessage:
        emit(TextDelta(text=first))
        await go.wait()
        emit(TextDelta(text=rest))
        emit(SegmentEnded())
        return AssistantMessage(text=first + rest)

    return answer


class FirstEvening:
    """The story. Each method is a scene, and fails if the chat does not show what it must show."""

    def __init__(self, home: Path, chat: EveningChat) -> None:
        self.home = home
        self.chat = chat
        self._grow, self._answer = anyio.Event(), anyio.Event()
        sending = {"to": "origin", "text": "The recipe:", "files": [FILE]}
        self.model = ScriptedModel(
            [
                grows("Mix flour and water.", self._grow, " Then wait until tomorrow."),
                held(self._answer, says("Two percent of the flour.")),
                says("Forty minutes."),
                says("Then use three times as much."),
                grows("Rye was first grown in", anyio.Event(), ""),
                calls(("write_file", {"path": FILE, "content": RECIPE})),
                calls(("send_message", sending)),
                says("Enjoy your bread."),
            ]
        )
        self.restarted = ScriptedModel([says("You asked how to bake bread.")])
        """The model of the gateway after the restart."""

    async def play(self) -> str:
        """Plays all scenes. Returns the key of the message that asks for the file."""
        async with serving(self.home, [self.chat], self.model):
            await self.pairing()
            await self.growing_answer()
            await self.three_messages()
            await self.stop()
            asked = await self.file()
        async with serving(self.home, [self.chat], self.restarted):
            await self.continuation()
        return asked

    async def pairing(self) -> None:
        approved = await paired(self.home, self.chat)
        assert approved.startswith(f"paired as user: user {self.chat.user} of {self.chat.account}")
        assert self.model.requests == []

    async def growing_answer(self) -> None:
        self.chat.says("How do I bake bread?")
        await self.chat.until(lambda shown: _last(shown).startswith("Mix flour"))
        # The model has not said more yet, so the chat shows a part of the answer.
        part = self.chat.shown()[-1].text
        self._grow.set()
        await self._until_last("Mix flour and water. Then wait until tomorrow.")
        assert part in self.chat.shown()[-1].versions[:-1]

    async def three_messages(self) -> None:
        """Three messages come at once. The first one starts a turn, and the others wait. The last
        one is edited while it waits."""
        before = len(self.chat.shown())
        self.chat.says("How much salt?")
        self.chat.says("How long in the oven?")
        last = self.chat.says("And for two loaves?")
        await self.chat.until(lambda shown: "Queued (2)" in _last(shown))
        self.chat.edits(last, "And for three loaves?")
        # The gateway reads events in order, so it has read the edit when it answers this command.
        self.chat.says("/status")
        await self.chat.until(lambda shown: "2 queued." in _last(shown))
        self._answer.set()
        await self._until_last("Then use three times as much.")
        texts = [one.text for one in self.chat.shown()[before:]]
        assert [text[: len("Queued (1)")] for text in texts[:2]] == ["Queued (1)", "Queued (2)"]
        assert texts[3:] == [
            "Two percent of the flour.",
            "Forty minutes.",
            "Then use three times as much.",
        ]
        assert person_texts(self.model.requests[3])[-1] == "And for three loaves?"

    async def stop(self) -> None:
        self.chat.says("Tell me all about rye.")
        await self.chat.until(lambda shown: _last(shown).startswith("Rye was"))
        self.chat.says("/stop")
        await self.chat.until(
            lambda shown: (
                [one.text for one in shown[-2:]]
                == ["Rye was first grown in\n\n(stopped: by you)", "Stopped."]
            )
        )

    async def file(self) -> str:
        asked = self.chat.says("Send me the recipe as a file.")
        await self._until_last("Enjoy your bread.")
        text, file = self.chat.shown()[-3:-1]
        assert (text.text, file.file) == ("The recipe:", FILE)
        return asked

    async def continuation(self) -> None:
        """The model of the restarted gateway sees the whole conversation."""
        before = len(self.chat.shown())
        self.chat.says("What did I ask first?")
        await self._until_last("You asked how to bake bread.")
        assert len(self.chat.shown()) == before + 1
        assert person_texts(self.restarted.requests[0]) == [
            "How do I bake bread?",
            "How much salt?",
            "How long in the oven?",
            "And for three loaves?",
            "Tell me all about rye.",
            "Send me the recipe as a file.",
            "What did I ask first?",
        ]

    async def _until_last(self, text: str) -> None:
        await self.chat.until(lambda shown: _last(shown) == text)


def _last(shown: Sequence[AgentMessage]) -> str:
    return shown[-1].text if shown else ""
