"""The agent inside a Python program: `from hermes import Agent`."""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
from msgspec.structs import replace

from hermes.app import Parts, open_gateway
from hermes.control.gateway import Gateway
from hermes.entry.cli.main import sole
from hermes.settings import ENVIRON, load
from hermes.state import turns
from hermes.streaming.final import final_text
from hermes.streaming.fold import Folder
from hermes.types.errors import HermesError
from hermes.types.events import AgentEvent, SegmentDiscarded, TextDelta, TurnFinished
from hermes.types.identity import Source, TurnId, new_id
from hermes.types.messages import Accepted, MessageEvent, Refused, Said
from hermes.types.tools import AnyTool

OWN_SET = ""
"""The toolset of tools that name none: an embedder's."""
STOP_SECONDS = 2.0
"""That a turn nobody waits for any more gets to be stopped in."""
CUT_OFF = (
    "the connection to the model was cut in the middle of the answer: ask again, or use ask(),"
    " which gives the answer when it is whole"
)


class TurnFailed(HermesError):
    """There is no answer; the text says why."""


class Agent:
    """An agent with your tools, on the models and the store of a home.

    Conversations are kept and gone on with, also after a crash; each has a name.
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
        """`tools` are yours, `toolsets` names what it may use of ours: none unless you say so."""
        given = {
            "HERMES_MODEL": model,
            "HERMES_CUSTOM_BASE_URL": base_url,
            "HERMES_CUSTOM_API_KEY": api_key,
        }
        environ: Mapping[str, str] = {**ENVIRON, **{k: v for k, v in given.items() if v}}
        settings = load(Path(home) if home else None, environ)
        own = replace(
            settings.agent,
            toolsets=(OWN_SET, *toolsets),
            system_prompt=instructions or settings.agent.system_prompt,
        )
        self._settings = replace(settings, agent=own)
        self._tools = tuple(tools)
        self._stack = AsyncExitStack()
        self._gateway: Gateway | None = None

    async def __aenter__(self) -> Self:
        parts = Parts(own_tools=self._tools)
        opened = open_gateway(self._settings, parts, terminal=True)
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

    async def ask(self, text: str, conversation: str = "default") -> str:
        """The whole answer; TurnFailed when there is none. To cancel it stops the turn."""
        folder = Folder()
        async with aclosing(self._events(text, conversation)) as events:
            async for seq, event in events:
                folder.feed(seq, event)
        view = folder.view()
        if view.outcome is None or view.outcome.outcome != "completed":
            raise TurnFailed(final_text(view))
        return final_text(view)

    async def stream(self, text: str, conversation: str = "default") -> AsyncGenerator[str]:
        """The answer as it is written, piece by piece; TurnFailed when there is none.

        Nothing that was yielded is taken back: where the model is cut off and begins anew, that
        is a TurnFailed too. To close the iterator stops the turn.
        """
        last = 0
        async with aclosing(self._events(text, conversation)) as events:
            async for seq, event in events:
                match event:
                    case TextDelta(text=piece):
                        last = seq
                        yield piece
                    case SegmentDiscarded(from_seq=first) if first <= last:
                        raise TurnFailed(CUT_OFF)
                    case TurnFinished(outcome="failed" | "stopped", text=reason):
                        raise TurnFailed(reason)

    async def events(self, text: str, conversation: str = "default") -> AsyncGenerator[AgentEvent]:
        """All that happens while it is answered: words, tools, questions, usage.

        To close the iterator stops the turn.
        """
        async with aclosing(self._events(text, conversation)) as events:
            async for _, event in events:
                yield event

    async def _events(self, text: str, conversation: str) -> AsyncGenerator[tuple[int, AgentEvent]]:
        if self._gateway is None:
            raise TurnFailed("the agent is not at work: use it inside `async with Agent(…)`")
        receipt = await self._gateway.accept(_said(text, conversation))
        match receipt:
            case Refused(reason=reason):
                raise TurnFailed(reason)
            case Accepted(reply=str(reply)):
                yield 1, TextDelta(text=reply)
                yield 2, TurnFinished(outcome="completed")
                return
        assert isinstance(receipt, Accepted), "a fresh message was never taken before"
        assert receipt.turn is not None, "what is no command has a turn"
        turn, finished = TurnId(receipt.turn), False
        try:
            with self._gateway.hub.following(turn) as log:
                seq = receipt.after
                while not finished:
                    events = log.read(seq)
                    for seq, event in events:
                        yield seq, event
                    finished = log.finished and not log.read(seq)
                    if not finished:
                        await log.changed()
        finally:
            if not finished:
                await _stop(self._gateway, turn)


async def _stop(gateway: Gateway, turn: TurnId) -> None:
    """Ends a turn that nobody waits for any more."""
    with anyio.move_on_after(STOP_SECONDS, shield=True), suppress(HermesError):
        await gateway.store.run(turns.request_stop, turn, "program")
        gateway.notice_change()


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
        received_at=time.time(),
        body=Said(text=text),
    )
