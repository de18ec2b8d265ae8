"""How lively a preview may be."""

from typing import Literal

from hermes.types.value import Value


class StreamingPolicy(Value):
    edit_interval: float = 0.8
    """Seconds between two calls for one message, at the least."""
    buffer_threshold: int = 24
    """New characters that are worth an edit."""
    cursor: str = " ▉"
    """Ends every frame that is not the last."""
    first: Literal["text", "placeholder"] = "text"
    """What the first placed message says: real text, or "…"."""
