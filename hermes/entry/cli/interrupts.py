"""Receives Ctrl-C and SIGTERM for a chat: they interrupt the current operation, not the process."""

import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio


class Interrupts:
    """Passes each signal to the code that waits for a signal. If no code waits, the signal is
    ignored."""

    def __init__(self) -> None:
        self.leaving = False
        """Whether SIGTERM has arrived, so that the process must end."""
        self._interrupt: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def handled(self) -> AsyncIterator[None]:
        """Receives the signals until the block ends."""
        async with anyio.create_task_group() as group:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                group.start_soon(self._listen, signals)
                yield
                group.cancel_scope.cancel()

    @contextmanager
    def calls(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """Calls the function if a signal arrives within the block."""
        self._interrupt = interrupt
        try:
            yield
        finally:
            self._interrupt = lambda: None

    @contextmanager
    def cancels(self) -> Iterator[anyio.CancelScope]:
        """Yields a cancel scope. A signal that arrives within the block cancels this scope."""
        with anyio.CancelScope() as scope, self.calls(scope.cancel):
            yield scope

    async def _listen(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for number in signals:
            self.leaving = self.leaving or number == signal.SIGTERM
            self._interrupt()
