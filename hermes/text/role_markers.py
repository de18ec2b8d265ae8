r"""Escapes the role markers of chat templates in text that is sent to a model.

A server that renders messages with a chat template may read `<|im_start|>` inside a message as the
beginning of another message. The escaped form, `<\|im_start|>`, is ordinary text for every
tokenizer. A marker that already has backslashes gets one more, so that `restore` returns exactly
the original text.
"""

import re
from collections.abc import Callable

import msgspec

_NAME = r"[\w./:-]{1,64}"
_ANGLED = "|".join(
    (
        rf"\|{_NAME}\|?>|{_NAME}\|>",  # ChatML, Llama 3, Phi, Command, gpt-oss, Gemma 4
        "｜[^\\s<>｜]{1,64}｜>",  # DeepSeek
        r"(?:start|end)_of_turn>|(?:bos|eos)>",  # Gemma
        r"/?s>|</?SYS>>",  # Llama 2, Mistral
        r"/?tool_(?:call|response)>",  # Hermes, Qwen
    )
)
_SQUARE = r"/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|TOOL_CONTENT)\]"
_LINES = r"(?:Human|Assistant):"  # Claude, before the Messages API


_BEGINNINGS = (("<", _ANGLED), ("[", _SQUARE), ("\n\n", _LINES))


def _markers(slashes: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Returns two values for each kind of marker: the start of the marker, such as `<`, and a
    pattern. The pattern matches the start and the backslashes after it, if the rest of the marker
    follows. `slashes` is the regular expression for the backslashes."""
    # Each pattern begins with a fixed start. So a search is fast in a text without a marker, and
    # most texts contain no marker.
    return tuple(
        (start, re.compile(f"{re.escape(start)}{slashes}(?={rest})")) for start, rest in _BEGINNINGS
    )


_ANY = _markers(r"\\*+")
_BARE = _markers("")
_ESCAPED = _markers(r"\\++")
_IN_JSON = re.compile(rf"\\n\\n{_LINES}|\\u00(?:3[cC]|5[bB])")
"""Starts of markers, in the forms in which JSON may escape them."""


def escape(text: str) -> str:
    """Adds a backslash to every marker. Use it for all text that was not written by a model."""
    for start, pattern in _ANY:
        if start in text:
            text = pattern.sub(_longer, text)
    return text


def escape_bare(text: str) -> str:
    """Adds a backslash to every marker that has none.

    Use it for text that a model has written. If the model quotes a marker from its input, the
    marker already has a backslash.
    """
    for start, pattern in _BARE:
        if start in text:
            text = pattern.sub(_longer, text)
    return text


def restore(text: str) -> str:
    """Removes the backslash that `escape` has added."""
    for _, pattern in _ESCAPED:
        text = pattern.sub(_shorter, text)
    return text


def _longer(found: re.Match[str]) -> str:
    return f"{found[0]}\\"


def _shorter(found: re.Match[str]) -> str:
    return found[0][:-1]


def escape_arguments(arguments: str) -> str:
    """Applies `escape_bare` to the strings in the JSON arguments of a tool call."""
    bare = any(pattern.search(arguments) for _, pattern in _BARE)
    return _changed(arguments, escape_bare) if bare or _IN_JSON.search(arguments) else arguments


def restore_arguments(arguments: str) -> str:
    """Applies `restore` to the strings in the JSON arguments of a tool call."""
    # In JSON, a backslash is written as two backslashes. Arguments without two backslashes contain
    # nothing to restore.
    return _changed(arguments, restore) if "\\\\" in arguments else arguments


def _changed(arguments: str, change: Callable[[str], str]) -> str:
    """Applies `change` to every string in the arguments. Invalid JSON is returned unchanged."""
    try:
        before = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return arguments
    after = _texts_changed(before, change)
    return arguments if after == before else msgspec.json.encode(after).decode()


def _texts_changed(value: object, change: Callable[[str], str]) -> object:
    match value:
        case str():
            return change(value)
        case list():
            return [_texts_changed(one, change) for one in value]
        case dict():
            return {name: _texts_changed(one, change) for name, one in value.items()}
        case _:
            return value
