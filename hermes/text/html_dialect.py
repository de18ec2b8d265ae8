"""Renders Markdown as the simple HTML that chat platforms accept."""

import html
import re

from hermes.text.dialect import Dialect
from hermes.types import nodes

_LANGUAGE = re.compile(r"[\w+#.-]+")


def escape_html(text: str) -> str:
    """Escapes the special characters of HTML, for text between tags."""
    return html.escape(text, quote=False)


class HtmlDialect(Dialect):
    """Renders inline markup and code blocks as HTML. Paragraphs have no tags, and headings are
    bold."""

    def paragraph(self, node: nodes.Paragraph) -> str:
        return self.inlines(node.children)

    def heading(self, node: nodes.Heading) -> str:
        return f"<b>{self.inlines(node.children)}</b>"

    def fence(self, node: nodes.Fence) -> str:
        language = _LANGUAGE.match(node.info)
        if language is None:
            return f"<pre>{escape_html(node.text)}</pre>"
        named = f'<code class="language-{language[0]}">{escape_html(node.text)}</code>'
        return f"<pre>{named}</pre>"

    def text(self, node: nodes.Text) -> str:
        return escape_html(node.text)

    def code(self, node: nodes.Code) -> str:
        return f"<code>{escape_html(node.text)}</code>"

    def strong(self, node: nodes.Strong) -> str:
        return f"<b>{self.inlines(node.children)}</b>"

    def emphasis(self, node: nodes.Emphasis) -> str:
        return f"<i>{self.inlines(node.children)}</i>"

    def strikethrough(self, node: nodes.Strikethrough) -> str:
        return f"<s>{self.inlines(node.children)}</s>"

    def link(self, node: nodes.Link) -> str:
        return f'<a href="{html.escape(node.url)}">{self.inlines(node.children)}</a>'

    def image(self, node: nodes.Image) -> str:
        return f'<a href="{html.escape(node.url)}">{escape_html(node.text or node.url)}</a>'

    def line_break(self, node: nodes.Break) -> str:
        return "\n"
