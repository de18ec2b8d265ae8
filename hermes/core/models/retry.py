"""Asks again: waits out a provider's pause, and repeats what the network cut."""

import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

import anyio

from hermes.types.errors import Disconnected, RateLimited
from hermes.types.events import AgentEvent, Notice, SegmentDiscarded, TextDelta
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit

NOTICED = 5.0
"""Seconds of waiting from which on the person is told."""
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 30.0


class Retrying:
    """A provider that is asked up to `attempts` times. Turns that share it share its pauses.

    Before a cut answer is said anew it emits `SegmentDiscarded(from_seq=0)`: only the hub
    knows the numbers of events, and it fills in that of the segment's first one.
    """

    def __init__(
        self,
        provider: ModelProvider,
        *,
        attempts: int = 3,
        patience: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._provider = provider
        self._attempts = attempts
        self._patience = patience
        self._sleep = sleep
        self._clock = clock
        self._chance = chance
        self._frozen: dict[tuple[str, str], float] = {}

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        spoken = Spoken(emit)
        for attempt in range(1, self._attempts + 1):
            await self._thaw(request.choice, emit)
            spoken.discard()
            try:
                return await self._provider.complete(request, spoken)
            except RateLimited as error:
                self._freeze(request.choice, error)
                if attempt == self._attempts or (error.retry_after or 0.0) > self._patience:
                    raise
                if error.retry_after is None:
                    await self._back_off(attempt, emit)
            except Disconnected:
                if attempt == self._attempts:
                    raise
                await self._back_off(attempt, emit)
        raise AssertionError("the last attempt returns or raises")

    async def _thaw(self, choice: ModelChoice, emit: Emit) -> None:
        """Waits until the provider may be called; another turn may prolong it meanwhile."""
        while (left := self._frozen.get(_place(choice), 0.0) - self._clock()) > 0:
            if left > self._patience:
                raise RateLimited(
                    f"{choice.provider} asks for a pause of {left:.0f} s: try again after it", left
                )
            if left > NOTICED:
                emit(Notice(text=f"the model asks for a pause of {left:.0f} s"))
            # Turns that wait for the same moment must not all call in it.
            await self._sleep(left * (1 + 0.1 * self._chance()))

    def _freeze(self, choice: ModelChoice, error: RateLimited) -> None:
        if error.retry_after is not None:
            until = self._clock() + error.retry_after
            place = _place(choice)
            self._frozen[place] = max(until, self._frozen.get(place, until))

    async def _back_off(self, attempt: int, emit: Emit) -> None:
        if attempt > 1:
            emit(Notice(text="the model does not answer yet: trying again"))
        longest = min(FIRST_BACKOFF * 2 ** (attempt - 1), LONGEST_BACKOFF)
        await self._sleep(longest * (0.5 + 0.5 * self._chance()))


class Spoken:
    """Passes events on and remembers whether there is text among them that nobody took back."""

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
        """Tells readers to drop what an attempt said, if it said anything."""
        if self._text:
            self(SegmentDiscarded(from_seq=0))


def _place(choice: ModelChoice) -> tuple[str, str]:
    return choice.provider, choice.base_url


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait as the headers say it: a number, milliseconds or a date."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return _seconds(float(milliseconds) / 1000)
        if (said := headers.get("Retry-After")) is None:
            return None
        if said.replace(".", "", 1).isdigit():
            return _seconds(float(said))
        date = parsedate_to_datetime(said)
    except ValueError:
        return None
    return _seconds((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)


def _seconds(wait: float) -> float | None:
    # Nobody means for ever.
    return max(0.0, wait) if math.isfinite(wait) else None
