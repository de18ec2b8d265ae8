"""Sanitized pages have the same text and stay within the parser's limits."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from hermes.text.markup import sanitized


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("", ""),
        ("plain &amp; simple", "plain &amp; simple"),
        ("<P >x</P\n>y", "<p>x</p>y"),
        ("<br/>", "<br>"),
        ("a < b <3 <", "a &lt; b &lt;3 &lt;"),
        ("a<!-- <b> -- > -->b<!-->c<!--->d", "abcd"),
        ("<!doctype html><?xml?></ x><![CDATA[y]]>z", "z"),
        ("<html><head><body>x<input><wbr></body>", "x"),
        ("<b>x</b><code>y</code><svg>", "<x-b>x</x-b><x-code>y</x-code><x-svg>"),
        ("<form>x</form>", "<div>x</div>"),
        ("<o:p>x</o:p><a\0b>", "<x-unknown>x</x-unknown><x-unknown>"),
        ("<td>x<table><td>", "<hr>x<table><td>"),
        ("a<!-- never ends <b>", "a"),
        ("a<!never", "a"),
        ("a<b never", "a"),
        ('a<b x="never>', "a"),
        ("a</", "a"),
    ],
)
def test_only_necessary_tags_are_kept(html: str, expected: str) -> None:
    assert sanitized(html).text == expected


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("<p href=x class=y onclick='z()'>", '<p href="x">'),
        ("<img ALT='x y' src=z>", '<img alt="x y">'),
        ("<img alt='a \"b\" <c> &amp;'>", '<img alt="a &quot;b&quot; &lt;c> &amp;">'),
        ("<p href = 'x'hidden>", '<p href="x" hidden="">'),
        ("<p href=x/>", '<p href="x/">'),
        ("<p / hidden / >", '<p hidden="">'),
        ('<p role="a"">', '<p role="a">'),
        ("<p href=1 href=2>", '<p href="1">'),
        ("<p =x=1>", "<p>"),
        ("<p style= >", '<p style="">'),
        ("<p alt='a\n'\nhidden>", '<p alt="a\n" hidden="">'),
    ],
)
def test_only_necessary_attributes_are_kept(tag: str, expected: str) -> None:
    assert sanitized(tag).text == expected


def test_links_are_numbered() -> None:
    assert sanitized("<a href=x n=7>y</a><a>z").text == '<a href="x" n="1">y</a><a n="2">z'


@pytest.mark.parametrize("name", ["script", "style", "textarea", "iframe"])
def test_raw_text_elements_are_left_out(name: str) -> None:
    text = f"if (a < b) '<b>' </{name}x> <!--"
    assert sanitized(f"<{name}>{text}</{name.upper()} >after").text == "after"
    assert sanitized(f"<{name}>{text}").text == ""


def test_the_content_of_a_title_is_text() -> None:
    assert sanitized("<title>a <b> c</title>d").text == "<title>a &lt;b> c</title>d"
    assert sanitized("<title>a <!--").text == "<title>a &lt;!--</title>"


PIECES = [
    *("<", ">", "</", "<!--", "-->", "<b>", "</b>", "<a href=", '"', "'", "=", " ", "x", "&", "#"),
    *("<script>", "</script>", "<title>", "<!", "<?", "/", "\0", "\ud800", "&#1", "é"),
]


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_any_page_can_be_sanitized(html: str) -> None:
    text = sanitized(html).text
    if not any(mark in html for mark in "<&"):
        assert text == html
    assert sanitized(text).text == text


NAMES = (
    "a article b blockquote br button caption center code dd details div dl dt em fieldset form h1"
    " h2 hr html i img li main marquee math menu nav nobr noscript object ol option p plaintext pre"
    " rp rt ruby section select span summary svg table tbody td template textarea th title tr ul"
    " x-y xmp"
)
TAGS = [f"<{slash}{name}>" for name in NAMES.split() for slash in ("", "/")]


def depth_of(html: str) -> int:
    """Returns the depth of the tree that the parser builds, including text nodes."""
    root = LexborHTMLParser(html.encode("utf-8", "replace")).root
    level = [root] if root else []
    depth = 0
    while level:
        level = [child for node in level for child in node.iter(include_text=True)]
        depth += 1
    return depth


@example(tags=["<form>", "<table>", "<td>", "</form>", "</td>", "</table>", "</form>"], times=20)
@example(tags=["<p>", "<a>", "</p>", "<div>", "x", "</div>"], times=20)
@example(tags=["<p>", "<b>", "</p>"], times=20)
@settings(max_examples=500)
@given(st.lists(st.sampled_from([*TAGS, "x"]), max_size=12), st.integers(1, 20))
def test_the_parser_never_nests_deeper_than_we_count(tags: list[str], times: int) -> None:
    """A page is cut where our count of the depth reaches the limit. If our count were lower than
    the parser's real depth, a page that is too deep would not be cut, and the parser would be slow.
    """
    page = sanitized("".join(tags) * times)
    # The parser adds the elements html and body. For each element of the page, it adds at most a
    # tbody, a tr and an a.
    assert depth_of(page.text) <= 4 * page.depth + 4
