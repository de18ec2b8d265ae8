"""The options for previews."""

from typing import Literal

from hermes.types.value import Value


class StreamingPolicy(Value):
    enabled: bool = True
    """Whether an answer is shown while it is written. If the option is False, people see only that
    an answer is being written."""
    edit_interval: float = 0.8
    """Shortest time in seconds between two edits of one message."""
    buffer_threshold: int = 24
    """Number of new characters after which a message is edited. Shorter new text is shown a little
    later."""
    cursor: str = " ▉"
    """The text that is shown at the end of an answer that is still growing."""
    first: Literal["text", "placeholder"] = "text"
    """Whether the first message shows real text or "…"."""
