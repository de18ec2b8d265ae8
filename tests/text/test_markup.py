"""Tags and text of pages as browsers see them, well-formed or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.text.markup import Close, Open, Text, Token, tokens

B, C = Open("b", {}), Close("b")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("", []),
        ("plain", [Text("plain")]),
        ("<b>x</b>", [B, Text("x"), C]),
        ("<B >x</B\n>y", [B, Text("x"), C, Text("y")]),
        ("<br/>", [Open("br", {})]),
        ("a < b <3 <", [Text("a "), Text("<"), Text(" b "), Text("<"), Text("3 "), Text("<")]),
        ("1 &lt; 2 &amp;amp; &eacute &#x41;&#66", [Text("1 < 2 &amp; é AB")]),
        ("&#" + "9" * 5000 + ";", [Text("\ufffd")]),
        ("a<!-- <b> -- > -->b<!-->c<!--->d", [Text("a"), Text("b"), Text("c"), Text("d")]),
        ("<!doctype html><?xml?></ x><![CDATA[y]]>z", [Text("z")]),
        ("a<!-- never ends <b>", [Text("a")]),
        ("a<!never", [Text("a")]),
        ("a<b never", [Text("a")]),
        ('a<b x="never>', [Text("a")]),
        ("a</", [Text("a")]),
    ],
)
def test_a_page_falls_into_tags_and_text(html: str, expected: list[Token]) -> None:
    assert list(tokens(html)) == expected


@pytest.mark.parametrize(
    ("tag", "attributes"),
    [
        ("<a href=x>", {"href": "x"}),
        ("<a HREF='x y' Title=\"&amp;>\">", {"href": "x y", "title": "&>"}),
        ("<a href = 'x'hidden>", {"href": "x", "hidden": ""}),
        ("<a href=x/>", {"href": "x/"}),
        ("<a / hidden / >", {"hidden": ""}),
        ('<a class="a"">', {"class": "a", '"': ""}),
        ("<a x=1 x=2>", {"x": "1"}),
        ("<a =x=1>", {"=x": "1"}),
        ("<a x= >", {"x": ""}),
        ("<a x='a\n'\ny>", {"x": "a\n", "y": ""}),
    ],
)
def test_a_tag_has_attributes(tag: str, attributes: dict[str, str]) -> None:
    assert list(tokens(tag)) == [Open("a", attributes)]


@pytest.mark.parametrize("name", ["script", "style", "title", "textarea", "iframe"])
def test_some_elements_hold_text_only(name: str) -> None:
    text = f"if (a < b) '<b>' </{name}x> <!--"
    html = f"<{name}>{text}</{name.upper()} >after"
    assert list(tokens(html)) == [Open(name, {}), Text(text), Close(name), Text("after")]
    assert list(tokens(f"<{name}>{text}")) == [Open(name, {}), Text(text)]


PIECES = [
    *("<", ">", "</", "<!--", "-->", "<b>", "</b>", "<a href=", '"', "'", "=", " ", "x", "&", "#"),
    *("<script>", "</script>", "<title>", "<!", "<?", "/", "\0", "\ud800", "&#1", "é"),
]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_text_is_neither_made_up_nor_lost(html: str) -> None:
    found = list(tokens(html))
    said = "".join(token.text for token in found if isinstance(token, Text))
    assert len(said) <= len(html)
    if not any(mark in html for mark in "<&"):
        assert said == html


@given(st.text())
def test_whatever_it_is_it_can_be_read(html: str) -> None:
    list(tokens(html))
