"""The `hermes` command: joins the command line with the application behind it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from hermes.entry.cli.main import run
from hermes.types.errors import ConfigError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from hermes.control.gateway import Gateway
    from hermes.settings import Settings


class Application:
    """The real thing; imported when a command needs it, so that the others stay quick."""

    def open_gateway(
        self, settings: Settings, *, terminal: bool
    ) -> AbstractAsyncContextManager[Gateway]:
        from hermes.app import open_gateway  # noqa: PLC0415  # half a second

        return open_gateway(settings, terminal=terminal)

    async def keep_snapshots(self, settings: Settings) -> None:
        from hermes.app import keep_snapshots  # noqa: PLC0415  # imported by now

        await keep_snapshots(settings.home)

    def api_key(self, settings: Settings) -> str:
        from hermes.state.paths import write_private  # noqa: PLC0415  # imported by now

        path = settings.home.api_key
        kept = path.read_text("utf-8").strip() if path.exists() else ""
        if settings.api_server.key or kept:
            return settings.api_server.key or kept
        made = secrets.token_urlsafe(32)
        write_private(path, f"{made}\n")
        return made

    def can_reach(self, settings: Settings, model: str) -> bool:
        from hermes.app import choose_model  # noqa: PLC0415  # imported by now
        from hermes.types.profile import AgentProfile  # noqa: PLC0415

        try:
            choose_model(settings, AgentProfile(), model)
        except ConfigError:
            return False
        return True


def main() -> None:
    run(Application())


if __name__ == "__main__":
    main()
