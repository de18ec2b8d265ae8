"""The payloads of server-sent events are read from a stream."""

import pytest

from hermes.core.models.answer import StreamedAnswer
from hermes.core.models.stream import PayloadStream
from hermes.testing.upstream import choice_of
from hermes.types.errors import Disconnected


class Collecting:
    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def take(self, payload: bytes) -> None:
        self.taken.append(payload)


def test_only_data_lines_are_read_and_in_every_notation() -> None:
    collecting = Collecting()
    stream = PayloadStream(StreamedAnswer(choice_of("chat"), lambda _event: None), collecting)
    stream.feed(b": ping\nevent: x\ndata: 1\r\n\r\ndata:2\nid: 7\ndata: [DONE]\ndata:\ndata: 3")
    assert collecting.taken == [b"1", b"2"]
    stream.end()
    assert collecting.taken == [b"1", b"2", b"3"]


class Refusing:
    def take(self, payload: bytes) -> None:
        raise ValueError(payload.decode())


def test_an_invalid_payload_in_an_unfinished_answer_counts_as_a_lost_connection() -> None:
    answer = StreamedAnswer(choice_of("chat"), lambda _event: None)
    stream = PayloadStream(answer, Refusing())
    with pytest.raises(Disconnected, match=r"an invalid answer \(nonsense\)"):
        stream.take([b"nonsense"])
    answer.finished = True
    stream.take([b"nonsense"])
