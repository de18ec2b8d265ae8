"""Creates the execution backend that an agent's settings name."""

from collections.abc import Sequence

from hermes.boundary.execution.environment import child_environment
from hermes.settings import PLANNED_BACKENDS, Settings
from hermes.types.errors import ConfigError
from hermes.types.execution import BackendManifest, BackendOptions, ExecutionBackend


def configured_backend(
    settings: Settings, manifests: Sequence[BackendManifest]
) -> ExecutionBackend | None:
    """Returns the backend that runs commands, or None if no command may run."""
    terminal, known = settings.terminal, {manifest.name: manifest for manifest in manifests}
    if terminal.backend in known:
        environment = child_environment(settings.sources.environ, terminal.env_passthrough)
        options = BackendOptions(processes=settings.home.processes, environment=environment)
        return known[terminal.backend].make(options)
    if terminal.backend not in ("none", *PLANNED_BACKENDS):
        names = ", ".join(sorted([*known, "none"]))
        raise ConfigError(
            f"terminal.backend: there is no backend {terminal.backend!r}: use one of {names}"
        )
    return None
