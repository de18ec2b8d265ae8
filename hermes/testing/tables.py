"""The contract of every store for the inbox, turns and deliveries."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest

from hermes.state import deliveries, inbox, owners, questions, turns
from hermes.state.codec import TEXT_PIECE, record
from hermes.testing.contracts import StoreFixture
from hermes.testing.rows import (
    CHAT,
    NOW,
    THEM,
    US,
    ask,
    cuts,
    hold_account,
    merged,
    names,
    outcomes_of,
    put,
    said,
    session,
    stored_events,
    turn_row,
)
from hermes.types.delivery import Placed
from hermes.types.errors import ClaimLost
from hermes.types.events import AgentEvent, Notice, ReasoningDelta, SegmentEnded, TextDelta
from hermes.types.identity import AgentId, CallId, OwnerId, Target, TurnId
from hermes.types.messages import (
    Content,
    Duplicate,
    MessageRef,
)
from hermes.types.store import Row, Store, Work
from hermes.types.turns import Answered, Approved, Denied, Expired

T = TypeVar("T")


class InboxContract(StoreFixture):
    """A message is accepted only once, and messages are answered in the order of their arrival."""

    async def test_a_dedupe_key_is_accepted_once(self, store: Store) -> None:
        assert await store.run(inbox.insert, "i1", said("k"), session(), None, US) is None
        again = await store.run(inbox.insert, "i2", said("k"), session(), None, US)
        assert again == Duplicate(id="i1", turn=None)
        other = await store.run(inbox.insert, "i3", said("k", "f"), session(), None, US)
        assert other == Duplicate(id="i1", same=False)
        assert await store.read(inbox.count_pending, str(session())) == 1

    async def test_only_one_of_many_messages_with_the_same_key_is_accepted(
        self, store: Store
    ) -> None:
        works = [
            partial(inbox.insert, f"i{number}", said(f"k{number % 10}"), session(), None, US)
            for number in range(200)
        ]
        outcomes = await outcomes_of(store, works)
        assert sum(outcome is None for outcome in outcomes) == 10
        assert sum(isinstance(outcome, Duplicate) for outcome in outcomes) == 190
        assert await store.read(inbox.count_pending, str(session())) == 10

    async def test_a_bound_row_belongs_to_the_turn_with_the_same_id(self, store: Store) -> None:
        await store.run(inbox.insert, "i1", said("k"), session(), None, US, "bound")
        again = await store.run(inbox.insert, "i2", said("k"), session(), None, US)
        assert again == Duplicate(id="i1", turn="i1")
        assert await store.read(inbox.event_of, "i1") == said("k")
        assert await store.read(inbox.first_pending, str(session()), US) is None

    async def test_waiting_rows_come_in_the_order_of_their_arrival(self, store: Store) -> None:
        key = str(session())
        for number in range(9, 0, -1):
            event = said(f"k{number}")
            await store.run(inbox.insert, f"i{number}", event, session(), None, US)
        found = []
        while waiting := await store.read(inbox.first_pending, key, US):
            found.append(waiting.id)
            await store.run(inbox.bind, waiting.id, waiting.id)
            await store.run(inbox.finish, waiting.id)
        assert found == [f"i{number}" for number in range(9, 0, -1)]

    async def test_rows_of_dead_processes_are_taken_over_and_their_idle_sessions_found(
        self, store: Store
    ) -> None:
        busy, idle = session("1"), session("2")
        await store.run(turns.insert, turn_row("t", str(busy)), "main", "1")
        await store.run(inbox.insert, "i1", said("k1"), busy, None, THEM)
        await store.run(inbox.insert, "i2", said("k2"), idle, None, THEM)
        assert await store.read(inbox.idle_sessions, US) == []
        await store.run(inbox.adopt, [THEM], US, [AgentId("main")])
        assert await store.read(inbox.idle_sessions, THEM) == []
        assert await store.read(inbox.idle_sessions, US) == [str(idle)]


class TurnsContract(StoreFixture):
    """A turn belongs to one process at a time, and a question gets only one answer."""

    async def test_a_session_has_one_open_turn(self, store: Store) -> None:
        await store.run(turns.insert, turn_row("t1"), "main", "7")
        for state in ("running", "suspended"):
            with pytest.raises(Exception, match=r"(?i)unique"):
                await store.run(turns.insert, turn_row("t2", state=state), "main", "7")
        await store.run(turns.insert, turn_row("t3", "agent:main:x:private:8"), "main", "8")
        await store.run(turns.close, TurnId("t1"), 1, "completed", NOW)
        await store.run(turns.insert, turn_row("t2"), "main", "7")
        found = await store.read(turns.open_in, str(session()))
        assert found == turn_row("t2")
        assert await store.read(turns.get, "t9") is None

    async def test_a_claim_that_was_taken_over_writes_nothing(self, store: Store) -> None:
        turn = TurnId("t")
        await store.run(turns.insert, turn_row("t"), "main", "7")
        assert await store.run(turns.claim, turn, 1, THEM) == 2
        before = await store.read(turns.get, "t")

        def late(write: Callable[[], Work[T]]) -> Work[T]:
            yield from put("lost")
            return (yield from write())

        for write in (
            partial(turns.advance, turn, 1, 9, 9),
            partial(turns.close, turn, 1, "completed", NOW),
            partial(turns.hold, turn, 1),
        ):
            with pytest.raises(ClaimLost):
                await store.run(late, write)
        with pytest.raises(ClaimLost):
            await store.run(turns.claim, turn, 1, US)
        assert await store.read(turns.get, "t") == before
        assert await store.read(names) == []
        await store.run(turns.advance, turn, 2, 3, 4)
        await store.run(turns.hold, turn, 2)
        row = await store.read(turns.get, "t")
        assert row is not None
        assert (row.steps, row.seq, row.owner, row.epoch) == (3, 4, THEM, 2)

    async def test_a_closed_turn_can_be_neither_claimed_nor_advanced(self, store: Store) -> None:
        turn = TurnId("t")
        await store.run(turns.insert, turn_row("t"), "main", "7")
        await store.run(turns.close, turn, 1, "failed", NOW, reason=("why", "code"))
        for write in (partial(turns.advance, turn, 1, 1, 1), partial(turns.hold, turn, 1)):
            with pytest.raises(ClaimLost):
                await store.run(write)
        with pytest.raises(ClaimLost):
            await store.run(turns.claim, turn, 1, US)
        row = await store.read(turns.get, "t")
        assert row is not None
        assert (row.state, row.reason, row.code) == ("failed", "why", "code")

    async def test_only_one_of_many_processes_claims_a_turn(self, store: Store) -> None:
        await store.run(turns.insert, turn_row("t"), "main", "7")
        claims = [
            partial(turns.claim, TurnId("t"), 1, OwnerId(f"o{number}")) for number in range(50)
        ]
        outcomes = await outcomes_of(store, claims)
        assert sum(outcome == 2 for outcome in outcomes) == 1
        assert sum(isinstance(outcome, ClaimLost) for outcome in outcomes) == 49

    async def test_a_question_is_decided_once(self, store: Store) -> None:
        await store.run(turns.insert, turn_row("t"), "main", "7")
        await store.run(turns.start_call, CallId("c0"), TurnId("t"), None, NOW)
        await store.run(ask, "q", "c0", kind="question", choices=("a", "b"))
        assert await store.read(turns.started_calls, TurnId("t")) == {}
        (found,) = await store.read(questions.open_questions, TurnId("t"))
        assert (found.id, found.prompt, found.choices) == ("q", "Really?", ("a", "b"))
        decides = [
            partial(questions.decide, "q", "answered", f"a{n}", "me", NOW) for n in range(20)
        ]
        outcomes = await outcomes_of(store, decides)
        assert sum(outcome == "t" for outcome in outcomes) == 1
        assert sum(outcome is None for outcome in outcomes) == 19
        kept = (await store.read(questions.decisions, TurnId("t")))[CallId("c0")]
        assert kept == Answered(text=f"a{outcomes.index(TurnId('t'))}")
        assert await store.read(questions.open_questions, TurnId("t")) == []

    async def test_a_suspended_turn_can_resume_when_all_is_decided(self, store: Store) -> None:
        turn = TurnId("t")
        await store.run(turns.insert, turn_row("t"), "main", "7")
        for number in range(3):
            await store.run(ask, f"q{number}", f"c{number}")
        await store.run(turns.close, turn, 1, "suspended", NOW)
        assert await store.run(questions.decide, "q0", "approved", None, "me", NOW) == "t"
        assert await store.run(questions.decide, "q1", "denied", "no", "me", NOW) == "t"
        assert await store.read(turns.suspended_to_resume, US) == []
        assert await store.read(questions.overdue_questions, NOW + 99) == []
        assert await store.read(questions.overdue_questions, NOW + 100) == ["q2"]
        assert await store.run(questions.decide, "q2", "expired", None, "", NOW) == "t"
        assert [row.id for row in await store.read(turns.suspended_to_resume, US)] == ["t"]
        assert await store.read(questions.decisions, turn) == {
            "c0": Approved(digest="d"),
            "c1": Denied(reason="no"),
            "c2": Expired(),
        }
        await store.run(turns.adopt_suspended, [US], THEM, [AgentId("main")])
        assert await store.read(turns.suspended_to_resume, US) == []
        assert await store.run(turns.claim, turn, 1, THEM) == 2
        assert [row.id for row in await store.read(turns.running_of, THEM)] == ["t"]

    async def test_a_suspended_turn_waits_for_its_client_too(self, store: Store) -> None:
        turn = TurnId("t")
        row = turn_row("t")
        await store.run(turns.insert, row, "main", "7")
        await store.run(ask, "q", "c0")
        for call in ("c2", "c1"):
            await store.run(questions.await_client, CallId(call), row, "main", NOW + 9, NOW)
        await store.run(turns.close, turn, 1, "suspended", NOW)
        assert await store.read(questions.open_client_calls, turn) == ["c1", "c2"]
        assert [one.id for one in await store.read(questions.open_questions, turn)] == ["q"]
        overdue = await store.read(questions.overdue_questions, NOW + 9)
        assert sorted(overdue) == ["c1", "c2"]
        await store.run(questions.decide, "q", "approved", None, "me", NOW)
        assert await store.read(turns.suspended_to_resume, US) == []
        await store.run(questions.close_client_calls, turn, NOW)
        assert await store.read(questions.open_client_calls, turn) == []
        assert [one.id for one in await store.read(turns.suspended_to_resume, US)] == ["t"]
        await store.run(turns.set_request, turn, "r")
        found = await store.read(turns.get, "t")
        assert found is not None
        assert found.request == "r"

    async def test_a_stop_resumes_a_suspended_turn(self, store: Store) -> None:
        await store.run(turns.insert, turn_row("t"), "main", "7")
        await store.run(ask, "q", "c")
        await store.run(turns.close, TurnId("t"), 1, "suspended", NOW)
        assert await store.read(turns.suspended_to_resume, US) == []
        await store.run(turns.request_stop, TurnId("t"), "me")
        (row,) = await store.read(turns.suspended_to_resume, US)
        assert row.stop_requested == "me"

    async def test_started_calls_are_remembered_with_their_handle(self, store: Store) -> None:
        call, handle = CallId("t_0_0"), "somewhere:12:ü"
        await store.run(turns.start_call, call, TurnId("t"), None, NOW)
        assert await store.read(turns.started_calls, TurnId("t")) == {call: None}
        await store.run(turns.start_call, call, TurnId("t"), handle, NOW)
        assert await store.read(turns.started_calls, TurnId("t")) == {call: handle}

    async def test_events_are_replayed_exactly_from_any_number_however_they_were_cut(
        self, store: Store
    ) -> None:
        events: list[AgentEvent] = [
            TextDelta(text="a"),
            TextDelta(text=""),
            TextDelta(text="ü𝄞"),
            ReasoningDelta(text="r"),
            TextDelta(text="b"),
            TextDelta(text="c "),
            SegmentEnded(),
            Notice(text="n"),
        ]
        first = 2_000_001
        every = list(cuts(len(events)))
        for number, cut in enumerate(every):
            for start, end in zip((0, *cut), (*cut, len(events)), strict=True):
                recorded = record(first + start, events[start:end])
                turn = TurnId(f"t{number}")
                await store.run(turns.keep_events, turn, first + start, recorded)
        assert len(every) == 2 ** (len(events) - 1)
        for number in range(len(every)):
            for seen in range(-1, len(events) + 1):
                after = first - 1 + seen
                kept = await stored_events(store, TurnId(f"t{number}"), after)
                pieces = [recorded.after(after) for recorded in kept]
                lacking = [piece for piece in pieces if piece is not None]
                assert merged(lacking) == merged(events[max(seen, 0) :])

    async def test_events_that_are_stored_twice_are_read_once(self, store: Store) -> None:
        recorded = record(1, [TextDelta(text="a"), SegmentEnded()])
        for _ in range(2):
            await store.run(turns.keep_events, TurnId("t"), 1, recorded)
        await store.run(turns.keep_events, TurnId("t"), 3, [])
        assert await stored_events(store, TurnId("t"), 0) == recorded

    async def test_a_long_text_is_read_in_small_pages(self, store: Store) -> None:
        texts = [f"{number:8}" * 100 for number in range(1000)]
        recorded = record(1, [TextDelta(text=text) for text in texts])
        await store.run(turns.keep_events, TurnId("t"), 1, recorded)
        for number in (0, 1, 20, 21, 500, 999, 1000):
            found, after, pages = "", number, 0
            while True:
                page = await store.read(turns.events_page, TurnId("t"), after)
                pieces = [one.after(after) for one in page.recorded]
                text = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
                assert len(text) <= TEXT_PIECE + turns.PAGE_BYTES
                found, pages = found + text, pages + 1
                if not page.more:
                    break
                after = page.recorded[-1].seq
            assert found == "".join(texts[number:])
            assert pages >= len(found) // (TEXT_PIECE + turns.PAGE_BYTES)


class DeliveriesContract(StoreFixture):
    """The deliveries of a chat are sent in order, by the process that holds the lease of the
    account."""

    async def test_a_chat_gets_its_deliveries_in_order(self, store: Store) -> None:
        lease = await hold_account(store)
        for number in range(5):
            await store.run(deliveries.owe, CHAT, Content(text=str(number)), "main", None, NOW)
        other = Target(account="telegram", chat_id="8")
        await store.run(deliveries.owe, other, Content(text="x"), "main", None, NOW)
        assert sorted(await store.read(deliveries.owed_chats, "telegram")) == ["7", "8"]
        for number in range(5):
            taken = await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
            assert taken is not None
            assert (taken.content.text, taken.state) == (str(number), "sending")
            assert (taken.attempts, taken.doubtful) == (1, False)
            await store.run(deliveries.mark_delivered, taken.id, taken.attempts, (), NOW)
        assert await store.run(deliveries.take_next, "telegram", "7", lease, NOW) is None
        assert await store.read(deliveries.owed_chats, "telegram") == ["8"]

    async def test_only_the_process_that_serves_the_account_takes_its_deliveries(
        self, store: Store
    ) -> None:
        lease = await hold_account(store)
        await store.run(deliveries.owe, CHAT, Content(text="x"), "main", None, NOW)
        for wrong in ((THEM, lease[1]), (US, lease[1] + 1)):
            assert await store.run(deliveries.take_next, "telegram", "7", wrong, NOW) is None
        taken_over = await store.run(owners.claim_lease, "account:telegram", THEM, {US}, NOW)
        assert taken_over == lease[1] + 1
        assert await store.run(deliveries.take_next, "telegram", "7", lease, NOW) is None
        taken = await store.run(deliveries.take_next, "telegram", "7", (THEM, taken_over), NOW)
        assert taken is not None
        assert taken.attempts == 1

    async def test_a_cut_off_delivery_is_doubtful_until_a_part_was_sent(self, store: Store) -> None:
        lease = await hold_account(store)
        id = await store.run(deliveries.owe, CHAT, Content(text="x"), "main", None, NOW)
        await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
        again = await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
        assert again is not None
        assert (again.id, again.doubtful, again.attempts) == (id, True, 2)
        placed = (Placed(ref=MessageRef(id="m1"), text="x"),)
        await store.run(deliveries.mark_placed, id, 2, placed)
        await store.run(deliveries.put_back, id, 2, placed, NOW + 5, doubtful=False)
        early = await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
        assert early is not None
        assert (early.state, early.doubtful, early.placed) == ("ready", False, placed)
        await store.run(deliveries.take_next, "telegram", "7", lease, NOW + 5)
        await store.run(deliveries.doubt_sending, "another")
        await store.run(deliveries.doubt_sending, "telegram")
        last = await store.run(deliveries.take_next, "telegram", "7", lease, NOW + 5)
        assert last is not None
        assert last.doubtful
        await store.run(deliveries.put_back, id, last.attempts, placed, 0, doubtful=True)
        await store.run(deliveries.mark_dead, id, last.attempts, "rejected", NOW)
        assert await store.run(deliveries.take_next, "telegram", "7", lease, NOW + 5) is None

    async def test_a_doubtful_delivery_stays_doubtful_when_it_is_put_back(
        self, store: Store
    ) -> None:
        lease = await hold_account(store)
        id = await store.run(deliveries.owe, CHAT, Content(text="x"), "main", None, NOW)
        await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
        for attempt, doubtful in ((1, True), (2, False)):
            await store.run(deliveries.put_back, id, attempt, (), 0, doubtful=doubtful)
            taken = await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
            assert taken is not None
            assert taken.doubtful

    async def test_a_late_write_changes_no_finished_delivery(self, store: Store) -> None:
        lease = await hold_account(store)
        placed = (Placed(ref=MessageRef(id="m1"), text="x"),)
        late: list[Callable[[str], Work[object]]] = [
            lambda id: deliveries.put_back(id, 1, (), 0, doubtful=True),
            lambda id: deliveries.mark_placed(id, 1, ()),
            lambda id: deliveries.mark_delivered(id, 1, (), NOW + 1),
            lambda id: deliveries.mark_dead(id, 1, "late", NOW + 1),
        ]
        for finish in (
            lambda id: deliveries.mark_delivered(id, 1, placed, NOW),
            lambda id: deliveries.mark_dead(id, 1, "rejected", NOW),
        ):
            id = await store.run(deliveries.owe, CHAT, Content(text="x"), "main", None, NOW)
            await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
            await store.run(finish, id)
            before = await store.read(_finished, id)
            for write in late:
                await store.run(write, id)
                assert await store.read(_finished, id) == before
            assert await store.run(deliveries.take_next, "telegram", "7", lease, NOW) is None

    async def test_a_late_write_does_not_finish_a_delivery_that_is_ready_again(
        self, store: Store
    ) -> None:
        lease = await hold_account(store)
        id = await store.run(deliveries.owe, CHAT, Content(text="x"), "main", None, NOW)
        await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
        await store.run(deliveries.doubt_sending, "telegram")
        await store.run(deliveries.mark_delivered, id, 1, (), NOW)
        again = await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
        assert again is not None
        assert again.id == id

    async def test_an_open_delivery_waits_for_its_turn(self, store: Store) -> None:
        lease = await hold_account(store)
        topic = Target(account="telegram", chat_id="7", thread_id="9")
        for turn in ("t1", "t2"):
            await store.run(deliveries.owe, topic, None, "main", TurnId(turn), NOW)
        assert await store.run(deliveries.take_next, "telegram", "7", lease, NOW) is None
        found = await store.read(deliveries.open_of, TurnId("t1"))
        assert found is not None
        assert (found.target, found.turn, found.placed) == (topic, "t1", ())
        await store.run(deliveries.complete, TurnId("t2"), None, NOW)
        await store.run(deliveries.complete, TurnId("t1"), Content(text="answer"), NOW)
        assert await store.read(deliveries.open_of, TurnId("t1")) is None
        taken = await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
        assert taken is not None
        assert taken.content.text == "answer"
        await store.run(deliveries.mark_delivered, taken.id, taken.attempts, (), NOW)
        assert await store.run(deliveries.take_next, "telegram", "7", lease, NOW) is None

    async def test_a_chat_that_got_a_delivery_of_the_turn_can_get_another_one(
        self, store: Store
    ) -> None:
        lease, notice = await hold_account(store), Content(text="sorry")
        await store.run(deliveries.owe_again, TurnId("t1"), notice, "main", NOW)
        assert await store.read(deliveries.owed_chats, "telegram") == []
        await store.run(deliveries.owe, CHAT, None, "main", TurnId("t1"), NOW)
        await store.run(deliveries.complete, TurnId("t1"), None, NOW)
        await store.run(deliveries.owe_again, TurnId("t1"), notice, "main", NOW)
        taken = await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
        assert taken is not None
        assert (taken.content, taken.target) == (notice, CHAT)

    async def test_the_longest_of_several_pauses_of_a_chat_applies(self, store: Store) -> None:
        for until in (NOW + 5, NOW + 30, NOW + 1):
            await store.run(deliveries.freeze, "telegram", "7", until)
        await store.run(deliveries.freeze, "telegram", "8", NOW - 1)
        await store.run(deliveries.freeze, "discord", "9", NOW + 1)
        assert await store.read(deliveries.freezes, "telegram", NOW) == {"7": NOW + 30}
        assert await store.read(deliveries.freezes, "telegram", NOW + 30) == {}


def _finished(id: str) -> Work[list[Row]]:
    return (yield "select state, placed, error, finished_at from deliveries where id = ?", (id,))
