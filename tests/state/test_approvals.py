"""Tests queries for the open approvals of a person or a conversation. Tests that a rule permits one
action of one person."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.state import approvals, deliveries, questions, turns
from hermes.state.approvals import OpenApproval
from hermes.testing.rows import CHAT, NOW, SOURCE, hold_account, turn_row
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store
from hermes.types.identity import AgentId, CallId, PersonId, SessionKey, TurnId
from hermes.types.messages import Content
from hermes.types.store import Store
from hermes.types.turns import Question

ANN, BOB = PersonId("telegram:42"), PersonId("telegram:43")
KEY = SessionKey(agent=AgentId("main"), platform="telegram", kind="private", chat="7")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_test_store(tmp_path) as store:
        yield store


async def asked(
    store: Store, id: str, *, session: SessionKey = KEY, chat: str = "7", person: str = ANN
) -> OpenApproval:
    """Stores a suspended turn that waits for the approval `id`, and returns this approval."""
    row = replace(turn_row(f"t{id}", str(session)), person=PersonId(person))
    row = replace(row, account="telegram", trigger="message", state="suspended")
    await store.run(turns.insert, row, "main", chat)
    question = Question(
        call=CallId(f"{id}_0_0"),
        kind="approval",
        prompt="Really?",
        choices=("Once",),
        detail=f"rm  -rf\n{id}",
        digest=f"here {id}",
        lasting_digest=f"everywhere {id}",
    )
    await store.run(questions.ask, id, row, "main", question, NOW)
    found = await store.read(approvals.find, id)
    assert found is not None
    return found


def ids(found: list[OpenApproval]) -> list[str]:
    return [one.id for one in found]


async def test_an_approval_is_read_back_as_it_was_asked(store: Store) -> None:
    found = await asked(store, "0123456789ab")
    assert found == OpenApproval(
        id="0123456789ab",
        turn=TurnId("t0123456789ab"),
        session=str(KEY),
        agent=AgentId("main"),
        person=ANN,
        detail="rm  -rf\n0123456789ab",
        choices=("Once",),
        digest="here 0123456789ab",
        lasting_digest="everywhere 0123456789ab",
        asked_at=NOW,
        expires_at=NOW + 3600,
    )
    assert found.short_id == "456789ab"
    assert found.brief == "rm -rf 0123456789ab"


async def show(store: Store, id: str, *, thread: str | None = None, attempts: int = 1) -> None:
    """Stores a delivery that shows the approval in chat 7. `attempts` is the number of times that
    the gateway has tried to send this delivery."""
    target = replace(CHAT, thread_id=thread)
    await store.run(deliveries.owe, target, Content(text="?"), "main", TurnId(f"t{id}"), NOW)
    turn = f"t{id}"
    await rows(store, "update deliveries set attempts = ? where turn = ?", attempts, turn)


async def test_approvals_are_found_by_person_and_conversation(store: Store) -> None:
    other = replace(KEY, thread="background-1")
    await asked(store, "a")
    await asked(store, "b", session=other)
    await show(store, "b")
    await asked(store, "c", session=replace(KEY, chat="8"), chat="8")
    await asked(store, "d", session=replace(KEY, user="43"), person=BOB)
    await show(store, "d")
    assert ids(await store.read(approvals.asked_in, ANN, KEY, SOURCE)) == ["a", "b"]
    assert ids(await store.read(approvals.asked_of, ANN, KEY.agent)) == ["a", "b", "c"]
    assert ids(await store.read(approvals.asked_of, ANN, AgentId("other"))) == []
    assert ids(await store.read(approvals.asked_in, BOB, KEY, SOURCE)) == ["d"]
    assert ids(await store.read(approvals.all_open)) == ["a", "b", "c", "d"]
    await store.run(questions.decide, "a", "denied", None, "me", NOW)
    assert ids(await store.read(approvals.asked_in, ANN, KEY, SOURCE)) == ["b"]
    assert await store.read(approvals.find, "a") is None


async def test_an_approval_of_another_thread_or_agent_does_not_belong_to_this_conversation(
    store: Store,
) -> None:
    await asked(store, "a", session=replace(KEY, thread="9"))
    await show(store, "a", thread="9")
    here, there = SOURCE, replace(SOURCE, thread_id="9")
    assert ids(await store.read(approvals.asked_in, ANN, KEY, here)) == []
    assert ids(await store.read(approvals.asked_in, ANN, KEY, there)) == ["a"]
    other = replace(KEY, agent=AgentId("other"))
    assert ids(await store.read(approvals.asked_in, ANN, other, there)) == []


async def test_an_approval_that_was_not_shown_yet_can_not_be_decided_by_a_bare_word(
    store: Store,
) -> None:
    await asked(store, "a")
    await show(store, "a")
    assert ids(await store.read(approvals.asked_in, ANN, KEY, SOURCE)) == ["a"]
    await asked(store, "b", session=replace(KEY, thread="background-1"))
    await show(store, "b", attempts=0)
    assert ids(await store.read(approvals.asked_in, ANN, KEY, SOURCE)) == ["a"]


async def test_a_rule_is_for_one_person_of_one_agent(store: Store) -> None:
    approval = await asked(store, "a")
    await store.run(approvals.grant, approval, "x", None, "me", NOW)
    granted = {
        (agent, person, digest): await store.read(
            approvals.is_granted, AgentId(agent), PersonId(person), "-", digest
        )
        for agent in ("main", "other")
        for person in (ANN, BOB)
        for digest in ("x", "y")
    }
    assert [key for key, known in granted.items() if known] == [("main", ANN, "x")]


async def test_rules_are_listed_and_revoked(store: Store) -> None:
    approval = await asked(store, "a")
    for _ in range(2):
        await store.run(approvals.grant, approval, "x", None, "me", NOW)
    (rule,) = await store.read(approvals.rules)
    assert (rule.detail, rule.session, rule.granted_by) == (approval.detail, None, "me")
    assert await store.run(approvals.revoke, rule.id)
    assert not await store.run(approvals.revoke, rule.id)
    assert await store.read(approvals.rules) == []


async def test_the_rules_of_a_conversation_end_with_it(store: Store) -> None:
    approval = await asked(store, "a")
    await store.run(approvals.grant, approval, "here", approval.session, "me", NOW)
    await store.run(approvals.grant, approval, "everywhere", None, "me", NOW)
    await store.run(approvals.end_session, str(KEY))
    assert [rule.session for rule in await store.read(approvals.rules)] == [None]


async def test_a_question_is_undelivered_if_its_delivery_is_given_up(store: Store) -> None:
    lease = await hold_account(store)
    await asked(store, "a")
    id = await store.run(deliveries.owe, CHAT, Content(text="?"), "main", TurnId("ta"), NOW)
    await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
    assert not await store.run(deliveries.mark_dead, id, 7, "late", NOW)
    assert await store.run(deliveries.mark_dead, id, 1, "refused", NOW)
    assert await rows(store, "select state from questions") == [("undelivered",)]
    assert not await store.run(deliveries.mark_dead, id, 1, "refused", NOW)


async def test_the_questions_of_a_chat_that_is_gone_are_undelivered(store: Store) -> None:
    await asked(store, "a")
    await store.run(deliveries.owe, CHAT, Content(text="?"), "main", TurnId("ta"), NOW)
    assert await store.run(deliveries.give_up_chat, "telegram", "7", "kicked", NOW)
    assert await rows(store, "select state from questions") == [("undelivered",)]
