"""Content that was read from the web: a page for a tool, or a file for a message."""

from hermes.types.value import Value


class WebPage(Value):
    """The text at a URL."""

    url: str
    """The address at the end of all redirects."""
    media_type: str
    text: str
    cut: bool = False
    """Whether the page was longer than what was read."""


class WebFile(Value):
    """The file at a URL."""

    media_type: str
    """As its server says, in lower case and without parameters."""
    data: bytes
