"""Opens the sandboxes of a home for the command line, without a gateway."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from hermes.app.backends import open_backend
from hermes.app.builtins import all_plugins
from hermes.app.gateway import agent_settings
from hermes.settings import Settings
from hermes.types.errors import ConfigError
from hermes.types.execution import ExecutionBackend, SandboxInfo, SandboxScope
from hermes.types.identity import AgentId, PersonId, SessionKey
from hermes.types.sandboxes import HomeSandboxes


class AgentSandboxes:
    """Implements `HomeSandboxes`. It maps each agent that runs commands to its backend."""

    def __init__(
        self, profiles: Mapping[AgentId, Settings], backends: Mapping[AgentId, ExecutionBackend]
    ) -> None:
        self._profiles = profiles
        self._backends = backends

    async def listed(self) -> Sequence[SandboxInfo]:
        found = [one for own in self._backends.values() for one in await own.sandboxes()]
        # Agents with the same folder list the same sandboxes.
        unique = {(one.agent, one.id): one for one in found}
        return sorted(unique.values(), key=lambda one: one.used_at, reverse=True)

    async def reset(self, sandbox: SandboxInfo) -> bool:
        return await self._backend(sandbox.agent).reset(sandbox.id)

    async def shell(self, session: SessionKey, person: PersonId | None) -> Sequence[str]:
        backend, settings = self._backend(session.agent), self._profiles[session.agent]
        scope = SandboxScope(
            agent=session.agent,
            session=session,
            workspace=str(settings.workspace),
            home=str(settings.files.root),
            person=person,
        )
        return await (await backend.open(scope)).shell()

    def _backend(self, agent: AgentId) -> ExecutionBackend:
        if agent not in self._profiles:
            raise ConfigError(
                f"this home has no agent {agent!r}: add the agent, or choose a sandbox of another"
                " agent"
            )
        if agent not in self._backends:
            raise ConfigError(
                f"the agent {agent!r} runs no commands: set terminal.backend to use a sandbox"
            )
        return self._backends[agent]


@asynccontextmanager
async def open_sandboxes(settings: Settings) -> AsyncIterator[HomeSandboxes]:
    """Yields the sandboxes of the home. This works even while a gateway uses them."""
    plugins = all_plugins()
    profiles = agent_settings(settings, plugins)
    backends: dict[AgentId, ExecutionBackend] = {}
    async with AsyncExitStack() as opened:
        for id, own in profiles.items():
            opening = open_backend(own, plugins.backends())
            if backend := await opened.enter_async_context(opening):
                backends[id] = backend
        yield AgentSandboxes(profiles, backends)
