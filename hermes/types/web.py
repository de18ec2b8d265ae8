"""A page of the web, as a tool is given it."""

from hermes.types.value import Value


class WebPage(Value):
    """The text at a URL."""

    url: str
    """The address at the end of all redirects."""
    media_type: str
    text: str
    cut: bool = False
    """Whether the page was longer than what was read."""
