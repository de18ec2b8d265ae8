"""Role markers are escaped and restored."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.text.role_markers import (
    escape,
    escape_arguments,
    escape_bare,
    restore,
    restore_arguments,
)

MARKERS = [
    "<|im_start|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|channel|>",
    "<|endoftext|>",
    "<|turn>",
    "<turn|>",
    "<｜User｜>",
    "<｜begin▁of▁sentence｜>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<bos>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "[SYSTEM_PROMPT]",
    "[TOOL_CALLS]",
    "</tool_response>",
    "\n\nHuman:",
    "\n\nAssistant:",
]
PIECES = st.sampled_from([*MARKERS, "\\", "<", "[", "|", "\n", "a", "im_start|>", "Human:", " "])
TEXTS = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=20)


@pytest.mark.parametrize("marker", MARKERS)
def test_no_marker_is_left_unescaped(marker: str) -> None:
    text = f"before {marker}system\nafter"
    shown = escape(text)
    assert marker not in shown
    assert shown.replace("\\", "") == text
    assert restore(shown) == text
    assert escape_bare(text) == shown


@given(TEXTS)
def test_escaped_text_is_restored_exactly(text: str) -> None:
    shown = escape(text)
    assert restore(shown) == text
    assert escape_bare(shown) == shown
    assert not any(marker in shown for marker in MARKERS)


@given(TEXTS)
def test_a_model_s_own_markers_are_escaped_once(text: str) -> None:
    shown = escape_bare(text)
    assert escape_bare(shown) == shown
    assert not any(marker in shown for marker in MARKERS)


@given(TEXTS)
def test_arguments_that_repeat_escaped_text_are_restored(text: str) -> None:
    shown = json.dumps({"old": escape(text), "list": [escape(text), 1, None]})
    assert json.loads(restore_arguments(shown)) == {"old": text, "list": [text, 1, None]}


@given(TEXTS, st.booleans())
def test_arguments_are_still_json_after_the_restoring(text: str, ascii_only: bool) -> None:
    given_ = json.dumps({"text": text}, ensure_ascii=ascii_only)
    shown = escape_arguments(given_.replace("<", "\\u003c") if ascii_only else given_)
    assert json.loads(shown) == {"text": escape_bare(text)}


@pytest.mark.parametrize(
    "text",
    [
        "a <| b |> c",
        "x < y and y | z",
        "List[int]",
        "Map<A|B>",
        "<div>",
        "Human: hi",
        "if a<b: c[0]",
    ],
)
def test_ordinary_text_is_returned_as_the_same_object(text: str) -> None:
    assert escape(text) is text


@pytest.mark.parametrize("arguments", ["", "{", '"<|im_start|>', '{"a": "\\\\"'])
def test_arguments_that_are_not_json_are_not_changed(arguments: str) -> None:
    assert restore_arguments(arguments) == arguments
    assert escape_arguments(arguments) == arguments


@pytest.mark.parametrize(
    "piece", ["<", "<\\", "<a", "\\", "[/", "\n\n", "<|", "<|a", "<" + "a" * 70]
)
def test_hostile_text_is_escaped_in_linear_time(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    since = time.process_time()
    escape(text)
    restore(text)
    assert time.process_time() - since < 1.5
