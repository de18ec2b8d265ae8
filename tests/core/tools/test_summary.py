"""A tool call has a short summary for people, without secrets."""

import json
import threading

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.tools.summary import (
    LABEL_LENGTH,
    SHOWN_ARGUMENTS,
    SHOWN_ITEMS,
    SHOWN_RESULT,
    SHOWN_VALUE,
    CallSummary,
    summarize,
    summarize_result,
)
from hermes.text.redact import redact

SECRET = 'hunter2"\n' * 4
"""A secret whose text changes in JSON, because JSON escapes quotes and line breaks."""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(), inner, max_size=30),
    max_leaves=60,
)


def redact_tokens(text: str) -> str:
    return text.replace(SECRET, "…")


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        ('{"count": 1, "path": "a.txt", "text": "x"}', "a.txt"),
        ('{"text": "first\\nsecond"}', "first"),
        ('{"urls": ["https://a.example", "https://b.example"]}', "https://a.example"),
        ('{"text": ""}', ""),
        ('{"text": "' + "x" * 150 + '"}', "x" * (LABEL_LENGTH - 1) + "…"),
        ('{"password": "hunter2"}', "…"),
        ("{", ""),
        ("[]", ""),
        ('{"text": "\\ud800"}', ""),
        ('{"text":' + "[" * 100_000, ""),
        ("{}", ""),
        ("", ""),
    ],
)
async def test_the_label_is_the_first_text_argument(arguments: str, label: str) -> None:
    assert (await summarize(arguments, str)).label == label


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=300), VALUES, max_size=30))
async def test_the_shown_arguments_are_always_a_short_object(arguments: dict[str, object]) -> None:
    shown = (await summarize(json.dumps(arguments), str)).arguments
    assert len(shown.encode()) <= SHOWN_ARGUMENTS
    assert isinstance(msgspec.json.decode(shown), dict)


async def test_short_arguments_are_shown_as_they_are() -> None:
    shown = await summarize(' {"path": "zwölf", "offset": 2, "more": [true, null, {"a": 1}]} ', str)
    assert shown.arguments == '{"path":"zwölf","offset":2,"more":[true,null,{"a":1}]}'


async def test_long_texts_and_lists_are_cut_and_large_fields_are_left_out() -> None:
    long = "x" * (SHOWN_VALUE + 1)
    wanted = {"text": long, "items": ["y"] * 100, "large": [long] * 15, "last": 1}
    shown = msgspec.json.decode((await summarize(json.dumps(wanted), str)).arguments)
    assert shown == {
        "text": "x" * (SHOWN_VALUE - 1) + "…",
        "items": ["y"] * SHOWN_ITEMS,
        "last": 1,
    }


@pytest.mark.parametrize("before", [0, 1, SHOWN_VALUE - 20, SHOWN_VALUE - 1, 5000])
async def test_no_part_of_a_secret_is_shown_at_any_position(before: int) -> None:
    text = "z" * before + SECRET + "z" * 20_000
    for arguments in ({"text": text}, {"list": [{"text": text}]}, {text: 1}, {"a": {text: 1}}):
        shown = await summarize(json.dumps(arguments), redact_tokens)
        assert "hunter" not in shown.arguments + shown.label


@pytest.mark.parametrize("before", [0, 100, SHOWN_VALUE - 1, 390])
async def test_a_part_of_a_long_secret_is_not_shown(before: int) -> None:
    token = f"eyJ{'h' * 300}.{'p' * 600}.{'s' * 300}"
    shown = await summarize(json.dumps({"text": "z " * (before // 2) + token}), redact)
    assert "hhhhh" not in shown.arguments
    phrase = "correct horse " * 60

    def hide_phrase(text: str) -> str:
        return text.replace(phrase, "…")

    text = "z " * (before // 2) + phrase + "z" * 5000
    shown = await summarize(json.dumps({"text": text}), hide_phrase, len(phrase))
    assert "horse" not in shown.arguments


async def test_only_the_shown_text_and_a_margin_are_redacted() -> None:
    seen: list[str] = []

    def look(text: str) -> str:
        seen.append(text)
        return text

    await summarize(json.dumps({"text": "some words " * 160}), look)
    assert len("".join(seen)) < 3 * SHOWN_VALUE


@pytest.mark.parametrize(
    "arguments",
    [
        {"password": "opensesame"},
        {"login": {"api_key": "opensesame"}},
        {"secrets": [{"token": "opensesame"}]},
        {"command": "export API_TOKEN=opensesame"},
        {"command": "curl -u me --data 'password: opensesame'"},
        {"passphrase": ["opensesame"]},
    ],
)
async def test_a_value_with_the_name_of_a_secret_is_masked(arguments: dict[str, object]) -> None:
    shown = await summarize(json.dumps(arguments), str)
    assert "opensesame" not in shown.arguments + shown.label
    assert shown != CallSummary()


KEY = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (
            {"path": "a/.env", "content": f"# Shop\nSTRIPE=whsec_{KEY}\nPIN=1234\n"},
            {"path": "a/.env", "content": "# Shop\nSTRIPE=whse…mU\nPIN=…\n"},
        ),
        ({"old": KEY, "path": "id_ed25519"}, {"old": "…", "path": "id_ed25519"}),
        (
            {"edits": [{"path": ".env/.", "new": f"A={KEY}", "count": 1}]},
            {"edits": [{"path": ".env/.", "new": "A=b3Bl…mU", "count": 1}]},
        ),
        ({"path": "a.txt", "content": "A=1234"}, {"path": "a.txt", "content": "A=1234"}),
        ({"path": ".env.example", "content": "A=1"}, {"path": ".env.example", "content": "A=1"}),
    ],
)
async def test_the_lines_of_a_secret_file_are_masked_as_in_read_file(
    arguments: dict[str, object], shown: dict[str, object]
) -> None:
    assert msgspec.json.decode((await summarize(json.dumps(arguments), str)).arguments) == shown


async def test_a_long_secret_file_is_masked_up_to_the_cut() -> None:
    arguments = json.dumps({"path": ".env", "content": f"A={KEY}\n" * 500})
    shown = await summarize(arguments, str)
    assert KEY[:8] not in shown.arguments
    assert shown.label == ".env"


async def test_long_arguments_do_not_block_the_event_loop() -> None:
    threads: set[int] = set()

    def look(text: str) -> str:
        threads.add(threading.get_ident())
        return text

    await summarize(json.dumps({"content": "x" * 100_000}), look)
    assert threads
    assert threading.get_ident() not in threads


def test_the_beginning_of_a_result_is_shown() -> None:
    assert summarize_result("\n one\ntwo \n") == "one\ntwo"
    long = summarize_result("word " * 10_000)
    assert len(long) == SHOWN_RESULT
    assert long.endswith("…")
    assert summarize_result("") == ""


@given(st.integers(0, 20))
def test_no_part_of_a_password_in_a_result_is_shown(before: int) -> None:
    filler = "password=opensesame " * 25
    text = filler + "z" * (600 - len(filler) - before) + " password=opensesame " + "word " * 100
    assert "open" not in summarize_result(text)
    assert "ses" not in summarize_result(text)
