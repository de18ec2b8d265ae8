"""The `hermes` command: joins the command line with the application behind it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from hermes.entry.cli.main import run
from hermes.types.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from pathlib import Path

    from hermes.control.gateway import Gateway
    from hermes.settings import Settings
    from hermes.types.deployment import GatewayRegistration, RunningGateway
    from hermes.types.messages import AssistantMessage
    from hermes.types.profile import ModelChoice
    from hermes.types.protocols import Emit, Store
    from hermes.types.turns import Prompt


class Application:
    """The real thing; imported when a command needs it, so that the others stay quick."""

    def open_gateway(
        self, settings: Settings, *, terminal: bool
    ) -> AbstractAsyncContextManager[Gateway]:
        from hermes.app import limit_threads, open_gateway  # noqa: PLC0415  # half a second

        limit_threads()
        return open_gateway(settings, terminal=terminal)

    def open_store(self, settings: Settings) -> AbstractAsyncContextManager[Store]:
        from hermes.app import home_store  # noqa: PLC0415  # half a second

        return home_store(settings.home)

    def register_gateway(self, run: Path) -> AbstractContextManager[GatewayRegistration]:
        from hermes.state.pidfile import registered  # noqa: PLC0415  # imported by now

        return registered(run)

    def running_gateways(self, run: Path) -> list[RunningGateway]:
        from hermes.state.pidfile import all_running  # noqa: PLC0415  # for a few commands

        return all_running(run)

    def forget_session(self, settings: Settings, session: str) -> None:
        from hermes.app import forget_session  # noqa: PLC0415  # imported by now

        forget_session(settings.home, session)

    async def check(self, settings: Settings) -> None:
        from pathlib import Path  # noqa: PLC0415
        from tempfile import TemporaryDirectory  # noqa: PLC0415

        import aiohttp  # noqa: PLC0415  # slow

        from hermes.app import home_store  # noqa: PLC0415  # half a second
        from hermes.core.models.wires import Wires  # noqa: PLC0415
        from hermes.equipment import Equipment, profile_of  # noqa: PLC0415
        from hermes.settings.models import resolve_auxiliary, resolve_fallbacks  # noqa: PLC0415
        from hermes.state.paths import Home  # noqa: PLC0415
        from hermes.types.identity import DEFAULT_AGENT  # noqa: PLC0415

        profile_of(settings, DEFAULT_AGENT)
        resolve_auxiliary(settings)
        resolve_fallbacks(settings)
        # A store of its own: the home stays as it is.
        with TemporaryDirectory() as folder:
            home = Home(root=Path(folder))
            async with home_store(home) as store, aiohttp.ClientSession() as session:
                equipment = Equipment(settings, store, session, Wires(session))
                equipment.agent(equipment.tools())

    async def new_prompt(self, settings: Settings, platform: str) -> Prompt:
        from hermes.app import new_prompt  # noqa: PLC0415  # half a second

        return await new_prompt(settings, platform)

    async def keep_house(self, settings: Settings) -> None:
        from hermes.app import keep_house  # noqa: PLC0415  # imported by now

        await keep_house(settings)

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
        from hermes.equipment import choose_model  # noqa: PLC0415  # imported by now
        from hermes.types.profile import AgentProfile  # noqa: PLC0415

        try:
            choose_model(settings, AgentProfile(), model)
        except ConfigError:
            return False
        return True

    async def refresh_models(self, settings: Settings, place: ModelChoice, *, fresh: bool) -> None:
        import aiohttp  # noqa: PLC0415  # slow

        from hermes.core.models.listing import ask, renew  # noqa: PLC0415  # slow
        from hermes.settings.facts import lists  # noqa: PLC0415  # imported by now

        async with aiohttp.ClientSession() as session:
            await (renew if fresh else ask)(session, lists(settings), place)

    async def ask_model(
        self, settings: Settings, choice: ModelChoice, text: str, emit: Emit
    ) -> AssistantMessage:
        import aiohttp  # noqa: PLC0415  # slow

        from hermes.core.models.catalog import LOCAL  # noqa: PLC0415
        from hermes.core.models.local import local_models  # noqa: PLC0415  # slow
        from hermes.core.models.wires import Wires  # noqa: PLC0415  # slow
        from hermes.types.messages import UserMessage  # noqa: PLC0415
        from hermes.types.protocols import ModelRequest  # noqa: PLC0415

        asked = [UserMessage(text=text)]
        request = ModelRequest(choice=choice, system="", messages=asked, step="test_0")
        async with aiohttp.ClientSession() as session:
            wires, environ = Wires(session), settings.sources.environ
            async with local_models(settings.home.models, wires, environ) as local:
                model = local if choice.provider == LOCAL else wires
                return await model.complete(request, emit)

    async def fetch_model(self, settings: Settings, progress: Callable[[int, int], None]) -> str:
        from hermes.core.models.download import fetch  # noqa: PLC0415  # slow
        from hermes.core.models.local import EMBEDDED, check_installed  # noqa: PLC0415  # slow

        check_installed()
        await fetch(settings.home.models, progress, settings.sources.environ)
        return EMBEDDED


def main() -> None:
    run(Application())


if __name__ == "__main__":
    main()
