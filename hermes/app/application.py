"""The functions that the command line calls. Each function imports only the modules that it
needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from pathlib import Path

    from hermes.control.gateway import Gateway
    from hermes.control.messenger import ChatMessenger
    from hermes.settings import Settings
    from hermes.types.checks import Check
    from hermes.types.commands import SlashCommand
    from hermes.types.context_files import ContextFiles
    from hermes.types.danger import Verdict
    from hermes.types.deployment import GatewayRegistration, RunningGateway, StoreNode
    from hermes.types.messages import AssistantMessage, Origin, Sampling
    from hermes.types.offers import ModelOffers, ModelResolver
    from hermes.types.platforms import AnyPlatform
    from hermes.types.profile import ModelChoice
    from hermes.types.protocols import Emit
    from hermes.types.sandboxes import HomeSandboxes
    from hermes.types.store import Store
    from hermes.types.store_copy import CopyResult, CopyStep
    from hermes.types.turns import Prompt

# Each method imports only the modules that it needs, so that `hermes --help` starts quickly.
# ruff: noqa: PLC0415


class Application:
    """Implements `hermes.entry.cli.runtime.Runtime`, where each method is documented."""

    def open_gateway(
        self, settings: Settings, *, terminal: bool
    ) -> AbstractAsyncContextManager[Gateway]:
        from hermes.app.gateway import limit_threads, open_gateway
        from hermes.boundary.execution.process_tree import forbid_inspection

        limit_threads()
        forbid_inspection()
        return open_gateway(settings, terminal=terminal)

    def open_store(self, settings: Settings) -> AbstractAsyncContextManager[Store]:
        from hermes.app.stores import home_store

        return home_store(settings)

    def open_messenger(self, settings: Settings) -> AbstractAsyncContextManager[ChatMessenger]:
        from hermes.app.messenger import open_messenger

        return open_messenger(settings)

    async def store_nodes(self, settings: Settings) -> Sequence[StoreNode]:
        from hermes.app.stores import store_nodes

        return await store_nodes(settings)

    async def copy_store(
        self, settings: Settings, to: str, report: Callable[[CopyStep], None]
    ) -> CopyResult:
        from hermes.app.store_copy import copy_store

        return await copy_store(settings, to, report)

    def commands(self) -> Sequence[SlashCommand]:
        from hermes.app.gateway import all_commands

        return all_commands()

    def platforms(self) -> Sequence[AnyPlatform]:
        from hermes.app.builtins import all_plugins

        return all_plugins().platforms()

    def register_gateway(self, run: Path) -> AbstractContextManager[GatewayRegistration]:
        from hermes.state.pidfile import registered

        return registered(run)

    def running_gateways(self, run: Path) -> list[RunningGateway]:
        from hermes.state.pidfile import all_running

        return all_running(run)

    def delete_session_files(self, settings: Settings, session: str) -> None:
        from hermes.app.builtins import all_plugins
        from hermes.app.gateway import delete_session_files

        delete_session_files(settings, all_plugins(), session)

    def has_room(self, settings: Settings) -> bool:
        from hermes.state.disk import has_room

        return has_room(settings.home.root)

    def write_private(self, path: Path, text: str) -> None:
        from hermes.state.paths import write_private

        write_private(path, text)

    async def check(self, settings: Settings) -> Sequence[str]:
        from hermes.app.inspection import check

        return await check(settings)

    def open_sandboxes(self, settings: Settings) -> AbstractAsyncContextManager[HomeSandboxes]:
        from hermes.app.sandboxes import open_sandboxes

        return open_sandboxes(settings)

    async def diagnose(self, home: Path, environ: Mapping[str, str]) -> Sequence[Check]:
        from hermes.app.doctor import diagnose

        return await diagnose(home, environ)

    async def new_prompt(self, settings: Settings, platform: str, origin: Origin) -> Prompt:
        from hermes.app.inspection import new_prompt

        return await new_prompt(settings, platform, origin)

    async def run_housekeeping(self, settings: Settings) -> None:
        from hermes.app.builtins import all_plugins
        from hermes.app.housekeeping import run_housekeeping

        await run_housekeeping(settings, all_plugins())

    def api_key(self, settings: Settings) -> str:
        from hermes.settings.keys import create_key, read_key

        return settings.api_server.key or read_key(settings.home) or create_key(settings.home)

    def secrets(self, settings: Settings) -> frozenset[str]:
        from hermes.app.builtins import all_plugins
        from hermes.app.gateway import agent_settings, all_secrets

        return all_secrets(agent_settings(settings, all_plugins()).values())

    def unused_data(self, settings: Settings) -> str:
        from hermes.state.hermes_agent import found_data

        installed = {platform.name for platform in self.platforms()}
        return str(found_data(settings.home.root, settings.sources.environ, installed))

    def context_files(self, settings: Settings) -> ContextFiles:
        from hermes.state.context_trust import ContextTrust

        return ContextTrust(settings.files.context)

    def judge_command(self, command: str) -> Verdict:
        from hermes.core.danger.detector import judge

        return judge(command)

    def models(self, settings: Settings) -> ModelResolver:
        from hermes.app.builtins import all_plugins, configured_models

        return configured_models(settings, all_plugins())

    def offers(self, settings: Settings) -> ModelOffers:
        from hermes.app.builtins import all_plugins, configured_models
        from hermes.core.models.offers import OfferedModels

        return OfferedModels(configured_models(settings, all_plugins()))

    def model_problem(self, settings: Settings) -> Callable[[str], str | None]:
        from hermes.app.models import model_problem

        return model_problem(settings)

    def ignored_options(
        self, settings: Settings
    ) -> Callable[[str | None, Sampling], Collection[str]]:
        from hermes.app.models import ignored_options

        return ignored_options(settings)

    async def refresh_models(
        self, settings: Settings, endpoint: ModelChoice, *, fresh: bool
    ) -> None:
        from hermes.app.models import refresh_models

        await refresh_models(settings, endpoint, fresh=fresh)

    async def call_model(
        self, settings: Settings, choice: ModelChoice, text: str, emit: Emit
    ) -> AssistantMessage:
        from hermes.app.models import call_model

        return await call_model(settings, choice, text, emit)

    async def download_model(self, settings: Settings, progress: Callable[[int, int], None]) -> str:
        from hermes.app.models import download_model

        return await download_model(settings, progress)
