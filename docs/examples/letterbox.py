"""A plugin that uses every hook. Its chat platform is a folder, and it adds a second agent.

A message is a file `in/<chat>-<anything>.txt`. The answer is the file `out/<chat>-<key>.txt`.
"""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import msgspec

from hermes import hookimpl, tool
from hermes.boundary.execution.local import LocalBackend, LocalSandbox
from hermes.core.models.openai_chat import OpenAIChat
from hermes.text.markdown import print_plain
from hermes.types import execution
from hermes.types.agents import AgentHome
from hermes.types.commands import CommandContext, CommandReply, SlashCommand
from hermes.types.identity import AgentId, Source, Target
from hermes.types.messages import Content, MessageEvent, MessageRef, Origin, Said
from hermes.types.platforms import Cursor, Platform, PlatformLimits
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Accept
from hermes.types.store import Work
from hermes.types.tools import AnyTool


class LetterboxConfig(msgspec.Struct, frozen=True):
    folder: str = ""


def boxes(config: LetterboxConfig) -> Sequence[str]:
    return ["letterbox"] if config.folder else []


class Letterbox:
    limits = PlatformLimits(text=1000, deduplicates=True)
    render, measure = staticmethod(print_plain), staticmethod(len)

    def __init__(self, account: str, config: LetterboxConfig) -> None:
        self.account, self._folder = account, anyio.Path(config.folder)

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        for name in ("in", "out"):
            await (self._folder / name).mkdir(parents=True, exist_ok=True)
        while True:
            ready()
            for path in sorted([one async for one in (self._folder / "in").glob("*-*.txt")]):
                await accept(self._event(path.name, await path.read_text()))
                await path.unlink()  # Acknowledge after the message was accepted.
            await anyio.sleep(0.05)

    def _event(self, name: str, text: str) -> MessageEvent:
        chat, account = name.partition("-")[0], self.account
        place = {"platform": "letterbox", "account": account, "chat_kind": "private"}
        return MessageEvent(
            dedupe_key=f"{account}:{name}",
            source=msgspec.convert({**place, "chat_id": chat, "user_id": chat}, Source),
            origin=Origin(reply_to=Target(account=account, chat_id=chat)),
            received_at=time.time(),
            body=Said(text=text),
        )

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        path = self._folder / "out" / f"{target.chat_id}-{key}.txt".replace("/", "_")
        await path.write_text(content.text)
        return MessageRef(id=path.name)


class Telegraph(OpenAIChat):
    """The wire format of chat completions, but at another address and with an additional header."""

    name = "telegraph"

    def url(self, choice: ModelChoice) -> str:
        return f"{choice.base_url}/telegraph"

    def headers(self, choice: ModelChoice) -> Mapping[str, str]:
        return {"X-Telegraph-Key": choice.api_key}


class PoliteSandbox(LocalSandbox):
    async def run(
        self,
        command: str,
        observer: execution.CommandObserver,
        *,
        workdir: str = ".",
        seconds: float,
        place: execution.CommandPlace | None = None,
    ) -> execution.CommandOutcome:
        polite = f"nice -n 19 sh -c {shlex.quote(command)}"
        return await super().run(polite, observer, workdir=workdir, seconds=seconds, place=place)


class PoliteBackend(LocalBackend):
    """Runs commands on this machine, at the lowest priority."""

    @classmethod
    def of(cls, options: execution.BackendOptions) -> "PoliteBackend":
        return cls(options.processes, options.environment)

    async def open(self, scope: execution.SandboxScope) -> PoliteSandbox:
        return PoliteSandbox(scope, self.commands)


def postmark(text: str) -> str:
    """Stamp a text with the mark of the office."""
    return f"[stamped] {text}"


def ping(command: CommandContext) -> Work[CommandReply]:
    yield from ()
    return CommandReply(reply=f"pong {command.argument}".strip())


class LetterboxPlugin:
    @hookimpl
    def register_platforms(self) -> Sequence[Platform[LetterboxConfig]]:
        return [Platform(name="letterbox", config=LetterboxConfig, accounts=boxes, make=Letterbox)]

    @hookimpl
    def register_tools(self) -> Sequence[AnyTool]:
        return [tool(postmark, read_only=True)]

    @hookimpl
    def register_models(self) -> Sequence[Telegraph]:
        return [Telegraph()]

    @hookimpl
    def register_backends(self) -> Sequence[execution.BackendManifest]:
        return [execution.BackendManifest(name="polite", make=PoliteBackend.of)]

    @hookimpl
    def register_commands(self) -> Sequence[SlashCommand]:
        return [SlashCommand(name="ping", help="answer at once", action=ping)]

    @hookimpl
    def register_agents(self, home: Path) -> Sequence[AgentHome]:
        return [AgentHome(id=AgentId("clerk"), home=home / "profiles" / "clerk")]

    @hookimpl
    def select_agent(self, event: MessageEvent) -> AgentId | None:
        return AgentId("clerk") if event.source.chat_id == "office" else None


plugin = LetterboxPlugin()
