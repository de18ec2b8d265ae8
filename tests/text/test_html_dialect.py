"""Markdown is rendered as simple HTML."""

import pytest

from hermes.text.html_dialect import HtmlDialect, escape_html
from hermes.text.markdown import parse


@pytest.mark.parametrize(
    ("markdown", "rendered"),
    [
        ("# Title", "<b>Title</b>"),
        ("a **b** *c* ~~d~~ `e<f`", "a <b>b</b> <i>c</i> <s>d</s> <code>e&lt;f</code>"),
        ("[a](https://x.test/?a=1&b=2)", '<a href="https://x.test/?a=1&amp;b=2">a</a>'),
        ("![cat](https://x.test/c.png)", '<a href="https://x.test/c.png">cat</a>'),
        ("```py\na < b\n```", '<pre><code class="language-py">a &lt; b</code></pre>'),
        ("```\na\n```", "<pre>a</pre>"),
        ("one\\\ntwo", "one\ntwo"),
    ],
)
def test_each_kind_of_markdown_has_its_tags(markdown: str, rendered: str) -> None:
    assert HtmlDialect().document(parse(markdown)) == rendered


def test_quotes_in_text_are_not_escaped() -> None:
    assert escape_html("\"a\" & 'b' <c>") == "\"a\" &amp; 'b' &lt;c&gt;"
