"""How often and in what form a preview is shown."""

from typing import Literal

from hermes.types.value import Value


class StreamingPolicy(Value):
    enabled: bool = True
    """Whether an answer is shown while it is written; if not, only that it is being written."""
    edit_interval: float = 0.8
    """The least number of seconds between two calls for one message."""
    buffer_threshold: int = 24
    """New characters that are worth an edit."""
    cursor: str = " ▉"
    """Shown after text that is still growing."""
    first: Literal["text", "placeholder"] = "text"
    """What the first placed message says: real text, or "…"."""
