"""Pauses between the messages of a delivery, as if a person were typing them."""

import logging
import random

import anyio

from hermes.control.rate_gate import Priority, RateGate
from hermes.types.errors import HermesError, RateLimited
from hermes.types.identity import Target
from hermes.types.platforms import CanType, PlatformAdapter
from hermes.types.value import Value

log = logging.getLogger(__name__)


class HumanPace(Value):
    """The shortest and the longest pause in seconds. There is no pause if the longest is 0."""

    shortest: float = 0.0
    longest: float = 0.0

    async def pause(self, gate: RateGate, adapter: PlatformAdapter, target: Target) -> None:
        """Waits for a random time. During the wait, shows the typing indicator if the platform has
        one."""
        if not self.longest:
            return
        left = random.uniform(self.shortest, self.longest)  # noqa: S311  # not a secret
        while left > 0:
            if isinstance(adapter, CanType):
                await _type(gate, adapter, adapter.limits.chat_interval, target)
            seconds = min(left, adapter.limits.typing_interval)
            await anyio.sleep(seconds)
            left -= seconds


async def _type(gate: RateGate, adapter: CanType, interval: float, target: Target) -> None:
    await gate.enter(target, interval, Priority.PROGRESS)
    try:
        await adapter.typing(target)
    except RateLimited:
        raise
    except HermesError as error:
        log.info("the typing indicator was not shown in a chat of %s: %s", target.account, error)
