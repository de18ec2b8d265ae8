"""Renders a Markdown tree as the plain text and the HTML of a Matrix message."""

import msgspec

from hermes.text.dialect import Plain
from hermes.text.html_dialect import BrowserHtml, escape_html
from hermes.types.nodes import Document

TEXT_LIMIT = 60_000
"""Longest rendered text, in bytes. An event may have 65,536 bytes, and the other fields of a
message or an edit need fewer than 5,000."""


def render(tree: Document) -> str:
    """Returns the JSON object with the fields of the message that show the text."""
    fields = {"body": Plain().document(tree)}
    if (formatted := BrowserHtml().document(tree)) != escape_html(fields["body"]):
        fields |= {"format": "org.matrix.custom.html", "formatted_body": formatted}
    # A lone surrogate can't be sent.
    valid = {name: text.encode("utf-8", "replace").decode() for name, text in fields.items()}
    return msgspec.json.encode(valid).decode()
