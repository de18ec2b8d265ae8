"""Sends the text of a long answer page by page, so that a slow client costs little memory."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from starlette.types import Receive, Scope, Send

from hermes.control.following import Following
from hermes.entry.http.responses import JSON_HEADERS, BodyStream, raw
from hermes.streaming.outline import AnswerJson
from hermes.types.value import Value


class AnswerPlace(Value):
    """The position of an answer's text among the events of its turn."""

    after: int
    """The number of the event right before the first event of the answer."""
    upto: int
    """The number of the last event of the answer."""
    segments: list[tuple[int, int]]
    """The segments of the answer: the pieces of text between tool calls. Each segment is given as
    the numbers of its first and its last text event."""


async def send_answer(following: Following, place: AnswerPlace, out: BodyStream) -> None:
    """Sends the text of the answer as a JSON string, without the quotes around it."""
    text, last = AnswerJson(place.segments), place.after
    while page := await following.earlier(last, place.upto):
        await out.send(b"".join([text.feed(one.seq, one.event) for one in page]))
        last = page[-1].seq


class LongJsonResponse:
    """A JSON body with the text of an answer in the middle. It is sent in chunks."""

    def __init__(
        self,
        before: bytes,
        after: bytes,
        place: AnswerPlace,
        open_events: Callable[[], AbstractContextManager[Following]],
        headers: Mapping[str, str],
    ) -> None:
        self._before = before
        self._after = after
        self._place = place
        self._open_events = open_events
        self._headers = [*JSON_HEADERS, *raw(headers)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        out = BodyStream(send)
        with self._open_events() as following:
            await out.send(self._before)
            await send_answer(following, self._place, out)
            await out.send(self._after)
        await out.finish()
