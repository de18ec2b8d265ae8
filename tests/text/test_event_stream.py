"""Server-sent events are parsed independently of how their bytes are cut."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.text.event_stream import EventStreamParser

STREAM = b": ping\nevent: x\ndata: 1\r\n\r\ndata:2\nid: 7\ndata: [DONE]\ndata:\ndata: \xc3\xa9"


def test_only_data_lines_are_read_and_in_every_notation() -> None:
    parser = EventStreamParser()
    assert parser.feed(STREAM) == [b"1", b"2", b"[DONE]", b""]
    assert parser.pending == len(b"data: \xc3\xa9")
    assert parser.end() == ["é".encode()]
    assert parser.pending == 0


@given(st.lists(st.integers(0, len(STREAM)), max_size=8).map(sorted))
def test_payloads_do_not_depend_on_how_the_bytes_are_cut(cuts: list[int]) -> None:
    parser, found = EventStreamParser(), list[bytes]()
    for start, stop in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        found += parser.feed(STREAM[start:stop])
    assert [*found, *parser.end()] == [b"1", b"2", b"[DONE]", b"", "é".encode()]


def test_a_field_whose_name_only_begins_with_data_is_ignored() -> None:
    assert EventStreamParser().feed(b"database: x\ndata\n data: y\n") == []
