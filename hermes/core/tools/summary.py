"""Summarizes tool calls for people: the arguments and the result, short and without secrets."""

import string
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

import anyio.to_thread
import msgspec

from hermes.core.tools.results import Redact
from hermes.text.redact import mask, redact_assigned
from hermes.text.redact import redact as redact_for_people
from hermes.text.secret_files import is_secret_file, masked_values
from hermes.types.value import Value

SHOWN_ARGUMENTS = 2000
"""Bytes of the arguments' JSON."""
SHOWN_VALUE = 200
"""Characters of one text in the arguments."""
SHOWN_ITEMS = 20
"""Items of one list or object in the arguments."""
SHOWN_RESULT = 300
"""Characters of a result."""
LABEL_LENGTH = 80
_MARGIN = 200
"""Characters after the shown ones that are read at least, to recognise a secret at the cut."""
_TOKEN = string.ascii_letters + string.digits + "_.~+/=:@-"
"""The characters of a secret that is recognised only when it is complete."""
_LONGEST_PATH = 4096
_NAME = 100
"""Characters at the end of a name that tell whether it is the name of a secret."""


class CallSummary(Value):
    label: str = ""
    """The first text of the arguments: the path, the command, the question, the first URL."""
    arguments: str = ""
    """A JSON object; empty if the model gave none that is valid."""


async def summarize(arguments: str, redact: Redact, longest_secret: int = 0) -> CallSummary:
    """The model's arguments with long texts cut, secrets masked, and large fields left out.

    `longest_secret` is the length of the longest secret that only `redact` knows.
    """
    margin = max(longest_secret, _MARGIN)
    if len(arguments) <= SHOWN_ARGUMENTS:
        return _summary(arguments, redact, margin)
    # Redaction takes a millisecond for every few thousand characters.
    return await anyio.to_thread.run_sync(_summary, arguments, redact, margin)


def summarize_result(text: str) -> str:
    """The beginning of a result that is fit for the model, so that it has no known secrets."""
    head = text.strip()
    if len(head) > 2 * SHOWN_RESULT:
        # Cut between words, because half a secret is not recognised.
        head = head[: 2 * SHOWN_RESULT].rsplit(None, 1)[0]
    return _cut(redact_assigned(head), SHOWN_RESULT)


def _summary(arguments: str, redact: Redact, margin: int) -> CallSummary:
    def shorten(text: str) -> str:
        return _shortened(text, redact, margin)

    def shorten_line(text: str) -> str:
        if _is_secret_path(text):
            return shorten(text)
        return _cut(redact(masked_values(text[: SHOWN_VALUE + margin])), SHOWN_VALUE)

    try:
        decoded = msgspec.json.decode(arguments or "{}", type=dict[str, object])
        # The other texts of a call that names a file with secrets are lines of the file.
        text_of = shorten_line if any(map(_is_secret_path, _texts(decoded))) else shorten
        kept: dict[str, object] = {}
        for name, value in decoded.items():
            more = {**kept, shorten(name): _shown(value, name, shorten, text_of)}
            if len(msgspec.json.encode(more)) <= SHOWN_ARGUMENTS:
                kept = more
        encoded = msgspec.json.encode(kept).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return CallSummary()
    return CallSummary(label=_label(kept), arguments=encoded)


def _shown(value: object, name: str, name_of: Redact, text_of: Redact) -> object:
    """The value, with the names and the texts in it as the two functions shorten them."""
    match value:
        case str():
            return mask(value) if _names_secret(name[-_NAME:]) else text_of(value)
        case list():
            return [_shown(one, name, name_of, text_of) for one in value[:SHOWN_ITEMS]]
        case dict():
            items = list(value.items())[:SHOWN_ITEMS]
            return {name_of(inner): _shown(one, inner, name_of, text_of) for inner, one in items}
        case _:
            return value


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _texts(one)
        case dict():
            yield from _texts(list(value.values()))
        case _:
            pass


def _is_secret_path(text: str) -> bool:
    """Whether the text is the path of a file that is there to hold secrets."""
    return len(text) <= _LONGEST_PATH and is_secret_file(str(PurePosixPath(text)))


def _shortened(text: str, redact: Redact, margin: int) -> str:
    """The beginning of the text, without secrets or parts of them."""
    longest = SHOWN_VALUE - 1
    if len(text) <= SHOWN_VALUE + margin:
        return _cut(redact_assigned(redact(text)), SHOWN_VALUE)
    head = text[: longest + margin]
    # A secret that the first cut left incomplete is at the very end.
    complete = head.rstrip(_TOKEN)
    safe = redact_assigned(redact(complete))
    unsafe = max(0, margin - (len(head) - len(complete)))
    return f"{safe[: max(0, min(longest, len(safe) - unsafe))]}…"


@lru_cache(maxsize=256)
def _names_secret(name: str) -> bool:
    """Whether a value is masked where it is assigned to the name: `password=…` is."""
    return redact_for_people(f"{name}=abcdefgh") != f"{name}=abcdefgh"


def _label(arguments: Mapping[str, object]) -> str:
    values = (one for value in arguments.values() for one in _flat(value))
    first = next((value for value in values if isinstance(value, str)), "")
    return _cut(first.splitlines()[0] if first else "", LABEL_LENGTH)


def _flat(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else (value,)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
