"""A text is rendered as plain text and HTML. Each part of a long text fits into one event."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.entry.platforms.matrix.adapter import MatrixAdapter
from hermes.entry.platforms.matrix.format import render
from hermes.entry.platforms.matrix.manifest import MatrixAccount
from hermes.text.markdown import parse
from hermes.text.split import split

ADAPTER = MatrixAdapter("matrix", MatrixAccount())
LINES = (
    *("```py", "```", "> quoted", "- item", "# Title *one*", "words and words. More words!", ""),
    *("**bold `co de`**", "[a *link*](http://x.y/z?a=1&b=2)", "| a | b |", "|---|---|", "שלום"),
    *("👍🏽👨\u200d👩 日本語。", '"quotes" \\ and \x01', "x" * 40),
)
texts = st.one_of(
    st.text(max_size=200), st.lists(st.sampled_from(LINES), max_size=30).map("\n".join)
)


def test_a_text_without_markup_has_no_html() -> None:
    assert json.loads(render(parse("a & b"))) == {"body": "a & b"}
    assert json.loads(render(parse("a *b*"))) == {
        "body": "a b",
        "format": "org.matrix.custom.html",
        "formatted_body": "a <em>b</em>",
    }


def test_a_lone_surrogate_is_replaced() -> None:
    assert json.loads(render(parse("a\ud800b"))) == {"body": "a?b"}


@settings(deadline=None)
@given(texts, st.integers(150, 400))
def test_the_parts_of_a_text_are_valid_and_fit(text: str, limit: int) -> None:
    for part in split(parse(text), limit, ADAPTER.render, ADAPTER.measure):
        rendered = ADAPTER.render(part)
        fields = json.loads(rendered)
        assert fields["body"].strip()
        assert len(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()) <= limit
