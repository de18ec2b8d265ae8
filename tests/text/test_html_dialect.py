"""A Markdown tree is rendered as HTML that has the same text."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.text.html_dialect import BrowserHtml, HtmlDialect, escape_html
from hermes.text.markdown import parse
from hermes.text.slices import visible

LINES = (
    *("```", "```py", "> quoted", "- item", "  - nested", "7. seven", "", "# Title *one*", "***"),
    *("words <b> & </b> &amp; \\* a_b", "**bold `co de`** ~~gone~~", "| a | b |", "|---|---|"),
    *("[a *link*](http://x.y/z?a=1&b=<2>)", "![picture](http://x.y/p.png)", "| c d | e & f |"),
)
VOID = ("br", "hr")


class TextOf(HTMLParser):
    """Collects the text, and checks that every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    ("markdown", "rendered"),
    [
        ("a **b** ~~c~~ `<d>`", "a <strong>b</strong> <del>c</del> <code>&lt;d&gt;</code>"),
        ("# A *b*", "<h1>A <em>b</em></h1>"),
        ("a\nb", "a<br>b"),
        ("a\n\nb", "<p>a</p><p>b</p>"),
        ("[a&b](http://x.y/?a=1&b=2)", '<a href="http://x.y/?a=1&amp;b=2">a&amp;b</a>'),
        ("![](http://x.y/p.png)", '<a href="http://x.y/p.png">http://x.y/p.png</a>'),
        ("```py\na < b\n```", '<pre><code class="language-py">a &lt; b</code></pre>'),
        ("> a", "<blockquote><p>a</p></blockquote>"),
        ("- a\n- b\n  - c", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
        ("3. a\n\n4. b", '<ol start="3"><li><p>a</p></li><li><p>b</p></li></ol>'),
        ("***", "<hr>"),
        (
            "| a | b |\n|---|---|\n| c | d |",
            "<table><thead><tr><th>a</th><th>b</th></tr></thead>"
            "<tbody><tr><td>c</td><td>d</td></tr></tbody></table>",
        ),
    ],
)
def test_each_kind_of_markdown_has_its_elements(markdown: str, rendered: str) -> None:
    assert BrowserHtml().document(parse(markdown)) == rendered


@given(st.lists(st.sampled_from(LINES), max_size=30).map("\n".join))
def test_every_text_is_well_formed_and_complete(text: str) -> None:
    tree = parse(text)
    found = TextOf()
    found.feed(BrowserHtml().document(tree))
    found.close()
    assert found.open == []
    words = iter(re.findall(r"\w", found.text))
    assert all(letter in words for letter in re.findall(r"\w", visible(tree)))


@pytest.mark.parametrize(
    ("markdown", "rendered"),
    [
        ("# Title", "<b>Title</b>"),
        ("a **b** *c* ~~d~~ `e<f`", "a <b>b</b> <i>c</i> <s>d</s> <code>e&lt;f</code>"),
        ("![cat](https://x.test/c.png)", '<a href="https://x.test/c.png">cat</a>'),
        ("```\na\n```", "<pre>a</pre>"),
        ("one\\\ntwo", "one\ntwo"),
    ],
)
def test_a_platform_with_few_tags_gets_only_inline_tags(markdown: str, rendered: str) -> None:
    assert HtmlDialect().document(parse(markdown)) == rendered


def test_quotes_in_text_are_not_escaped() -> None:
    assert escape_html("\"a\" & 'b' <c>") == "\"a\" &amp; 'b' &lt;c&gt;"
