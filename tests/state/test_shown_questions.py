"""The message of a closed question says what was decided, and its buttons are gone."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.state import deliveries, questions, turns
from hermes.state.shown_questions import note_shown
from hermes.testing.rows import CHAT, NOW, ask, hold_account, turn_row
from hermes.testing.stores import open_test_store
from hermes.types.delivery import Delivery, Placed
from hermes.types.identity import OWNER, OwnerId, TurnId
from hermes.types.messages import Choices, Content, MessageRef
from hermes.types.store import Store, Work

PLACED = tuple(Placed(ref=MessageRef(id=f"m{n}"), text=f"text {n}", final=True) for n in (1, 2))


class Shown:
    """A chat with a turn that asks the questions q1 and q2."""

    def __init__(self, store: Store, lease: tuple[OwnerId, int]) -> None:
        self.store = store
        self._lease = lease

    async def next(self) -> Delivery | None:
        """Returns the delivery that must be sent next."""
        return await self.store.run(
            deliveries.take_next, CHAT.account, CHAT.chat_id, self._lease, NOW
        )

    async def deliver(self) -> list[str]:
        """Sends the next delivery. Returns the outcomes of the questions in the delivery, as the
        sent message shows them."""
        delivery = await self.next()
        assert delivery is not None
        await self.store.run(self._delivered, delivery)
        return [one.outcome for one in delivery.content.choices]

    def _delivered(self, delivery: Delivery) -> Work[None]:
        yield from deliveries.mark_delivered(delivery.id, delivery.attempts, PLACED, NOW)
        yield from note_shown(delivery, NOW)

    async def decide(self, question: str, state: str, answer: str = "", name: str = "Ann") -> None:
        await self.store.run(
            questions.decide, question, state, answer, "telegram:7", NOW, name or None
        )


def choices(question: str) -> Choices:
    return Choices(question=question, prompt="Really?", labels=("Once", "Deny"), text="Really? Say")


@pytest.fixture
async def shown(tmp_path: Path) -> AsyncIterator[Shown]:
    async with open_test_store(tmp_path) as store:
        await store.run(turns.insert, turn_row("t"), "main", CHAT.chat_id)
        for number in (1, 2):
            await store.run(ask, f"q{number}", f"t_0_{number}")
        content = Content(text="Hello.", choices=(choices("q1"), choices("q2")))
        await store.run(deliveries.owe, CHAT, content, "main", TurnId("t"), NOW)
        yield Shown(store, await hold_account(store))


async def test_an_edit_shows_the_outcome_without_sending_the_message_again(shown: Shown) -> None:
    assert await shown.deliver() == ["", ""]
    assert await shown.next() is None
    await shown.decide("q2", "approved", "Once")
    edit = await shown.next()
    assert edit is not None
    assert edit.content.text == "Hello."
    assert edit.content.choices[0] == choices("q1")
    decided = edit.content.choices[1]
    assert decided.outcome == "Approved once by Ann."
    assert decided.text == decided.prompt == "Really?\n\nApproved once by Ann."
    assert edit.placed == tuple(replace(one, final=False) for one in PLACED)
    assert edit.doubtful, "a message that was deleted is not sent again"
    assert (edit.target, edit.turn) == (CHAT, "t")


async def test_each_decision_is_shown_once(shown: Shown) -> None:
    await shown.deliver()
    await shown.decide("q1", "denied", "no")
    assert await shown.deliver() == ["Denied by Ann.", ""]
    await shown.decide("q1", "approved", "Once")
    assert await shown.next() is None
    await shown.decide("q2", "approved", "Always")
    assert await shown.deliver() == ["Denied by Ann.", "Approved always by Ann."]
    assert await shown.next() is None


async def test_two_decisions_before_the_first_edit_are_both_shown(shown: Shown) -> None:
    await shown.deliver()
    await shown.decide("q1", "denied")
    await shown.decide("q2", "denied")
    outcomes = [await shown.deliver() for _ in range(3)]
    assert outcomes[-1] == ["Denied by Ann."] * 2
    assert await shown.next() is None


async def test_a_decision_before_the_end_of_the_delivery_is_shown_after_it(shown: Shown) -> None:
    await shown.decide("q1", "approved", "This session")
    assert await shown.deliver() == ["", ""]
    assert await shown.deliver() == ["Approved for this conversation by Ann.", ""]
    assert await shown.next() is None


async def test_a_turn_that_ends_closes_its_questions(shown: Shown) -> None:
    await shown.deliver()
    await shown.store.run(partial(turns.close, TurnId("t"), 1, "stopped", NOW))
    assert await shown.deliver() == ["No longer open: the turn has ended."] * 2
    assert await shown.next() is None


@pytest.mark.parametrize(
    ("state", "answer", "who", "name", "outcome"),
    [
        ("approved", "Once", OWNER, None, "Approved once by the owner."),
        ("denied", "", "telegram:7", None, "Denied by telegram:7."),
        ("denied", "", "telegram:7", "**Eve**", r"Denied by \*\*Eve\*\*."),
        ("answered", "*blue*\nor red", "telegram:7", "Ann", r"Answered by Ann: \*blue\* or red"),
        ("expired", None, "", None, "No longer open: nobody has decided in time."),
    ],
)
async def test_an_outcome_names_the_person(
    shown: Shown, state: str, answer: str | None, who: str, name: str | None, outcome: str
) -> None:
    await shown.deliver()
    await shown.store.run(questions.decide, "q1", state, answer, who, NOW, name)
    assert await shown.deliver() == [outcome, ""]


async def test_a_question_in_a_deleted_delivery_can_still_be_decided(shown: Shown) -> None:
    def delete() -> Work[None]:
        yield "delete from deliveries", ()

    await shown.deliver()
    await shown.store.run(delete)
    await shown.decide("q1", "denied")
    assert await shown.next() is None


async def test_an_edit_that_is_given_up_closes_no_question(shown: Shown) -> None:
    await shown.deliver()
    await shown.decide("q1", "denied")
    edit = await shown.next()
    assert edit is not None
    assert not await shown.store.run(deliveries.mark_dead, edit.id, edit.attempts, "bad", NOW)
    (left,) = await shown.store.read(questions.open_questions, TurnId("t"))
    assert left.id == "q2"
