"""Every Markdown text becomes HTML that Telegram accepts, with the length that Telegram counts."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.entry.platforms.telegram.format import TelegramHtml, measure
from hermes.testing.telegram_html import parse_html
from hermes.text.markdown import parse
from hermes.text.slices import visible
from hermes.text.split import split, utf16_units

LINES = (
    *("```", "```py", "~~~ sh", "> ```", "1. ```c", "- item", "  - nested", "", "# Title *one*"),
    *("A sentence. Another one! And more words", "> quoted", "> > twice", "x" * 30),
    *("日本語。文です", "👍🏽👨\u200d👩 e\u0301", "שלום עולם", "<b> & </b> &amp; *c* \\* a_b"),
    *("**bold `co de`** ~~gone~~", "[a *link* of `words`](http://x.y/z?a=1&b=<2>)", "***"),
    *("| a | b |", "|---|---|", "| c d | e & f |", "![picture](http://x.y/p.png)", "7. seven"),
)
texts = st.one_of(
    st.text(max_size=300), st.lists(st.sampled_from(LINES), max_size=40).map("\n".join)
)
html = TelegramHtml()


def letters(text: str) -> str:
    """Returns the letters and digits of a text. Rendering changes only other characters."""
    return "".join(re.findall(r"\w", text))


@pytest.mark.parametrize(
    ("markdown", "rendered"),
    [
        ("# A *b*", "<b>A <i>b</i></b>"),
        ("a **b** ~~c~~ `<d>`", "a <b>b</b> <s>c</s> <code>&lt;d&gt;</code>"),
        ("[a&b](http://x.y/?a=1&b=2)", '<a href="http://x.y/?a=1&amp;b=2">a&amp;b</a>'),
        ("![](http://x.y/p.png)", '<a href="http://x.y/p.png">http://x.y/p.png</a>'),
        ("```py\na < b\n```", '<pre><code class="language-py">a &lt; b</code></pre>'),
        ("```\na\n```", "<pre>a</pre>"),
        ("> a\n>\n> > b", "<blockquote>a\n\nb</blockquote>"),
        ("- a\n- b", "- a\n- b"),
        ("| a | bc |\n|--|--|\n| def | g |", "<pre>a   | bc\n----+---\ndef | g</pre>"),
    ],
)
def test_each_kind_of_markdown_becomes_its_html_tags(markdown: str, rendered: str) -> None:
    assert html.document(parse(markdown)) == rendered


def test_a_length_is_counted_in_utf16_units_without_tags() -> None:
    assert measure("<b>a&amp;b</b>") == 3
    assert measure("😀") == 2


@settings(deadline=None)
@given(texts)
def test_every_text_is_accepted_and_measured_as_telegram_measures_it(text: str) -> None:
    rendered = html.document(parse(text))
    assert utf16_units(parse_html(rendered).text) == measure(rendered)


@settings(deadline=None)
@given(texts, st.integers(40, 200))
def test_the_parts_of_a_text_are_accepted_fit_and_show_the_whole_text(
    text: str, limit: int
) -> None:
    tree = parse(text)
    shown = []
    for part in split(tree, limit, html.document, measure):
        found = parse_html(html.document(part)).text
        assert utf16_units(found) <= limit
        shown.append((part, found))
    whole = "".join(visible(part) for part, _ in shown)
    assert letters(whole) == letters(visible(tree))
    for part, found in shown:
        words = iter(letters(found))
        assert all(letter in words for letter in letters(visible(part)))


@settings(deadline=None)
@given(texts, st.data())
def test_unfinished_markdown_is_accepted(text: str, data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(text)))
    parse_html(html.document(parse(text[:end])))
