"""Renders a Markdown tree. Subclasses of `Dialect` override the nodes that a platform writes
differently."""

import re
from collections.abc import Iterable
from typing import assert_never

from hermes.types import nodes

_MEANS_MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|\Z)|`|\*(?!\s)|(?<!\s)\*|(?<![^\W_])_|_(?![^\W_])|~(?=~)|(?<=~)~"
    r"|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\](?=[(:])"
)
_STARTS_BLOCK = re.compile(r"(?m)^(?=>|#{1,6}(?:\s|$)|[-+](?:\s|$)|[-:|=][-:|= \t]*$)")
_STARTS_NUMBER = re.compile(r"(?m)^(\d{1,9})(?=[.)](?:\s|$))")
_ENDS_HEADING = re.compile(r"(?:(?<=\s)|\A)(?=#+\Z)")
_BARE = re.compile(r"https?://[^\s<>\[\]`|\\\"]*[^\s<>\[\]`|\\\"?!.,:;*_~'()]")
_RULES: dict[nodes.Align, str] = {"": "---", "left": ":--", "center": ":-:", "right": "--:"}


class Dialect:
    """Renders canonical Markdown, with one method for each kind of node."""

    def document(self, tree: nodes.Document) -> str:
        return self.blocks(tree)

    def blocks(self, tree: Iterable[nodes.Block], gap: str = "\n\n") -> str:
        return gap.join(map(self.block, tree))

    def inlines(self, children: nodes.Inlines) -> str:
        return "".join(map(self.inline, children))

    def block(self, node: nodes.Block) -> str:
        match node:
            case nodes.Paragraph():
                return self.paragraph(node)
            case nodes.Heading():
                return self.heading(node)
            case nodes.Fence():
                return self.fence(node)
            case nodes.List():
                return self.listing(node)
            case nodes.Quote():
                return self.quote(node)
            case nodes.Table():
                return self.table(node)
            case nodes.Rule():
                return self.rule(node)
            case _:
                assert_never(node)

    def inline(self, node: nodes.Inline) -> str:
        match node:
            case nodes.Text():
                return self.text(node)
            case nodes.Code():
                return self.code(node)
            case nodes.Strong():
                return self.strong(node)
            case nodes.Emphasis():
                return self.emphasis(node)
            case nodes.Strikethrough():
                return self.strikethrough(node)
            case nodes.Link():
                return self.link(node)
            case nodes.Image():
                return self.image(node)
            case nodes.Break():
                return self.line_break(node)
            case _:
                assert_never(node)

    def paragraph(self, node: nodes.Paragraph) -> str:
        lines = _STARTS_BLOCK.sub(r"\\", self.inlines(node.children))
        return _STARTS_NUMBER.sub(r"\1\\", lines)

    def heading(self, node: nodes.Heading) -> str:
        title = _ENDS_HEADING.sub(r"\\", self.inlines(node.children))
        return f"{'#' * node.level} {title}".rstrip()

    def fence(self, node: nodes.Fence) -> str:
        sign = "~" if "`" in node.info else "`"
        marker = sign * max(3, _longest_run(sign, node.text) + 1)
        return f"{marker}{node.info}\n{node.text}\n{marker}"

    def listing(self, node: nodes.List) -> str:
        gap = "\n" if node.tight else "\n\n"
        items = (self.blocks(item, gap) for item in node.items)
        numbered = enumerate(items, node.start or 0)
        return gap.join(
            _hang("- " if node.start is None else f"{number}. ", item) for number, item in numbered
        )

    def quote(self, node: nodes.Quote) -> str:
        return re.sub(r"(?m)^(?=(.?))", _quote_mark, self.blocks(node.children))

    def table(self, node: nodes.Table) -> str:
        header = self.cells(node.header or ((),) * len(node.aligns))
        rows = [header, [_RULES[align] for align in node.aligns]]
        rows += map(self.cells, node.rows)
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def cells(self, row: Iterable[nodes.Inlines]) -> list[str]:
        return [self.inlines(cell).replace("|", "\\|") for cell in row]

    def rule(self, node: nodes.Rule) -> str:
        # Dashes are not used: a horizontal rule in a list would become "- ---", and Markdown reads
        # that as a rule outside the list.
        return "***"

    def text(self, node: nodes.Text) -> str:
        return _MEANS_MARKUP.sub(r"\\\g<0>", node.text)

    def code(self, node: nodes.Code) -> str:
        marker = "`" * (_longest_run("`", node.text) + 1)
        edge = node.text[:1] + node.text[-1:]
        pad = " " if "`" in edge or (edge == "  " and node.text.strip()) else ""
        return f"{marker}{pad}{node.text}{pad}{marker}"

    def strong(self, node: nodes.Strong) -> str:
        return f"**{self.inlines(node.children)}**"

    def emphasis(self, node: nodes.Emphasis) -> str:
        return f"*{self.inlines(node.children)}*"

    def strikethrough(self, node: nodes.Strikethrough) -> str:
        return f"~~{self.inlines(node.children)}~~"

    def link(self, node: nodes.Link) -> str:
        if node.children == (nodes.Text(text=node.url),):
            return node.url if _BARE.fullmatch(node.url) else f"<{node.url}>"
        return f"[{self.inlines(node.children)}]({_destination(node.url)})"

    def image(self, node: nodes.Image) -> str:
        return f"![{self.text(nodes.Text(text=node.text))}]({_destination(node.url)})"

    def line_break(self, node: nodes.Break) -> str:
        return "\\\n" if node.hard else "\n"


class Plain(Dialect):
    """Renders plain text, for notifications and platforms without markup."""

    def paragraph(self, node: nodes.Paragraph) -> str:
        return self.inlines(node.children)

    def heading(self, node: nodes.Heading) -> str:
        return self.inlines(node.children)

    def fence(self, node: nodes.Fence) -> str:
        return node.text

    def table(self, node: nodes.Table) -> str:
        rows = (node.header, *node.rows) if node.header else node.rows
        return "\n".join(" | ".join(map(self.inlines, row)) for row in rows)

    def rule(self, node: nodes.Rule) -> str:
        return "———"

    def text(self, node: nodes.Text) -> str:
        return node.text

    def code(self, node: nodes.Code) -> str:
        return node.text

    def strong(self, node: nodes.Strong) -> str:
        return self.inlines(node.children)

    def emphasis(self, node: nodes.Emphasis) -> str:
        return self.inlines(node.children)

    def strikethrough(self, node: nodes.Strikethrough) -> str:
        return self.inlines(node.children)

    def link(self, node: nodes.Link) -> str:
        return _named(self.inlines(node.children), node.url)

    def image(self, node: nodes.Image) -> str:
        return _named(node.text, node.url)

    def line_break(self, node: nodes.Break) -> str:
        return "\n"


def _named(text: str, url: str) -> str:
    if text in (url, url.removeprefix("mailto:")):
        return text
    return f"{text} ({url})" if text else url


def _destination(url: str) -> str:
    escaped = re.sub(r"&(?=#?\w+;)", r"\\&", url)
    return f"<{escaped}>" if not url or re.search(r"[\s()]", url) else escaped


def _longest_run(sign: str, text: str) -> int:
    return max(map(len, re.findall(f"{sign}+", text)), default=0)


def _quote_mark(line: re.Match[str]) -> str:
    return "> " if line[1] else ">"


def _hang(marker: str, body: str) -> str:
    margin = " " * len(marker)
    return (marker + re.sub(r"\n(?!\n|\Z)", f"\n{margin}", body)).rstrip()
