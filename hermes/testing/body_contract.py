"""The contract of every store for long bodies."""

from msgspec.structs import replace

from hermes.state import bodies, conversations, inbox, sessions, transcript
from hermes.state.bodies import LONG_BYTES, PIECE_BYTES
from hermes.state.codec import encode
from hermes.state.transcript import History
from hermes.state.unreadable import LOST_MESSAGE
from hermes.testing.contracts import StoreFixture
from hermes.testing.rows import NOW, SOURCE, US, said, session, writer
from hermes.types.messages import Message, MessageEvent, Said, UserMessage
from hermes.types.store import Store, Work

KEY = str(session())
LONG_BODY_TEXT = "words " * (3 * PIECE_BYTES // 6)


def long_event(key: str = "k") -> MessageEvent:
    return replace(said(key), body=Said(text=LONG_BODY_TEXT))


def append(message: Message, turn: str = "t1") -> Work[int]:
    return transcript.append(writer(turn), 0, 0, message, NOW)


def sizes(table: str, column: str) -> Work[list[int]]:
    rows = yield f"select length({column}) from {table} order by 1", ()  # noqa: S608
    return [row[0] for row in rows]


def damage() -> Work[None]:
    yield "update body_pieces set piece = ? where idx = 1", (b"something else",)


def delete(key: str) -> Work[None]:
    for one in (yield from conversations.named(key)):
        yield from conversations.delete(one)


class BodiesContract(StoreFixture):
    """A body is the encoded content of a row, for example of a message. A long body is stored in
    pieces, so that its row stays small. It is read in the same way as a short body."""

    async def test_a_long_message_waits_in_a_small_row(self, store: Store) -> None:
        await store.run(inbox.insert, "i1", long_event(), session(), None, US)
        assert await store.read(sizes, "inbox", "event") == [0]
        assert max(await store.read(sizes, "body_pieces", "piece")) == PIECE_BYTES
        waiting = await store.read(inbox.first_pending, KEY, US)
        assert waiting is not None
        assert waiting.event == long_event()
        assert [one.event for one in await store.read(inbox.all_pending)] == [long_event()]
        assert await store.read(inbox.event_of, "i1") == long_event()

    async def test_a_short_body_has_no_pieces(self, store: Store) -> None:
        short = UserMessage(text="x" * (LONG_BYTES - 1000))
        await store.run(append, short)
        assert await store.read(sizes, "body_pieces", "piece") == []
        assert await store.read(transcript.of_turn, "t1") == [short]

    async def test_a_long_message_of_a_transcript_is_read_everywhere(self, store: Store) -> None:
        message = UserMessage(text=LONG_BODY_TEXT)
        await store.run(append, message)
        await store.run(append, UserMessage(text="and a short one"), "t2")
        assert (await store.read(sizes, "messages", "body"))[0] == 0
        assert await store.read(transcript.of_turn, "t1") == [message]
        told = (message, UserMessage(text="and a short one"))
        found = await store.read(transcript.history, KEY, History(generation=0))
        assert found.messages == told
        assert found.size == sum(len(encode(one)) for one in told)
        entries = await store.read(transcript.entries, KEY)
        assert tuple(entry.message for entry in entries) == told
        assert [(entry.at, entry.generation) for entry in entries] == [(NOW, 0), (NOW, 0)]

    async def test_pieces_that_were_stored_before_the_row_are_used_and_missing_pieces_are_added(
        self, store: Store
    ) -> None:
        message = UserMessage(text=LONG_BODY_TEXT)
        body = encode(message)
        name, pieces = bodies.digest(body), bodies.split(body)
        await store.run(bodies.add_piece, name, 1, pieces[1])
        await store.run(bodies.add_piece, name, 1, pieces[1])
        await store.run(append, message)
        assert len(await store.read(sizes, "body_pieces", "piece")) == len(pieces)
        assert await store.read(transcript.of_turn, "t1") == [message]

    async def test_a_damaged_piece_becomes_a_marker(self, store: Store) -> None:
        await store.run(append, UserMessage(text=LONG_BODY_TEXT))
        await store.run(damage)
        found = await store.read(transcript.history, KEY, History(generation=0))
        assert found.messages == (UserMessage(text=LOST_MESSAGE),)

    async def test_pieces_are_deleted_when_the_last_row_that_refers_to_them_is_gone(
        self, store: Store
    ) -> None:
        await store.run(append, UserMessage(text=LONG_BODY_TEXT))
        await store.run(inbox.insert, "i1", long_event(), session("8"), None, US)
        for key in (session(), session("8")):
            source = replace(SOURCE, chat_id=key.chat)
            await store.run(sessions.touch, key, source, None, "a title", NOW)
        await store.run(bodies.add_piece, "of a request that was never taken in", 0, b"x")
        await store.run(bodies.forget_unused)
        assert await store.read(transcript.of_turn, "t1") == [UserMessage(text=LONG_BODY_TEXT)]
        assert min(await store.read(sizes, "body_pieces", "piece")) > 1
        await store.run(delete, KEY)
        assert await store.read(inbox.event_of, "i1") == long_event()
        await store.run(delete, str(session("8")))
        assert await store.read(sizes, "body_pieces", "piece") == []
