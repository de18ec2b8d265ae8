r"""Escapes the role markers of chat templates in text that is sent to a model.

A server that renders messages with a chat template may read `<|im_start|>` inside a message as the
beginning of another message. The escaped form, `<\|im_start|>`, is ordinary text for every
tokenizer. A marker that has backslashes already gets one more, so that `restore` is exact.
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
_LINES = r"(?:Human|Assistant):"  # Claude, before it took messages


_BEGINNINGS = (("<", _ANGLED), ("[", _SQUARE), ("\n\n", _LINES))


def _markers(slashes: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Patterns that match up to the backslashes of a marker, each with the text it begins with."""
    # A text is searched for each beginning: most texts have none, or few.
    return tuple(
        (start, re.compile(f"{re.escape(start)}{slashes}(?={rest})")) for start, rest in _BEGINNINGS
    )


_ANY = _markers(r"\\*+")
_BARE = _markers("")
_ESCAPED = _markers(r"\\++")
_IN_JSON = re.compile(rf"\\n\\n{_LINES}|\\u00(?:3[cC]|5[bB])")
"""The beginnings of markers that JSON may write in another way."""


def escape(text: str) -> str:
    """The text with one backslash more in every marker. For all text that no model has written."""
    for start, pattern in _ANY:
        if start in text:
            text = pattern.sub(_longer, text)
    return text


def escape_bare(text: str) -> str:
    """The text with a backslash in every marker that has none.

    For text of a model: it has read escaped text, and what it repeats is escaped already.
    """
    for start, pattern in _BARE:
        if start in text:
            text = pattern.sub(_longer, text)
    return text


def restore(text: str) -> str:
    """The text without the backslash that `escape` has added."""
    for _, pattern in _ESCAPED:
        text = pattern.sub(_shorter, text)
    return text


def _longer(found: re.Match[str]) -> str:
    return f"{found[0]}\\"


def _shorter(found: re.Match[str]) -> str:
    return found[0][:-1]


def escape_arguments(arguments: str) -> str:
    """`escape_bare` for the texts in the JSON arguments of a tool call."""
    bare = any(pattern.search(arguments) for _, pattern in _BARE)
    return _changed(arguments, escape_bare) if bare or _IN_JSON.search(arguments) else arguments


def restore_arguments(arguments: str) -> str:
    """`restore` for the texts in the JSON arguments of a tool call."""
    # In JSON, a backslash is written as two.
    return _changed(arguments, restore) if "\\\\" in arguments else arguments


def _changed(arguments: str, change: Callable[[str], str]) -> str:
    """The arguments with every text changed. What is not valid JSON is returned as it is."""
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
