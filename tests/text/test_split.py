import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes.text.markdown import parse
from hermes.text.nodes import Fence
from hermes.text.split import Measure, parts, split, utf16_units

lines = st.sampled_from(
    [
        *("```", "```py", "````", "~~~ sh", "  ```js", "    ```", "> ```", "1. ```c", "- item"),
        *("", "A sentence. Another one! And more words", "> quoted", "# Title", "x" * 30),
        *("日本語。文です", "👍🏽👨\u200d👩 e\u0301"),
    ]
)
texts = st.one_of(st.text(max_size=300), st.lists(lines, max_size=40).map("\n".join))
measures = st.sampled_from([len, utf16_units])


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def code(text: str) -> str:
    return "\n".join(block.text for block in parse(text) if isinstance(block, Fence))


@settings(deadline=None)
@given(texts, st.integers(1, 120), measures)
@example("```py\n" + "a" * 50, 20, len)
@example("```\n" + "`" * 90, 20, len)
@example("```\na\n" + "`" * 90 + "\n```", 16, len)
def test_parts_fit_and_hold_the_whole_text_in_order(
    text: str, limit: int, measure: Measure
) -> None:
    if measure(text) <= limit:
        assert split(text, limit, measure) == ([text] if text else [])
        return
    cut = list(parts(text, limit, measure))
    assert split(text, limit, measure) == [str(part) for part in cut]
    assert squeezed("".join(part.text for part in cut)) == squeezed(text)
    for part in cut:
        assert part.text.strip()
        assert measure(str(part)) <= limit or (len(str(part)) == 1 and not part.closing)


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(1, 60))
def test_only_white_space_is_lost_and_only_at_the_cuts(text: str, limit: int) -> None:
    bodies = [part.text for part in parts(text, limit)]
    assert re.fullmatch(r"\s*" + r"\s*".join(map(re.escape, bodies)) + r"\s*", text)


@settings(deadline=None)
@given(
    st.lists(st.from_regex(r"[a-z =]{0,24}[a-z]", fullmatch=True), min_size=1), st.integers(40, 90)
)
def test_code_that_is_cut_reads_the_same(source: list[str], limit: int) -> None:
    text = "Look:\n\n```py\n" + "\n".join(source) + "\n```\n\nDone."
    cut = split(text, limit)
    assert "\n".join(filter(None, map(code, cut))) == "\n".join(source)


def test_a_text_at_the_limit_is_not_split() -> None:
    text = "a\n\n" + "b" * 97
    assert split(text, 100) == [text]
    assert len(split(text + "c", 100)) == 2


def test_nothing_is_split_into_nothing() -> None:
    assert split("", 10) == []
    assert split(" \n" * 50, 10) == []


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="limit is 0"):
        split("a", 0)


def test_blocks_come_before_lines_and_lines_before_sentences_and_words() -> None:
    assert split("One. Two\nthree\n\nfour five", 20) == ["One. Two\nthree", "four five"]
    assert split("One. Two\nthree four", 16) == ["One. Two", "three four"]
    assert split("One two. Three four", 16) == ["One two.", "Three four"]
    assert split("one two three", 9) == ["one two", "three"]
    assert split("一二三。四五六七", 6) == ["一二三。", "四五六七"]


def test_a_block_is_kept_whole_when_it_can_be() -> None:
    fence = "```py\nprint(1)\nprint(2)\n```"
    assert split("Some words before it.\n" + fence, 40) == ["Some words before it.", fence]


def test_a_cut_block_is_closed_and_opened_again_with_its_info() -> None:
    assert split("```py x\none\ntwo\nthree\n```\nend", 24) == [
        "```py x\none\ntwo\n```",
        "```py x\nthree\n```\nend",
    ]


def test_a_block_is_not_cut_right_after_its_first_line() -> None:
    assert split("aaaa bbbb cccc dddd\n```py\n" + "x" * 30 + "\n```", 30) == [
        "aaaa bbbb cccc dddd",
        "```py\n" + "x" * 20 + "\n```",
        "```py\n" + "x" * 10 + "\n```",
    ]


def test_a_block_in_a_list_loses_its_indent_where_the_list_is_cut_off() -> None:
    text = "- a\n  - b\n    ```py\n" + "".join(f"    line {n}\n" for n in range(6)) + "    ```"
    first, *others = split(text, 60)
    assert first.endswith("\n    ```")
    assert all(code(part).startswith("line") for part in others)


def test_a_block_in_a_quote_stays_in_the_quote() -> None:
    text = "> ```py\n" + "> some words of code\n" * 3 + "> ```"
    for part in split(text, 40):
        assert part.startswith("> ```py\n> some")
        assert part.endswith("> ```")


def test_what_is_seen_as_one_character_is_not_cut() -> None:
    for whole in ("👍🏽", "e\u0301", "👨\u200d👩\u200d👧", "\ud83d\ude00"):
        assert set(split(whole * 20, 7)) == {whole * (7 // len(whole))} | {
            whole * (20 % (7 // len(whole)) or 7 // len(whole))
        }


def test_a_character_without_end_is_cut_all_the_same() -> None:
    assert split("e" + "\u0301" * 99, 50) == ["e" + "\u0301" * 49, "\u0301" * 50]
    assert split("e\u0301\u0301", 2) == ["e\u0301", "\u0301"]


def test_a_character_larger_than_the_limit_stands_alone() -> None:
    assert split("a👍b", 1, utf16_units) == ["a", "👍", "b"]


def test_units_count_surrogates() -> None:
    assert utf16_units("a👍") == 3
    assert utf16_units("\ud83d") == 1


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "```py\na\n```\n" * 8_000,
        "```py\n~~~\n" * 10_000,
        "`" * 100_000,
        "> " * 50_000,
        "- " * 50_000,
        "\t\n" * 50_000,
        ("[" * 99 + "\n") * 1_000,
    ],
    ids=lambda text: repr(text[:12]),
)
@pytest.mark.parametrize("limit", [3, 40, 4096])
def test_hostile_text_is_split_in_time(text: str, limit: int) -> None:
    began = time.monotonic()
    cut = split(text, limit, utf16_units)
    assert time.monotonic() - began < 10
    assert max(map(len, cut), default=0) <= limit


def test_a_line_of_code_cut_in_a_quote_goes_on_in_the_quote() -> None:
    assert split("> ```\n> " + "x" * 40, 30) == [
        "> ```\n> " + "x" * 16 + "\n> ```",
        "> ```\n> " + "x" * 16 + "\n> ```",
        "> ```\n> " + "x" * 8,
    ]


def test_a_block_whose_own_lines_fill_a_part_is_cut_like_any_text() -> None:
    assert split("```python\nab cd\n```", 12) == ["```python", "ab cd\n```"]


def test_a_closing_line_longer_than_a_part_is_cut_too() -> None:
    cut = split("```\na\n" + "`" * 60, 20)
    assert all(len(part) <= 20 for part in cut)


def test_blank_lines_of_code_that_fill_a_part_are_no_message() -> None:
    cut = split("```\na\n" + "\n" * 60 + "b\n```", 20)
    assert [code(part).strip() for part in cut] == ["a", "b"]
