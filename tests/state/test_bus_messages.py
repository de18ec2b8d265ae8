"""Long messages of a bus are cut into pieces and joined again."""

from contextlib import closing

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.state import bus_messages
from hermes.state.bus_messages import HEADER_SIZE, BusMessages


def waiting(messages: BusMessages) -> int:
    return messages._outlet.statistics().current_buffer_used


@settings(deadline=None)
@given(st.text(), st.integers(1, 5))
def test_a_message_is_joined_from_its_pieces(text: str, characters: int) -> None:
    async def check() -> None:
        with closing(BusMessages("you")) as sender, closing(BusMessages("me")) as receiver:
            for piece in sender.pieces(text, characters):
                sender.take_piece(piece)
                receiver.take_piece(piece)
            assert await anext(receiver.received()) == text
            assert waiting(sender) == waiting(receiver) == 0

    anyio.run(check)


async def test_a_message_of_which_a_piece_is_missing_is_dropped() -> None:
    with closing(BusMessages("you")) as sender, closing(BusMessages("me")) as receiver:
        pieces = sender.pieces("abc", 1)
        (whole,) = sender.pieces("whole", 5)
        for piece in (pieces[1], whole, pieces[0], pieces[2]):
            receiver.take_piece(piece)
        assert await anext(receiver.received()) == "whole"
        receiver.take_piece(pieces[0])
        receiver.interrupted()
        receiver.take_piece(pieces[1])
        receiver.take_piece(pieces[2])
        assert waiting(receiver) == 0


async def test_pieces_of_different_messages_may_be_mixed() -> None:
    with closing(BusMessages("you")) as sender, closing(BusMessages("me")) as receiver:
        for pair in zip(sender.pieces("abc", 1), sender.pieces("xyz", 1), strict=True):
            for piece in pair:
                receiver.take_piece(piece)
        messages = receiver.received()
        assert [await anext(messages), await anext(messages)] == ["abc", "xyz"]


async def test_unread_and_unfinished_messages_do_not_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bus_messages, "UNREAD_MESSAGES", 2)
    with closing(BusMessages("me")) as receiver:
        for number in range(5):
            receiver.take_piece(f"you {number} 1 1 text")
            receiver.take_announcement(f"you {number}")
        for number in range(500):
            receiver.take_piece(f"you {number} 1 2 text")
        assert waiting(receiver) == 2
        assert len(receiver._pieces) == bus_messages.UNFINISHED_MESSAGES
        announced = receiver.announced()
        assert [await anext(announced), await anext(announced)] == [0, 1]


async def test_announcements_of_other_processes_arrive_and_the_reader_is_told_about_gaps() -> None:
    with closing(BusMessages("you")) as sender, closing(BusMessages("me")) as receiver:
        receiver.take_announcement(receiver.announcement(1))
        receiver.take_announcement(sender.announcement(2))
        receiver.interrupted()
        for text in ("", "you", "you x", "you -1", f"you {'9' * 5000}"):
            receiver.take_announcement(text)
        receiver.take_announcement(sender.announcement(3))
        announced = receiver.announced()
        assert [await anext(announced) for _ in range(3)] == [2, None, 3]


async def test_a_header_is_short() -> None:
    with closing(BusMessages("0" * 21)) as sender:
        assert len(sender.pieces("", 1)[0]) < HEADER_SIZE


async def test_messages_that_arrive_after_the_end_are_ignored() -> None:
    receiver = BusMessages("me")
    receiver.close()
    receiver.take_piece("you 1 1 1 text")
    receiver.take_announcement("you 1")
    assert waiting(receiver) == 0
