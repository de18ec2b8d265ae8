"""Limits the rate of calls to each chat."""

import time

import anyio

from hermes.types.identity import Target


class RateGate:
    """Keeps the platform's minimum interval between two calls to a chat. If the platform requests a
    pause, the chat is frozen: no call is made until the pause is over.

    The end of a freeze is a wall-clock time, because it is stored and read again after a restart.
    """

    def __init__(self) -> None:
        self._free_at: dict[tuple[str, str], float] = {}

    def freeze(self, account: str, chat_id: str, until: float) -> None:
        key = (account, chat_id)
        self._free_at[key] = max(until, self._free_at.get(key, 0.0))

    def wait_for(self, target: Target) -> float:
        """Returns the seconds until a call may be made; 0 if it may be made now."""
        return max(self._free_at.get((target.account, target.chat_id), 0.0) - time.time(), 0.0)

    async def enter(self, target: Target, interval: float) -> None:
        """Waits until a call may be made. The next call may be made `interval` seconds later."""
        # The freeze may have been extended while we slept.
        while (seconds := self.wait_for(target)) > 0:  # noqa: ASYNC110
            await anyio.sleep(seconds)
        key = (target.account, target.chat_id)
        if interval:
            self._free_at[key] = time.time() + interval
        else:
            self._free_at.pop(key, None)
