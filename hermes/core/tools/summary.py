"""Summarizes tool calls for people: the arguments and the result, short and without secrets."""

from collections.abc import Mapping, Sequence

import anyio.to_thread
import msgspec

from hermes.core.tools.results import Redact, beginning
from hermes.text.redact import mask
from hermes.text.redact import redact as redact_for_people
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


class CallSummary(Value):
    label: str = ""
    """The first text of the arguments: the path, the command, the question, the first URL."""
    arguments: str = ""
    """A JSON object; empty if the model gave none that is valid."""


async def summarize(arguments: str, redact: Redact) -> CallSummary:
    """The model's arguments with long texts cut, secrets masked, and large fields left out."""
    if len(arguments) <= SHOWN_ARGUMENTS:
        return _summary(arguments, redact)
    # Redaction takes a millisecond for every few thousand characters.
    return await anyio.to_thread.run_sync(_summary, arguments, redact)


def summarize_result(text: str) -> str:
    """The beginning of a result that is fit for the model, so that it has no known secrets."""
    head = text.strip()
    if len(head) > 2 * SHOWN_RESULT:
        # Cut between words, because half a secret is not recognised.
        head = head[: 2 * SHOWN_RESULT].rsplit(None, 1)[0]
    return _cut(redact_for_people(head), SHOWN_RESULT)


def _summary(arguments: str, redact: Redact) -> CallSummary:
    def strict(text: str) -> str:
        return redact_for_people(redact(text))

    try:
        decoded = msgspec.json.decode(arguments or "{}", type=dict[str, object])
        kept: dict[str, object] = {}
        for name, value in decoded.items():
            more = {**kept, _cut(strict(name), SHOWN_VALUE): _shown(value, name, strict)}
            if len(msgspec.json.encode(more)) <= SHOWN_ARGUMENTS:
                kept = more
        encoded = msgspec.json.encode(kept).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return CallSummary()
    return CallSummary(label=_label(kept), arguments=encoded)


def _shown(value: object, name: str, redact: Redact) -> object:
    match value:
        case str():
            # `password=…` is redacted, so a text under the name `password` must be too.
            named = redact_for_people(f"{name}=abcdefgh") != f"{name}=abcdefgh"
            whole = len(value) <= SHOWN_VALUE
            text = redact(value) if whole else f"{beginning(value, redact, SHOWN_VALUE - 1)}…"
            return mask(value) if named else text
        case list():
            return [_shown(one, name, redact) for one in value[:SHOWN_ITEMS]]
        case dict():
            items = list(value.items())[:SHOWN_ITEMS]
            return {
                _cut(redact(inner), SHOWN_VALUE): _shown(one, inner, redact) for inner, one in items
            }
        case _:
            return value


def _label(arguments: Mapping[str, object]) -> str:
    values = (one for value in arguments.values() for one in _flat(value))
    first = next((value for value in values if isinstance(value, str)), "")
    return _cut(first.splitlines()[0] if first else "", LABEL_LENGTH)


def _flat(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else (value,)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
