"""Renders a Markdown tree as Telegram's HTML, and measures the HTML as Telegram measures it."""

import html
import re
from itertools import zip_longest

from hermes.text.dialect import Plain
from hermes.text.html_dialect import HtmlDialect, escape_html
from hermes.text.split import utf16_units
from hermes.types import nodes

TEXT_LIMIT = 4096
"""Longest text of a message, in UTF-16 units. Tags are not counted."""

_TAG = re.compile(r"<[^>]*>")
_QUOTE_TAG = re.compile(r"</?blockquote>")
_plain = Plain()


def measure(text: str) -> int:
    """Returns the length of a rendered text, in UTF-16 units. Tags are not counted."""
    return utf16_units(html.unescape(_TAG.sub("", text)))


class TelegramHtml(HtmlDialect):
    """Renders only the tags that the Bot API supports. Tables become preformatted text."""

    def quote(self, node: nodes.Quote) -> str:
        # Telegram does not allow a quote in a quote.
        content = _QUOTE_TAG.sub("", self.blocks(node.children))
        return f"<blockquote>{content}</blockquote>"

    def table(self, node: nodes.Table) -> str:
        rows = [[_plain.inlines(cell) for cell in row] for row in (node.header, *node.rows) if row]
        widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
        lines = [
            " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
            for row in rows
        ]
        if node.header:
            lines.insert(1, "-+-".join("-" * width for width in widths))
        text = "\n".join(lines)
        return f"<pre>{escape_html(text)}</pre>"

    def rule(self, node: nodes.Rule) -> str:
        return _plain.rule(node)
