"""What the commands need of the application, without knowing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from hermes.control.gateway import Gateway
    from hermes.settings import Settings


class Runtime(Protocol):
    """The application, as `hermes.__main__` hands it to the commands."""

    def open_gateway(
        self, settings: Settings, *, terminal: bool
    ) -> AbstractAsyncContextManager[Gateway]:
        """A gateway at work on the home's store; it drains when the block ends."""
        ...

    async def keep_snapshots(self, settings: Settings) -> None:
        """Copies the store now and then, until cancelled."""
        ...

    def api_key(self, settings: Settings) -> str:
        """The key of the API's clients; made and kept in the home when none is configured."""
        ...

    def can_reach(self, settings: Settings, model: str) -> bool:
        """Whether a `provider/model` can be asked with what is configured."""
        ...
