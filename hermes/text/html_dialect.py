"""Renders Markdown as HTML in two dialects. The first dialect is for platforms that accept only a
few tags. The second dialect is for platforms that show HTML like a browser."""

import html
import re
from collections.abc import Iterable

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
        # An image becomes a link. Otherwise the reader's program would load the image from a server
        # that the text names, and this server would learn the reader's address.
        return f'<a href="{html.escape(node.url)}">{escape_html(node.text or node.url)}</a>'

    def line_break(self, node: nodes.Break) -> str:
        return "\n"


class BrowserHtml(HtmlDialect):
    """Renders every element with its HTML tags, as a browser expects them. A text of one paragraph
    has no `<p>`."""

    def document(self, tree: nodes.Document) -> str:
        match tree:
            case (nodes.Paragraph(children=children),):
                return self.inlines(children)
            case _:
                return self.blocks(tree)

    def blocks(self, tree: Iterable[nodes.Block], gap: str = "") -> str:
        return "".join(map(self.block, tree))

    def paragraph(self, node: nodes.Paragraph) -> str:
        return f"<p>{self.inlines(node.children)}</p>"

    def heading(self, node: nodes.Heading) -> str:
        return f"<h{node.level}>{self.inlines(node.children)}</h{node.level}>"

    def fence(self, node: nodes.Fence) -> str:
        language = _LANGUAGE.match(node.info)
        named = f' class="language-{language[0]}"' if language else ""
        return f"<pre><code{named}>{escape_html(node.text)}</code></pre>"

    def listing(self, node: nodes.List) -> str:
        items = "".join(f"<li>{self._item(item, node.tight)}</li>" for item in node.items)
        if node.start is None:
            return f"<ul>{items}</ul>"
        start = "" if node.start == 1 else f' start="{node.start}"'
        return f"<ol{start}>{items}</ol>"

    def _item(self, item: nodes.Document, tight: bool) -> str:
        if not tight:
            return self.blocks(item)
        return "".join(
            self.inlines(block.children)
            if isinstance(block, nodes.Paragraph)
            else self.block(block)
            for block in item
        )

    def quote(self, node: nodes.Quote) -> str:
        return f"<blockquote>{self.blocks(node.children)}</blockquote>"

    def table(self, node: nodes.Table) -> str:
        head = f"<thead>{self._row('th', node.header)}</thead>" if node.header else ""
        rows = "".join(self._row("td", row) for row in node.rows)
        return f"<table>{head}<tbody>{rows}</tbody></table>"

    def _row(self, tag: str, cells: Iterable[nodes.Inlines]) -> str:
        return f"<tr>{''.join(f'<{tag}>{self.inlines(cell)}</{tag}>' for cell in cells)}</tr>"

    def rule(self, node: nodes.Rule) -> str:
        return "<hr>"

    def strong(self, node: nodes.Strong) -> str:
        return f"<strong>{self.inlines(node.children)}</strong>"

    def emphasis(self, node: nodes.Emphasis) -> str:
        return f"<em>{self.inlines(node.children)}</em>"

    def strikethrough(self, node: nodes.Strikethrough) -> str:
        return f"<del>{self.inlines(node.children)}</del>"

    def line_break(self, node: nodes.Break) -> str:
        return "<br>"
