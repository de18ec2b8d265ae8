"""The progress and the result of a copy between stores."""

from typing import Literal

from hermes.types.errors import HermesError
from hermes.types.value import Value


class CopyRefused(HermesError):
    """The source is in use, or the target can't take the copy. The text says what to do."""

    code = "copy_refused"


class CopyStep(Value):
    """The progress of a copy."""

    phase: Literal["check", "copy", "compare"]
    """The phase of the copy. `check` compares the rows of an interrupted copy with the source.
    `copy` copies the missing rows. `compare` compares all rows at the end."""
    rows: int
    """Rows that this phase has handled."""
    total: int
    """Total number of rows that this phase will handle."""


class CopyResult(Value, omit_defaults=False):
    """A copy that is complete and equal to its source."""

    source: str
    target: str
    """`source` and `target` are the paths or addresses of the two stores, without passwords."""
    tables: dict[str, int]
    """Maps the name of each table to its number of rows."""
    resumed: bool
    """Whether an earlier, interrupted copy was continued."""
    advice: str
    """The changes to the configuration that make a gateway use the copy."""
