"""Renders a Markdown tree as the HTML that Telegram accepts, and measures it as Telegram does."""

import html
import re
from itertools import zip_longest

from hermes.text.dialect import Dialect, Plain
from hermes.text.split import utf16_units
from hermes.types import nodes

TEXT_LIMIT = 4096
"""Longest text of a message, in UTF-16 units of the text without tags."""

_TAG = re.compile(r"<[^>]*>")
_QUOTE_TAG = re.compile(r"</?blockquote>")
_LANGUAGE = re.compile(r"[\w+#.-]+")
_plain = Plain()


def measure(text: str) -> int:
    """Returns the length of a rendered text, in UTF-16 units of the text without tags."""
    return utf16_units(html.unescape(_TAG.sub("", text)))


class TelegramHtml(Dialect):
    """Renders the few tags of the Bot API. Headings are bold, and tables are preformatted text."""

    def paragraph(self, node: nodes.Paragraph) -> str:
        return self.inlines(node.children)

    def heading(self, node: nodes.Heading) -> str:
        return f"<b>{self.inlines(node.children)}</b>"

    def fence(self, node: nodes.Fence) -> str:
        language = _LANGUAGE.match(node.info)
        if language is None:
            return f"<pre>{_escaped(node.text)}</pre>"
        named = f'<code class="language-{language[0]}">{_escaped(node.text)}</code>'
        return f"<pre>{named}</pre>"

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
        return f"<pre>{_escaped(text)}</pre>"

    def rule(self, node: nodes.Rule) -> str:
        return _plain.rule(node)

    def text(self, node: nodes.Text) -> str:
        return _escaped(node.text)

    def code(self, node: nodes.Code) -> str:
        return f"<code>{_escaped(node.text)}</code>"

    def strong(self, node: nodes.Strong) -> str:
        return f"<b>{self.inlines(node.children)}</b>"

    def emphasis(self, node: nodes.Emphasis) -> str:
        return f"<i>{self.inlines(node.children)}</i>"

    def strikethrough(self, node: nodes.Strikethrough) -> str:
        return f"<s>{self.inlines(node.children)}</s>"

    def link(self, node: nodes.Link) -> str:
        return f'<a href="{html.escape(node.url)}">{self.inlines(node.children)}</a>'

    def image(self, node: nodes.Image) -> str:
        return f'<a href="{html.escape(node.url)}">{_escaped(node.text or node.url)}</a>'

    def line_break(self, node: nodes.Break) -> str:
        return "\n"


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)
