"""Retries model calls after rate limits and lost connections."""

import logging
import random
import time
from collections.abc import Awaitable, Callable

import anyio

from hermes.types.errors import Disconnected, HermesError, RateLimited
from hermes.types.events import AgentEvent, Notice, SegmentDiscarded, TextDelta
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit

log = logging.getLogger(__name__)

NOTICE_SECONDS = 5.0
"""If a provider requests a pause of more seconds than this, the person who waits for the answer
gets a notice."""
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 30.0


class Retrying:
    """Calls a model up to `attempts` times. If a provider requests a pause, all turns that call
    this provider wait.

    If an attempt fails after it has emitted text, `SegmentDiscarded(from_seq=0)` is emitted before
    the next attempt, so that readers drop this text. The event hub replaces the 0 with the number
    of the first event of the current segment (the text of one model call).
    """

    def __init__(
        self,
        provider: ModelProvider,
        *,
        attempts: int = 3,
        longest_pause: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._provider = provider
        self._attempts = attempts
        self._longest_pause = longest_pause
        self._sleep = sleep
        self._clock = clock
        self._jitter = jitter
        self._paused_until: dict[tuple[str, str], float] = {}

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        tracked = TrackedEmit(emit)
        for attempt in range(1, self._attempts + 1):
            await self._wait_for_pause(request.choice, emit)
            tracked.discard()
            try:
                return await self._call(request, tracked)
            except RateLimited as error:
                self._record_pause(request.choice, error)
                if attempt == self._attempts or (error.retry_after or 0.0) > self._longest_pause:
                    raise
                if error.retry_after is None:
                    await self._back_off(attempt, emit)
            except Disconnected:
                if attempt == self._attempts:
                    raise
                await self._back_off(attempt, emit)
        raise AssertionError("the last attempt returns or raises")

    async def _call(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        try:
            return await self._provider.complete(request, emit)
        except HermesError as error:
            choice = request.choice
            log.warning("%s: a call of %s failed: %s", choice.provider, choice.model, error)
            raise

    async def _wait_for_pause(self, choice: ModelChoice, emit: Emit) -> None:
        """Waits until the end of the pause that the provider has requested. Another turn can extend
        the pause during the wait."""
        while (left := self._paused_until.get(_endpoint(choice), 0.0) - self._clock()) > 0:
            if left > self._longest_pause:
                raise RateLimited(
                    f"{choice.provider} requests a pause of {left:.0f} s: try again after that",
                    left,
                )
            if left > NOTICE_SECONDS:
                emit(Notice(text=f"the model requests a pause of {left:.0f} s"))
            # A random delay is added, so that the waiting turns do not all call at the same moment.
            await self._sleep(left * (1 + 0.1 * self._jitter()))

    def _record_pause(self, choice: ModelChoice, error: RateLimited) -> None:
        if error.retry_after is not None:
            until = self._clock() + error.retry_after
            place = _endpoint(choice)
            self._paused_until[place] = max(until, self._paused_until.get(place, until))

    async def _back_off(self, attempt: int, emit: Emit) -> None:
        if attempt > 1:
            emit(Notice(text="the model does not answer yet: trying again"))
        longest = min(FIRST_BACKOFF * 2 ** (attempt - 1), LONGEST_BACKOFF)
        await self._sleep(longest * (0.5 + 0.5 * self._jitter()))


class TrackedEmit:
    """Passes events on, and records whether the caller has received text that no later event has
    discarded."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._text = False

    def __call__(self, event: AgentEvent) -> None:
        match event:
            case TextDelta():
                self._text = True
            case SegmentDiscarded():
                self._text = False
        self._emit(event)

    def discard(self) -> None:
        """Discards the text of the previous attempt, if that attempt has emitted text."""
        if self._text:
            self(SegmentDiscarded(from_seq=0))


def _endpoint(choice: ModelChoice) -> tuple[str, str]:
    return choice.provider, choice.base_url
