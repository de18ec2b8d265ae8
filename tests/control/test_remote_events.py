"""The events that another node sends have no gaps and no repeats. If events are lost on the way,
the reader gets them from the store."""

from collections.abc import Sequence

from hermes.control import remote_events
from hermes.control.remote_events import LiveEvents, RemoteEvents
from hermes.state.codec import record
from hermes.types.events import TextDelta
from hermes.types.identity import TurnId


def batch(first: int, words: Sequence[str], kept: int = 1000, *, over: bool = False) -> LiveEvents:
    recorded = tuple(record(first, [TextDelta(text=word) for word in words]))
    return LiveEvents(turn=TurnId("t"), kept=kept, first=first, recorded=recorded, over=over)


def text(events: RemoteEvents, after: int) -> str:
    found = (event for _, event in events.read(after))
    return "".join(event.text for event in found if isinstance(event, TextDelta))


def test_events_are_read_from_any_number_on() -> None:
    events = RemoteEvents()
    events.add(batch(1001, ["a", "b", "c"]))
    events.add(batch(1004, ["d", "e"]))
    assert events.last == 1005
    assert [text(events, after) for after in (1000, 1002, 1004, 1005)] == ["abcde", "cde", "e", ""]


def test_after_a_gap_all_unstored_events_are_requested_again() -> None:
    events = RemoteEvents()
    events.add(batch(1001, ["a"]))
    events.add(batch(1003, ["c"]))
    assert events.last == 0
    assert text(events, 1000) == "a"
    events.add(batch(1001, ["a", "b", "c"]))
    assert (events.last, text(events, 1001)) == (1003, "bc")


def test_events_that_begin_in_the_stored_part_are_always_accepted() -> None:
    events = RemoteEvents()
    events.add(batch(1005, ["e", "f"], kept=1010))
    assert (events.base, events.last) == (1004, 1006)


def test_events_of_an_earlier_claim_are_ignored() -> None:
    events = RemoteEvents()
    events.add(batch(2001, ["new"], kept=2000))
    events.add(batch(1001, ["old"], kept=1000))
    assert (events.last, text(events, 0)) == (2001, "new")


def test_after_the_end_of_the_turn_readers_use_the_store() -> None:
    events = RemoteEvents()
    events.add(batch(1001, ["a"]))
    events.add(batch(0, [], over=True))
    assert (events.looks, events.last) == (1, 1001)


def test_stored_events_are_removed_from_memory_if_there_are_many() -> None:
    events = RemoteEvents()
    long = "x" * remote_events.HELD_SIZE
    events.add(batch(1001, [long]))
    events.add(batch(1002, [long], kept=1001))
    assert events.base == 1001
    assert text(events, 1001) == long
