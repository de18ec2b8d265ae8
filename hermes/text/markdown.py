"""Parses Markdown into a tree, and renders a tree as Markdown or as plain text."""

import re
from collections.abc import Iterable, Sequence
from typing import cast

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from hermes.text.dialect import Dialect, Plain
from hermes.types import nodes

_DEEPEST = 50
_URL = re.compile(r"://[^\s<>\[\]`|\\\"]+")


def parse(text: str) -> nodes.Document:
    """Parses CommonMark with tables, strikethrough and bare URLs. HTML is treated as text."""
    return _blocks(_nested(_parser.parse(text)))


def parse_blocks(text: str) -> list[tuple[int, nodes.Block]]:
    """Returns the blocks of the tree, each with the number of its first line, from 0."""
    parsed = _nested(_parser.parse(text))
    return [(node.token.map[0] if node.token.map else 0, _block(node)) for node in parsed]


def parse_part(text: str) -> nodes.Document:
    """Parses a part of a text. Link definitions are treated as text: a definition would have to
    apply to the other parts, too, but these parts are parsed separately."""
    return _blocks(_nested(_part_parser.parse(text)))


def print_markdown(tree: nodes.Document) -> str:
    """Renders canonical Markdown, which parses to the same tree. Special characters are escaped."""
    return Dialect().document(tree)


def literal(text: str) -> str:
    """Returns Markdown that shows the text on one line, without markup. Text that has no markup is
    returned unchanged."""
    line = " ".join(text.split())
    if print_plain(parse(line)) == line:
        return line
    return print_markdown((nodes.Paragraph(children=(nodes.Text(text=line),)),))


def code_span(text: str) -> str:
    """Returns Markdown that shows the text as code on one line."""
    code = nodes.Code(text=" ".join(text.split("\n")))
    return print_markdown((nodes.Paragraph(children=(code,)),))


def print_plain(tree: nodes.Document) -> str:
    """Renders text without markup. A link becomes `text (url)`."""
    return Plain().document(tree)


class _Node:
    def __init__(self, token: Token) -> None:
        self.token = token
        self.children: list[_Node] = []


def _nested(tokens: Sequence[Token]) -> list[_Node]:
    levels: list[list[_Node]] = [[]]
    for token in tokens:
        if token.nesting < 0:
            levels.pop()
        elif token.nesting > 0 and len(levels) > _DEEPEST:
            # Markup that is nested deeper than `_DEEPEST` is dropped. Otherwise thousands of
            # asterisks would give thousands of nested nodes.
            levels.append(levels[-1])
        else:
            node = _Node(token)
            levels[-1].append(node)
            if token.nesting > 0:
                levels.append(node.children)
            else:
                node.children = _nested(token.children or ())
    return levels[0]


def _blocks(parsed: Iterable[_Node]) -> nodes.Document:
    return tuple(_block(node) for node in parsed)


def _block(node: _Node) -> nodes.Block:
    token = node.token
    match token.type:
        case "paragraph_open":
            return nodes.Paragraph(children=_inlines(node.children[0].children))
        case "heading_open":
            return nodes.Heading(level=int(token.tag[1:]), children=_one_line(node.children))
        case "fence" | "code_block":
            return nodes.Fence(text=token.content.removesuffix("\n"), info=token.info.strip())
        case "bullet_list_open" | "ordered_list_open":
            return _list(node)
        case "blockquote_open":
            return nodes.Quote(children=_blocks(node.children))
        case "table_open":
            return _table(node)
        case kind:
            assert kind == "hr", kind
            return nodes.Rule()


def _one_line(children: Sequence[_Node]) -> nodes.Inlines:
    inlines = _inlines(children[0].children)
    return tuple(
        nodes.Text(text=" ") if isinstance(node, nodes.Break) else node for node in inlines
    )


def _list(node: _Node) -> nodes.List:
    first = node.token.attrGet("start")
    ordered = node.token.type == "ordered_list_open"
    blocks = (block.token for item in node.children for block in item.children)
    return nodes.List(
        items=tuple(_blocks(item.children) for item in node.children),
        start=int(1 if first is None else first) if ordered else None,
        tight=all(token.hidden for token in blocks if token.type == "paragraph_open"),
    )


def _table(node: _Node) -> nodes.Table:
    rows = [row for section in node.children for row in section.children]
    header, *body = [tuple(_inlines(c.children[0].children) for c in row.children) for row in rows]
    styles = (str(cell.token.attrGet("style") or "") for cell in rows[0].children)
    return nodes.Table(
        aligns=tuple(cast(nodes.Align, style.removeprefix("text-align:")) for style in styles),
        header=header,
        rows=tuple(body),
    )


def _inlines(parsed: Iterable[_Node]) -> nodes.Inlines:
    merged: list[nodes.Inline] = []
    for inline in map(_inline, parsed):
        match inline, merged:
            case nodes.Text(text=""), _:
                continue
            case nodes.Text(text=more), [*_, nodes.Text(text=before)]:
                merged[-1] = nodes.Text(text=before + more)
            case _:
                merged.append(inline)
    return tuple(merged)


def _inline(node: _Node) -> nodes.Inline:
    token = node.token
    match token.type:
        case "strong_open":
            return nodes.Strong(children=_inlines(node.children))
        case "em_open":
            return nodes.Emphasis(children=_inlines(node.children))
        case "s_open":
            return nodes.Strikethrough(children=_inlines(node.children))
        case "link_open":
            return nodes.Link(url=str(token.attrs["href"]), children=_inlines(node.children))
        case "image":
            alt = Plain().inlines(_inlines(node.children))
            return nodes.Image(url=str(token.attrs["src"]), text=alt)
        case "code_inline":
            return nodes.Code(text=token.content)
        case _:
            return _plain_inline(token)


def _plain_inline(token: Token) -> nodes.Inline:
    if token.type in ("softbreak", "hardbreak"):
        return nodes.Break(hard=token.type == "hardbreak")
    return nodes.Text(text=token.content.replace("\n", " "))


def _bare_url(state: StateInline, silent: bool) -> bool:
    # Without this rule, underscores in a URL would be parsed as emphasis.
    scheme = re.search(r"(?<!\w)https?\Z", state.src[max(0, state.pos - 6) : state.pos])
    found = _URL.match(state.src, state.pos)
    rest = _trimmed(found[0]) if found else ""
    if not scheme or len(rest) <= len("://"):
        return False
    state.pos += len(rest)
    if silent:
        return True
    if state.linkLevel:
        state.pending += rest
        return True
    state.pending = state.pending.removesuffix(scheme[0])
    state.push("link_open", "a", 1).attrs = {"href": scheme[0] + rest}
    state.push("text", "", 0).content = scheme[0] + rest
    state.push("link_close", "a", -1)
    return True


def _trimmed(url: str) -> str:
    """Removes trailing punctuation, which belongs to the sentence around the URL."""
    end = len(url)
    unopened = url.count(")") - url.count("(")
    while url[end - 1] in "?!.,:;*_~'" or (url[end - 1] == ")" and unopened > 0):
        unopened -= url[end - 1] == ")"
        end -= 1
    return url[:end]


def _new_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    parser.enable(["table", "strikethrough"])
    parser.inline.ruler.after("text", "bare_url", _bare_url)
    return parser


_parser = _new_parser()
_part_parser = _new_parser().disable("reference")
