"""Pages and files that were read from the web."""

from hermes.types.value import Value


class WebPage(Value):
    """The text at a URL."""

    url: str
    """The address after all redirects."""
    media_type: str
    text: str
    cut: bool = False
    """Whether the text is only the beginning of the page."""


class WebFile(Value):
    """The file at a URL."""

    media_type: str
    """The type that the server states, in lower case and without parameters."""
    data: bytes
