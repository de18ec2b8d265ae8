"""The sandboxes of all agents of a home, for the command line."""

from collections.abc import Sequence
from typing import Protocol

from hermes.types.execution import SandboxInfo
from hermes.types.identity import PersonId, SessionKey


class HomeSandboxes(Protocol):
    """Lists, opens and resets the sandboxes of all agents of a home."""

    async def listed(self) -> Sequence[SandboxInfo]:
        """Returns the sandboxes, the most recently used first."""
        ...

    async def reset(self, sandbox: SandboxInfo) -> bool:
        """Ends the processes of the sandbox and deletes its files. Returns False if the sandbox
        does not exist any more."""
        ...

    async def shell(self, session: SessionKey, person: PersonId | None) -> Sequence[str]:
        """Returns the command line that opens a shell in the sandbox of the session. Raises
        ConfigError if the agent of the session runs no commands."""
        ...
