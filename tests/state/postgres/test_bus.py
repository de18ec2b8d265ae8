"""Messages between the processes that share a database."""

import anyio
import pytest

from hermes.state.postgres import bus
from hermes.state.postgres.bus import PostgresBus
from hermes.state.postgres.pool import Pool, Server
from hermes.state.postgres.store import open_postgres


async def test_messages_to_one_process_or_to_all_others_arrive_complete_and_in_order(
    url: str,
) -> None:
    long = "ä€😀" * 3000
    async with (
        open_postgres(url, "gateway") as one,
        open_postgres(url, "gateway") as two,
        open_postgres(url, "gateway") as three,
    ):
        second, third = two.bus.received(), three.bus.received()
        await one.bus.send(["for all", "for all"])
        await one.bus.send([long, "", "short"], three.owner)
        await one.bus.send(["last"])
        with anyio.fail_after(10):
            assert [await anext(second) for _ in range(3)] == ["for all", "for all", "last"]
            received = [await anext(third) for _ in range(6)]
        assert received == ["for all", "for all", long, "", "short", "last"]


async def test_a_message_without_its_first_piece_is_dropped(url: str) -> None:
    receiver = PostgresBus(Pool(Server(url)), "me")
    sender = PostgresBus(Pool(Server(url)), "you")
    pieces = sender._payloads("x" * 2 * bus.PIECE_CHARACTERS)
    receiver.take(pieces[1])
    for piece in sender._payloads("whole"):
        receiver.take(piece)
    receiver.take(pieces[0])
    receiver.interrupted()
    receiver.take(pieces[1])
    with anyio.fail_after(5):
        assert await anext(receiver.received()) == "whole"
    assert receiver._outlet.statistics().current_buffer_used == 0
    receiver.close()
    sender.close()


async def test_the_number_of_unread_messages_is_limited(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus, "UNREAD_MESSAGES", 2)
    receiver = PostgresBus(Pool(Server(url)), "me")
    for number in range(5):
        receiver.take(f"you {number} 1 1 text")
    assert receiver._outlet.statistics().current_buffer_used == 2
    receiver.close()


async def test_a_message_that_cannot_be_sent_is_lost_without_an_error(url: str) -> None:
    pool = Pool(Server(url))
    await pool.close()
    sender = PostgresBus(pool, "me")
    await sender.send(["lost"])
    sender.close()
