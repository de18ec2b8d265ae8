"""Runs an agent inside a Python program: `from hermes import Agent`."""

import inspect
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from msgspec.structs import replace

from hermes.app.gateway import GatewayOverrides, open_gateway
from hermes.control.gateway import Gateway
from hermes.entry.cli.main import sole
from hermes.hookspecs import hookimpl
from hermes.settings import ENVIRON, load
from hermes.streaming.final import final_text
from hermes.streaming.fold import EventFold
from hermes.types.errors import ConfigError, HermesError
from hermes.types.events import AgentEvent, Envelope, SegmentDiscarded, TextDelta, TurnFinished
from hermes.types.identity import OWNER, Principal, Source, TurnId, new_id
from hermes.types.messages import Accepted, MessageEvent, Origin, Refused, Said
from hermes.types.tools import AnyTool

OWN_SET = ""
"""The toolset of every tool that names no toolset, such as a tool that you pass to `Agent`. The
name of this toolset is empty."""
_KEY = "HERMES_CUSTOM_API_KEY"
ABANDON_SECONDS = 2.0
"""Maximum number of seconds that the agent spends on stopping a turn whose caller no longer waits
for the answer."""
CUT_OFF = (
    "the connection to the model was cut in the middle of the answer: ask again, or use ask(),"
    " which returns the answer only when it is complete"
)


class TurnFailed(HermesError):
    """The turn has no answer. The text of the error says why; programs read `code`, `status` and
    `retry_after`."""

    code = "agent_error"

    def __init__(self, message: str, finish: TurnFinished | None = None) -> None:
        super().__init__(message, finish.retry_after if finish else None)
        if finish is not None and finish.outcome == "failed":
            self.code = finish.code or self.code
            self.status = finish.status


class Agent:
    """An agent with your tools. It uses the models and the store that are configured in a home, the
    folder with the settings and data of Hermes.

    If you name no conversation, each `Agent` begins a new conversation. If you name a conversation,
    later programs can continue that conversation, even after a crash.
    """

    def __init__(
        self,
        *,
        home: Path | str | None = None,
        model: str = "",
        base_url: str = "",
        api_key: str = "",
        tools: Sequence[AnyTool] = (),
        toolsets: Sequence[str] = (),
        instructions: str = "",
    ) -> None:
        """`tools` are your own tools. `toolsets` names the built-in toolsets that the agent may
        use. A key that was configured for another address is not sent to `base_url`: pass
        `api_key`, if the server needs a key."""
        for one in tools:
            _check_tool(one)
        root = Path(home) if home else None
        given = {"HERMES_MODEL": model, "HERMES_CUSTOM_BASE_URL": base_url, _KEY: api_key}
        environ = {**ENVIRON, **{k: v for k, v in given.items() if v}}
        if base_url and not api_key:
            configured = load(root).model.base_url.rstrip("/")
            if configured not in ("", base_url.rstrip("/")):
                environ.pop(_KEY, None)  # This key is for the configured address.
        settings = load(root, environ)
        own = replace(
            settings.agent,
            toolsets=(OWN_SET, *toolsets),
            system_prompt=instructions or settings.agent.system_prompt,
        )
        self._settings = replace(settings, agent=own)
        self._tools = tuple(tools)
        self._stack = AsyncExitStack()
        self._gateway: Gateway | None = None
        self._conversation = new_id()
        """The id of the conversation that is used if a call names no conversation."""

    async def __aenter__(self) -> Self:
        overrides = GatewayOverrides(plugins=[_OwnTools(self._tools)])
        opened = open_gateway(self._settings, overrides, terminal=True)
        try:
            self._gateway = await self._stack.enter_async_context(opened)
        except BaseExceptionGroup as group:
            error = sole(group)
            if not isinstance(error, HermesError):
                raise
            raise error from None
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def ask(self, text: str, conversation: str | None = None) -> str:
        """Returns the whole answer. Raises TurnFailed if there is no answer. Cancelling the call
        stops the turn."""
        fold = EventFold()
        async with aclosing(self._events(text, conversation)) as events:
            async for envelope in events:
                fold.feed(envelope.seq, envelope.event)
        view = fold.view()
        if view.outcome is None or view.outcome.outcome != "completed":
            raise TurnFailed(final_text(view), view.outcome)
        return final_text(view)

    async def stream(self, text: str, conversation: str | None = None) -> AsyncGenerator[str]:
        """Yields the answer in pieces while the model writes it. Raises TurnFailed if there is no
        answer.

        It also raises TurnFailed if the model is cut off and starts again, because text that was
        yielded can't be taken back. Closing the iterator stops the turn.
        """
        last = 0
        async with aclosing(self._events(text, conversation)) as events:
            async for envelope in events:
                match envelope.event:
                    case TextDelta(text=piece):
                        last = envelope.seq
                        yield piece
                    case SegmentDiscarded(from_seq=first) if first <= last:
                        raise TurnFailed(CUT_OFF)
                    case TurnFinished(outcome="failed" | "stopped", text=reason) as finish:
                        raise TurnFailed(reason, finish)

    async def events(
        self, text: str, conversation: str | None = None
    ) -> AsyncGenerator[AgentEvent]:
        """Yields all events of the turn: text, tools, questions and usage.

        Closing the iterator stops the turn.
        """
        async with aclosing(self._events(text, conversation)) as events:
            async for envelope in events:
                yield envelope.event

    async def _events(self, text: str, conversation: str | None) -> AsyncGenerator[Envelope]:
        if self._gateway is None:
            raise TurnFailed("the agent is not running: use it inside `async with Agent(…)`")
        name = self._conversation if conversation is None else conversation
        receipt = await self._gateway.accept(_said(text, name))
        match receipt:
            case Refused(reason=reason):
                raise TurnFailed(reason)
            case Accepted(reply=str(reply)):
                turn = TurnId(receipt.id)
                yield Envelope(turn=turn, seq=1, event=TextDelta(text=reply))
                yield Envelope(turn=turn, seq=2, event=TurnFinished(outcome="completed"))
                return
        assert isinstance(receipt, Accepted), "a new message can't be a duplicate"
        assert receipt.turn is not None, "a message that is not a command has a turn"
        turn, over = TurnId(receipt.turn), False
        try:
            async with aclosing(self._gateway.follow(turn, receipt.after)) as envelopes:
                async for envelope in envelopes:
                    over = isinstance(envelope.event, TurnFinished)
                    yield envelope
            over = True
        finally:
            if not over:
                await _stop(self._gateway, turn)


class _OwnTools:
    """A plugin that registers the tools that the program has passed to `Agent`."""

    def __init__(self, tools: Sequence[AnyTool]) -> None:
        self._tools = tools

    @hookimpl
    def register_tools(self) -> Sequence[AnyTool]:
        return self._tools


def _check_tool(given: object) -> None:
    if inspect.isroutine(given):
        name = given.__name__
        raise ConfigError(f"{name} is a function and not a tool: pass tool({name}) instead")


async def _stop(gateway: Gateway, turn: TurnId) -> None:
    """Stops a turn whose caller has left."""
    with anyio.move_on_after(ABANDON_SECONDS, shield=True), suppress(HermesError):
        await gateway.request_stop(turn, "program")


def _said(text: str, conversation: str) -> MessageEvent:
    return MessageEvent(
        dedupe_key=f"embedded:{new_id()}",
        source=Source(
            platform="embedded",
            account="embedded",
            chat_kind="private",
            chat_id=conversation,
            user_id="program",
        ),
        origin=Origin(principal=Principal(name="embedded", person=OWNER)),
        received_at=time.time(),
        body=Said(text=text),
    )
