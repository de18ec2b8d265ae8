"""Creates the execution backend that an agent's settings name."""

from collections.abc import Sequence

from hermes.boundary.execution.environment import child_environment
from hermes.settings import PLANNED_BACKENDS, Settings
from hermes.settings.network import network_policy
from hermes.types.errors import ConfigError
from hermes.types.execution import BackendManifest, BackendOptions, ExecutionBackend


def configured_backend(
    settings: Settings, manifests: Sequence[BackendManifest]
) -> ExecutionBackend | None:
    """Returns the backend that runs commands, or None if no command may run."""
    terminal, known = settings.terminal, {manifest.name: manifest for manifest in manifests}
    if terminal.backend in known:
        return known[terminal.backend].make(backend_options(settings))
    if terminal.backend not in ("none", *PLANNED_BACKENDS):
        names = ", ".join(sorted([*known, "none"]))
        raise ConfigError(
            f"terminal.backend: there is no backend {terminal.backend!r}: use one of {names}"
        )
    return None


def backend_options(settings: Settings) -> BackendOptions:
    """Returns the options that every backend of an agent with these settings gets."""
    passed = settings.terminal.env_passthrough
    environment = child_environment(settings.sources.environ, passed)
    return BackendOptions(
        processes=settings.home.processes,
        environment=environment,
        network=network_policy(settings.terminal),
    )
