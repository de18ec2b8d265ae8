"""Pages and files that were read from the web."""

from hermes.types.value import Value


class WebPage(Value):
    """The text of a web page."""

    url: str
    """The address after all redirects."""
    media_type: str
    text: str
    cut: bool = False
    """Whether the text is only the beginning of the page."""


class WebFile(Value):
    """A file that was downloaded from a URL."""

    media_type: str
    """The type that the server states, in lower case and without parameters."""
    data: bytes
