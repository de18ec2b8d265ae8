"""Context files as `hermes context` shows them."""

from pathlib import Path
from typing import Literal, Protocol

from hermes.types.value import Value


class RecordedFile(Value):
    """A context file that the agent has written."""

    path: str
    state: Literal["allowed", "blocked", "missing"]
    """`blocked` is not loaded until the owner allows it."""


class ContextFiles(Protocol):
    """The owner's decisions about context files that the agent has written."""

    def allow(self, path: Path) -> bool:
        """Allows the present content of the file; False if it was trusted already."""
        ...

    def revoke(self, path: Path) -> None:
        """Allows no content of the file, whoever has written it."""
        ...

    def recorded(self) -> list[RecordedFile]:
        """The files that the agent has written, by path."""
        ...
