"""The dialect of a platform overrides the methods for the Markdown nodes that the platform writes
in its own way."""

import pytest

from hermes.text.dialect import Dialect, Plain
from hermes.text.markdown import parse
from hermes.types import nodes

EVERYTHING = """\
# Title

Some **bold**, *soft*, ~~gone~~ and `code` [link](http://x.y) ![picture](http://p.q)
next line\\
hard line

> quoted

1. one
2. two
   - nested

```py
code
```

| a | b |
|:--|--:|
| c | d |

---
"""


class Loud(Dialect):
    """A dialect with one star for bold text, as in Slack, and with titles in capitals."""

    def strong(self, node: nodes.Strong) -> str:
        return f"*{self.inlines(node.children)}*"

    def heading(self, node: nodes.Heading) -> str:
        return self.inlines(node.children).upper()


def test_canonical_markdown_is_printed_as_it_was_written() -> None:
    canonical = EVERYTHING.strip().replace("|:--|--:|", "| :-- | --: |").replace("---", "***")
    assert Dialect().document(parse(EVERYTHING)) == canonical


def test_plain_text_has_no_markup() -> None:
    assert Plain().document(parse(EVERYTHING)) == (
        "Title\n\nSome bold, soft, gone and code link (http://x.y) picture (http://p.q)\n"
        "next line\nhard line\n\n> quoted\n\n1. one\n2. two\n   - nested\n\ncode\n\n"
        "a | b\nc | d\n\n———"
    )


def test_a_dialect_changes_only_the_nodes_that_it_overrides() -> None:
    assert Loud().document(parse("# Hi *you*\n\n- **a** _b_")) == "HI *YOU*\n\n- *a* *b*"


@pytest.mark.parametrize(
    ("dialect", "shown"),
    [(Dialect(), "|  |  |\n| --- | :-: |\n| a | b |"), (Plain(), "a | b")],
)
def test_a_table_that_continues_has_no_header(dialect: Dialect, shown: str) -> None:
    cells = ((nodes.Text(text="a"),), (nodes.Text(text="b"),))
    table = nodes.Table(aligns=("", "center"), header=(), rows=(cells,))
    assert dialect.document((table,)) == shown


@pytest.mark.parametrize(
    "sign", ["*", "_", "`", "#", ">", "-", "+", "1.", "|", "<b>", "&amp;", "\\"]
)
def test_special_characters_in_text_are_escaped(sign: str) -> None:
    for text in (sign, f"{sign} a", f"a {sign}", f"a{sign}b"):
        tree = (nodes.Paragraph(children=(nodes.Text(text=text),)),)
        assert Plain().document(parse(Dialect().document(tree))) == text


@pytest.mark.parametrize("code", ["`", "a`b", "``", " a ", "`a`"])
def test_code_with_backticks_is_enclosed_in_more_backticks(code: str) -> None:
    tree = (nodes.Paragraph(children=(nodes.Code(text=code),)),)
    assert parse(Dialect().document(tree)) == tree
    fence = (nodes.Fence(text=f"```\n{code}\n```", info="py"),)
    assert parse(Dialect().document(fence)) == fence
