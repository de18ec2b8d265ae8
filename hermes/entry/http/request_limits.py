"""Limits of a request that are checked before its body is decoded."""

import msgspec

from hermes.entry.http.errors import ApiError, bad_request

MOST_REQUEST_MESSAGES = 10_000
_SHORTEST_MESSAGE = len(b'{"role":""},')


class _Message(msgspec.Struct, gc=False):
    """Any message. Its fields are skipped, because skipping is five times faster than decoding."""


class _Messages(msgspec.Struct):
    messages: list[_Message] = []


_decoder = msgspec.json.Decoder(_Messages)


def has_too_many_messages(body: bytes) -> bool:
    """Returns whether the body has more messages than allowed. Raises msgspec's errors if the body
    can't be read.

    A short body is not searched, because it has no room for so many messages.
    """
    if len(body) < MOST_REQUEST_MESSAGES * _SHORTEST_MESSAGE or not _has_many_objects(body):
        return False
    return len(_decoder.decode(body).messages) > MOST_REQUEST_MESSAGES


def too_many_messages() -> ApiError:
    return bad_request(
        f"A request may have {MOST_REQUEST_MESSAGES} messages at most. Leave out early ones, or use"
        " a session, which keeps them.",
        "too_many_messages",
        "messages",
    )


def _has_many_objects(body: bytes) -> bool:
    """Returns whether the body has so many braces that it may contain too many messages."""
    place = -1
    for _ in range(MOST_REQUEST_MESSAGES + 1):
        # find() is used because it skips quickly to the next brace. count() would compare every
        # byte.
        place = body.find(b"{", place + 1)
        if place < 0:
            return False
    return True
