"""Web pages are converted to Markdown."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from hermes.text.markup import sanitized
from hermes.text.readable import DEEPEST, readable

URL = "https://example.org/docs/page.html"
PAGES = sorted((Path(__file__).parent / "pages").glob("*.html"))
CHARSETS = {"cp1252-menu": "cp1252"}


def text(html: str) -> str:
    return readable(html, URL).text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_saved_page_gives_the_expected_text(page: Path) -> None:
    """The expected text is in a file next to the page: the title, an empty line, and the
    Markdown."""
    html = page.read_bytes().decode(CHARSETS.get(page.stem, "utf-8"))
    read = readable(html, f"https://example.org/pages/{page.name}")
    expected = page.with_suffix(".md").read_text("utf-8")
    assert f"{read.title}\n\n{read.text}\n" == expected


def test_twenty_pages_are_compared() -> None:
    assert len(PAGES) >= 20


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("", ""),
        ("  just \n text ", "just text"),
        ("<h1>One <b>big</b>\nthing</h1><h3>Small</h3>x", "# One big thing\n\n### Small\n\nx"),
        ("<h2>One<h2>Two", "## One\n\n## Two"),
        ("<h1>One</h2>two", "# One\n\ntwo"),
        ("<p>one<p>two</p>three", "one\n\ntwo\n\nthree"),
        ("one<br>two<br><br><br><br>three", "one\ntwo\n\nthree"),
        ("a<div>b<span>c</span></div>d", "a\n\nbc\n\nd"),
        ("one<hr>two", "one\n\ntwo"),
        ("x <code>y = 1</code> z", "x `y = 1` z"),
        ("<img alt=' a  cat '><img alt=''><img>", "[image: a cat]"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n\nb\n\nc\n\nd"),
        ("&lt;b&gt; &amp;amp; caf&eacute;", "<b> &amp; café"),
        ("<blockquote>one<p>two</blockquote>three", "> one\n> \n> two\n\nthree"),
    ],
)  # fmt: skip
def test_headings_paragraphs_and_quotes_become_markdown(html: str, expected: str) -> None:
    assert text(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<ul><li>one</li><li>two</li></ul>", "- one\n- two"),
        ("<ul><li>one<li>two</ul>after", "- one\n- two\n\nafter"),
        ("<ol><li>one<li>two<ul><li>a<li>b</ul><li>three</ol>",
         "1. one\n2. two\n  - a\n  - b\n3. three"),
        ("<ul><li><p>one</p><p>more</p></li><li></li></ul>", "- one\n  more"),
        ("<li>stray", "- stray"),
    ],
)  # fmt: skip
def test_lists_become_markdown_lists(html: str, expected: str) -> None:
    assert text(html) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<table><tr><th>A<th>B<tr><td>1<td>2<tr><td><td>3<td>4</table>",
         "A | B\n--- | ---\n1 | 2\n | 3 | 4"),
        ("<table><tbody><tr><th>A</th><td>1<br>2</td></tr></tbody></table>", "A | 1 2"),
        ("<table><tr><td>nav<td><p>one<p>two</table>", "nav\n\none\n\ntwo"),
        ("<table><tr><td>alone</table>after", "alone\n\nafter"),
        ("<table><tr><td>a<table><tr><td>b<td>c</table><td>d</table>", "a\n\nb | c\n\nd"),
        (f"<table><tr><td>a<td>{'x' * 500}</table>", "a\n\n" + "x" * 500),
        ("<td>a<td>b", "a\n\nb"),
        ("<div><table><tr><td>a</div>b<td>c</table>d</div>", "ab | c\n\nd"),
    ],
)  # fmt: skip
def test_data_tables_become_rows_and_layout_tables_do_not(html: str, expected: str) -> None:
    assert text(html) == expected


def test_code_is_not_changed() -> None:
    html = "<pre><code class=x>def f():\n    <b>return</b> 1 &lt; 2\n\n</code></pre>after"
    assert text(html) == "```\ndef f():\n    return 1 < 2\n```\n\nafter"
    assert text("<pre>a```b</pre>") == "````\na```b\n````"
    assert (
        text("<pre><div>one</div><div>two</div>\n<ul><li>x</ul></pre>") == "```\none\ntwo\n\nx\n```"
    )
    assert text("<pre> \n </pre>") == ""


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a href=/x?a=1&amp;b=2>there</a>", "[there](https://example.org/x?a=1&b=2)"),
        ("see<a href='o.html'> it </a>now", "see [it](https://example.org/docs/o.html) now"),
        ("<a href=//cdn.example/x>c</a>", "[c](https://cdn.example/x)"),
        ("<a href=#part>p</a><a name=x>q</a>", "pq"),
        ("<a href=javascript:alert(1)>x</a><a href=mailto:a@b.c>y</a>", "xy"),
        ("<a href='http://[bad'>x</a>", "x"),
        (f"<a href={'x' * 2000}>long</a>", "long"),
        ("<a href=x></a>", ""),
        ("<a href=x>one<a href=y>two",
         "[one](https://example.org/docs/x)[two](https://example.org/docs/y)"),
        ("<a href=x><h3>Card</h3><p>Words</p></a>",
         "### [Card](https://example.org/docs/x)\n\nWords"),
        ("<a href=x><img alt=cat></a>", "[[image: cat]](https://example.org/docs/x)"),
        ("<p><a href=x><h3>Card</h3>Words</a>",
         "### [Card](https://example.org/docs/x)\n\nWords"),
        ("<ul><li><a href=x>never ended<li>other</ul>more",
         "- [never ended](https://example.org/docs/x)\n- other\n\nmore"),
        ("<a href=x>one</a> <a href=x>two</a>",
         "[one](https://example.org/docs/x) [two](https://example.org/docs/x)"),
        ("<base href=/other/><base href=/late/><a href=x>y</a>", "[y](https://example.org/other/x)"),
        ("<a href='/x?a=1&copy=2'>y</a>", "[y](https://example.org/x?a=1&copy=2)"),
    ],
)  # fmt: skip
def test_links_have_absolute_urls(html: str, expected: str) -> None:
    assert text(html) == expected


@pytest.mark.parametrize(
    "html",
    [
        "<script>evil()</script>", "<style>p{}</style>", "<nav><a href=x>menu</a></nav>",
        "<footer>imprint</footer>", "<template>t</template>", "<noscript>turn it on</noscript>",
        "<svg><title>icon</title><path d=1/></svg>", "<iframe>old</iframe>", "<button>OK</button>",
        "<select><option>a<option>b</select>", "<textarea>type</textarea>", "<input value=x>",
        "<div hidden>x<div>y</div>z</div>", "<span hidden>a<span>b</span>c</span>",
        "<p aria-hidden=true>x</p>", "<p hidden>x", "<i style='color:red; display : none'>x</i>",
        "<div style='visibility:hidden'><b>x</b></div>", "<div><nav>menu</div>",
        "<a href=x><span hidden>y</span></a>", "<nav><img alt=x><br></nav>", "<!-- x -->",
    ],
)  # fmt: skip
def test_hidden_elements_and_navigation_are_dropped(html: str) -> None:
    assert text(f"{html}<p>kept") == "kept"


def test_a_body_that_is_hidden_until_its_script_runs_is_shown() -> None:
    assert text("<body style='display:none'>words") == "words"


def test_text_in_a_form_is_kept() -> None:
    html = "<form><p>Terms <label>Name</label> <input><button>Send</button></form>"
    assert text(html) == "Terms Name"


@pytest.mark.parametrize(
    "html",
    [
        "<header>site</header><main><h1>T</h1>words</main><aside>more</aside>",
        "<div><div role=main><h1>T</h1>words</div>around</div>",
        "<div>around</div><article><h1>T</h1>words</article>after",
        "<article>teaser</article><main><article><h1>T</h1>words</article></main>",
        "<article><h1>T</h1><article>words</article></article>around",
        "around<main><h1>T</h1>words",
    ],
)
def test_only_the_main_part_is_read(html: str) -> None:
    assert text(html) == "# T\n\nwords"


def test_all_articles_are_read_and_an_empty_main_part_does_not_count() -> None:
    assert text("<article>one</article>x<article>two</article>") == "one\n\ntwo"
    assert text("<main><nav>menu</nav></main>words") == "words"


def test_a_page_has_a_title() -> None:
    html = "<title> A &amp;\n B </title><svg><title>no</title></svg><title>no</title>x"
    assert readable(html, URL).title == "A & B"
    assert text(html) == "x"


def test_only_content_that_is_nested_too_deeply_is_left_out() -> None:
    deep = DEEPEST + 20
    assert text("<div>" * deep + "<script>evil</script>in" + "</div>" * deep + "out") == "out"
    assert text("<b>" * deep + "shown") == "shown"


NAMES = "p div ul ol li table tr td th h1 pre code blockquote main article a b nav title br hr"
PIECES = [f"<{slash}{name}>" for name in str.split(NAMES) for slash in ("", "/")]
PIECES += [
    "<a href=x>",
    "<img alt=x>",
    "<p hidden>",
    "<div role=main>",
    "<base href=y>",
    "<script>",
]
PIECES += ["</script>", "text", " ", "\n", "`", "```", "&amp;", "<", "&#99999999999;", "\ud800"]


@given(st.lists(st.sampled_from(PIECES), max_size=200).map("".join))
def test_any_page_can_be_read_and_its_text_is_not_longer_than_the_page(html: str) -> None:
    read = readable(html, "https://e.x/")
    assert len(read.text) <= 6 * len(html)
    assert len(read.title) <= len(html)


@given(st.text(), st.text())
def test_text_that_is_not_html_can_be_read_at_an_invalid_url(html: str, url: str) -> None:
    readable(f"<a href=x>{html}</a>", url)


HOSTILE = ["<!--", "<a ", '<a ">" ', "<a x='>", "</", "<?", "&#", "<script>", "<", "</div>", "<b>"]
HOSTILE += ["<ul><li>x", "<blockquote>x<br>", "<table><tr><td>x", "<td></td>", "<a href=x>y", "\n "]
HOSTILE += ["<div>", "<dd><li>", "<a><div>", "<p><b>", "<div></x>", "<select><option>x</option>"]
HOSTILE += [
    "<div><p>x</div></p>",
    "<form><table><td></form></table></form>",
    "<svg><g>",
    "<body a>",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_time_grows_linearly_with_the_length(piece: str) -> None:
    def seconds(length: int) -> float:
        html = "<td><table>" + "<div>" * 200 + piece * (length // len(piece))
        since = time.process_time()
        readable(html, URL)
        return time.process_time() - since

    # The page is ten times as long. A quadratic reader would take a hundred times as long.
    assert seconds(100_000) < 30 * seconds(10_000) + 0.2


COUNTED: dict[str, Callable[[int], str]] = {
    "formatting elements that every later paragraph opens again": lambda n: f"<p><b id={n}>x</p>",
    "attributes of one tag": lambda n: ("<a " if n == 0 else "") + f"a{n} ",
    "attributes of the body": lambda n: f"<body a{n}>",
    "links across blocks": lambda n: f"<a href={n}><div>x</a>",
}


@pytest.mark.parametrize("kind", COUNTED)
def test_no_page_takes_much_time_or_memory(kind: str) -> None:
    html = "".join(map(COUNTED[kind], range(20_000)))
    tree = LexborHTMLParser(sanitized(html).text)
    assert len(tree.css("*")) < 100_000
    since = time.process_time()
    readable(html, URL)
    assert time.process_time() - since < 1.0


def test_a_page_that_is_nested_too_deeply_is_cut_and_says_so() -> None:
    deep = readable("<p>first</p>" + "<div>" * 50_000 + "<p>last", URL)
    assert (deep.text, deep.cut) == ("first", True)
    long = readable("<div><p>word <b>x</b></p><ul><li>more</ul></div>" * 20_000, URL)
    assert not long.cut
    assert long.text.count("word") == 20_000
