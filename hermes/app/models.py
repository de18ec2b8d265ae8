"""Calls, lists and downloads models for the command line, without a gateway."""

from collections.abc import Callable, Collection

from msgspec.structs import replace

from hermes.app.agent import choose_model
from hermes.app.builtins import all_plugins, configured_models
from hermes.app.gateway import http_session
from hermes.control.routing import DEFAULT_AGENT
from hermes.core.models.catalog import LOCAL
from hermes.core.models.client import ModelClient
from hermes.core.models.download import fetch
from hermes.core.models.local import EMBEDDED, check_installed, local_models
from hermes.core.models.model_discovery import ModelDiscovery
from hermes.core.models.wires import find_wire
from hermes.settings import Settings
from hermes.types.errors import ConfigError
from hermes.types.messages import AssistantMessage, Sampling, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.profile import AgentProfile, ModelChoice
from hermes.types.protocols import Emit


def model_problem(settings: Settings) -> Callable[[str], str | None]:
    # Plugins are loaded once, because `problem` is called for many requests.
    models, profile = configured_models(settings, all_plugins()), AgentProfile(id=DEFAULT_AGENT)

    def problem(model: str) -> str | None:
        try:
            choose_model(models, profile, model)
        except ConfigError:
            provider = models.catalog.find(model.partition("/")[0])
            if provider and provider.key_required and not provider.key(settings.sources.environ):
                return f"The provider {provider.name!r} has no key: set {provider.keys[0]}"
            return ""
        return None

    return problem


def ignored_options(settings: Settings) -> Callable[[str | None, Sampling], Collection[str]]:
    models, profile = configured_models(settings, all_plugins()), AgentProfile(id=DEFAULT_AGENT)
    # The settings never change in a running process, so this model is looked up only once.
    profile = replace(profile, model=models.main())

    def ignored(model: str | None, sampling: Sampling) -> Collection[str]:
        try:
            choice = choose_model(models, profile, model)
        except ConfigError:
            # The model can't be used, so the turn will fail with an error that says what to do.
            return ()
        return find_wire(models.wires, choice.wire).ignored_options(choice, sampling)

    return ignored


async def refresh_models(settings: Settings, endpoint: ModelChoice, *, fresh: bool) -> None:
    models = configured_models(settings, all_plugins())
    async with http_session() as session:
        discovery = ModelDiscovery(session, models.wires, models.cache)
        await (discovery.renew if fresh else discovery.current)(endpoint)


async def call_model(
    settings: Settings, choice: ModelChoice, text: str, emit: Emit
) -> AssistantMessage:
    request = ModelRequest(
        choice=choice, system="", messages=[UserMessage(text=text)], step="test_0"
    )
    models = configured_models(settings, all_plugins())
    async with http_session() as session:
        client, environ = ModelClient(session, models.wires), settings.sources.environ
        async with local_models(settings.home.models, client, environ) as local:
            model = local if choice.provider == LOCAL else client
            return await model.complete(request, emit)


async def download_model(settings: Settings, progress: Callable[[int, int], None]) -> str:
    check_installed()
    await fetch(settings.home.models, progress, settings.sources.environ)
    return EMBEDDED
