"""Context files as `hermes context` shows them."""

from pathlib import Path
from typing import Literal, Protocol

from hermes.types.value import Value


class RecordedFile(Value):
    """A context file that the agent has written."""

    path: str
    state: Literal["allowed", "blocked", "missing"]
    """The state of the file. A `blocked` file is not loaded until the owner allows it."""


class ContextFiles(Protocol):
    """The owner's decisions about context files that the agent has written."""

    def allow(self, path: Path) -> bool:
        """Allows the current content of the file. Returns False if this content was already
        allowed."""
        ...

    def revoke(self, path: Path) -> None:
        """Blocks the file, whatever it contains and whoever wrote it."""
        ...

    def recorded(self) -> list[RecordedFile]:
        """Returns the files that the agent has written, sorted by path."""
        ...
