"""Summarizes the arguments and results of tool calls for people, without secrets."""

import string
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

import anyio.to_thread
import msgspec

from hermes.core.tools.results import Redact
from hermes.text.changes import short_diff
from hermes.text.redact import mask, redact_assigned
from hermes.text.redact import redact as redact_for_people
from hermes.text.secret_files import is_secret_file, masked_values
from hermes.types.value import Value

SHOWN_ARGUMENTS = 2000
"""Maximum number of bytes of JSON in a summary of a call's arguments."""
SHOWN_VALUE = 200
"""Maximum number of characters that a summary shows of one string in the arguments."""
SHOWN_ITEMS = 20
"""Maximum number of items that a summary shows of one list or object in the arguments."""
SHOWN_RESULT = 300
"""Maximum number of characters that a summary shows of a result."""
LABEL_LENGTH = 80
_MARGIN = 200
"""Minimum number of characters that are read beyond the end of the shown text. So a secret that
crosses this end is read completely and recognised."""
_TOKEN = string.ascii_letters + string.digits + "_.~+/=:@-"
"""Characters that may occur in a token (a secret such as an API key)."""
_LONGEST_PATH = 4096
_NAME = 100
"""The end of a name such as `api_key` shows that its value is a secret. At most this number of
characters at the end of a name are read."""


class CallSummary(Value):
    label: str = ""
    """The first string of the arguments, such as the path, the command or the URL."""
    arguments: str = ""
    """The shortened arguments as a JSON object; empty if the model's arguments are invalid."""


async def summarize(arguments: str, redact: Redact, longest_secret: int = 0) -> CallSummary:
    """Cuts long strings in the arguments, masks secrets and leaves out large fields.

    `longest_secret` is the length of the longest configured secret.
    """
    margin = max(longest_secret, _MARGIN)
    if len(arguments) <= SHOWN_ARGUMENTS:
        return _summary(arguments, redact, margin)
    # Redaction takes a millisecond per few thousand characters, so it runs in a thread.
    return await anyio.to_thread.run_sync(_summary, arguments, redact, margin)


def summarize_result(text: str) -> str:
    """Returns the beginning of a result, and masks values with names like `password`. The caller
    must already have masked all known secrets."""
    head = text.strip()
    if len(head) > 2 * SHOWN_RESULT:
        # The text is cut between words, because redaction does not recognise a part of a secret.
        head = head[: 2 * SHOWN_RESULT].rsplit(None, 1)[0]
    return _cut(redact_assigned(head), SHOWN_RESULT)


def summarize_change(before: str, after: str, redact: Redact) -> str:
    """Returns a short diff of two versions of a text file, without secrets."""
    # The texts are redacted before the comparison, because a diff may split a secret.
    return short_diff(redact_assigned(redact(before)), redact_assigned(redact(after)))


def _summary(arguments: str, redact: Redact, margin: int) -> CallSummary:
    def shorten(text: str) -> str:
        return _shortened(text, redact, margin)

    def shorten_line(text: str) -> str:
        if _is_secret_path(text):
            return shorten(text)
        return _cut(redact(masked_values(text[: SHOWN_VALUE + margin])), SHOWN_VALUE)

    try:
        decoded = msgspec.json.decode(arguments or "{}", type=dict[str, object])
        # If an argument is the path of a secret file, the other arguments may contain lines of that
        # file. So the values in these lines are masked.
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
    """Returns the value as the summary shows it. Names in objects are shortened with `name_of`, and
    strings with `text_of`. A string is masked if its name is the name of a secret."""
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
    """Returns whether the text is the path of a file that usually holds secrets."""
    return len(text) <= _LONGEST_PATH and is_secret_file(str(PurePosixPath(text)))


def _shortened(text: str, redact: Redact, margin: int) -> str:
    """Returns the beginning of the text, without secrets or parts of them."""
    longest = SHOWN_VALUE - 1
    if len(text) <= SHOWN_VALUE + margin:
        return _cut(redact_assigned(redact(text)), SHOWN_VALUE)
    head = text[: longest + margin]
    # The cut may have split a secret, and redaction does not recognize half a secret. So the
    # incomplete word at the end is removed.
    complete = head.rstrip(_TOKEN)
    safe = redact_assigned(redact(complete))
    unsafe = max(0, margin - (len(head) - len(complete)))
    return f"{safe[: max(0, min(longest, len(safe) - unsafe))]}…"


@lru_cache(maxsize=256)
def _names_secret(name: str) -> bool:
    """Returns whether this is the name of a secret, whose value must be masked."""
    return redact_for_people(f"{name}=abcdefgh") != f"{name}=abcdefgh"


def _label(arguments: Mapping[str, object]) -> str:
    values = (one for value in arguments.values() for one in _flat(value))
    first = next((value for value in values if isinstance(value, str)), "")
    return _cut(first.splitlines()[0] if first else "", LABEL_LENGTH)


def _flat(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else (value,)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
