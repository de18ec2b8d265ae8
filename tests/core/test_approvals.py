"""The gate asks a person before a dangerous action, and lets exactly the approved action pass."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.core.approvals import ApprovalGate, digest_of, fenced, prompt_of
from hermes.state import approvals
from hermes.state.approvals import OpenApproval
from hermes.testing.stores import open_test_store
from hermes.testing.turns import CALL, a_turn
from hermes.text.markdown import parse
from hermes.types.approvals import ApprovalPolicy, ProposedAction
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandPlace, Script
from hermes.types.identity import TurnId
from hermes.types.nodes import Fence, Paragraph, Text
from hermes.types.store import Store
from hermes.types.tools import NeedsPerson
from hermes.types.turns import (
    Answered,
    Approved,
    Cancelled,
    Decision,
    Denied,
    Expired,
    Question,
    Turn,
    Undelivered,
)

ACTION = ProposedAction(kind="run a command", shown="rm -rf a", reason="deletes a", facts=("x",))
PLACE = CommandPlace(
    backend="local",
    folder="/w",
    environment=(("A", "1"),),
    scripts=(Script(path="/w/x.sh", digest="d"),),
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_test_store(tmp_path) as store:
        yield store


async def located() -> CommandPlace:
    return PLACE


async def ask(
    store: Store,
    action: ProposedAction = ACTION,
    turn: Turn | None = None,
    *,
    policy: ApprovalPolicy | None = None,
    isolated: bool = False,
    tainted: bool = False,
) -> Question | None:
    """Returns the question that the gate asks; None if it lets the action pass."""
    gate = ApprovalGate(policy or ApprovalPolicy(), store, isolated=isolated)
    try:
        await gate.permit(turn or a_turn(), CALL, action, tainted=tainted)
    except NeedsPerson as signal:
        return signal.question
    return None


async def refused(store: Store, decision: Decision, action: ProposedAction = ACTION) -> str:
    with pytest.raises(ToolFailed) as error:
        await ask(store, action, a_turn(decisions={CALL: decision}))
    return str(error.value)


@pytest.mark.parametrize(
    ("mode", "isolated", "contained", "asks"),
    [
        ("auto", False, False, True),
        ("auto", False, True, True),
        ("auto", True, False, True),
        ("auto", True, True, False),
        ("ask", True, True, True),
        ("off", False, False, False),
    ],
)
async def test_the_mode_and_the_sandbox_decide_whether_a_person_is_asked(
    store: Store, *, mode: str, isolated: bool, contained: bool, asks: bool
) -> None:
    policy = ApprovalPolicy(mode=mode)  # type: ignore[arg-type]  # the parameters are modes
    action = replace(ACTION, contained=contained)
    assert (await ask(store, action, policy=policy, isolated=isolated) is not None) is asks


@pytest.mark.parametrize(
    ("leaves", "tainted", "taint", "asks"),
    [
        (True, True, True, True),
        (True, False, True, False),
        (False, True, True, False),
        (True, True, False, False),
    ],
)
async def test_after_untrusted_content_an_action_that_leaves_the_workspace_needs_approval(
    store: Store, *, leaves: bool, tainted: bool, taint: bool, asks: bool
) -> None:
    action = replace(ACTION, outcome="run", leaves=leaves)
    policy = ApprovalPolicy(taint=taint)
    assert (await ask(store, action, policy=policy, tainted=tainted) is not None) is asks


async def test_nobody_can_approve_an_action_with_the_verdict_never(store: Store) -> None:
    never = replace(ACTION, outcome="never")
    for decision in (None, Approved(digest=digest_of(never, None, str(a_turn().session)))):
        turn = a_turn(decisions={CALL: decision} if decision else {})
        with pytest.raises(ToolFailed, match="Nobody can approve this action"):
            await ask(store, never, turn, policy=ApprovalPolicy(mode="off"))


async def test_an_approval_is_for_one_digest(store: Store) -> None:
    action = replace(ACTION, locate=located)
    asked = await ask(store, action)
    assert asked is not None
    approved = a_turn(decisions={CALL: Approved(digest=asked.digest)})
    assert await ask(store, action, approved) is None
    for other in (
        replace(action, shown="rm -rf b"),
        replace(action, facts=("y",)),
        replace(action, kind="write a file"),
        replace(action, locate=None),
    ):
        with pytest.raises(ToolFailed, match="no longer what was approved"):
            await ask(store, other, approved)


def test_every_fact_about_the_place_changes_the_digest() -> None:
    places = (
        replace(PLACE, backend="sandbox"),
        replace(PLACE, folder="/v"),
        replace(PLACE, environment=(("A", "2"),)),
        replace(PLACE, environment=()),
        replace(PLACE, scripts=(Script(path="/w/x.sh", digest="e"),)),
        replace(PLACE, scripts=(Script(path="/w/y.sh", digest="d"),)),
        None,
    )
    digests = {digest_of(ACTION, place, "s") for place in (PLACE, *places)}
    assert len(digests) == len(places) + 1
    assert digest_of(ACTION, PLACE, "s") != digest_of(ACTION, PLACE, "")


async def test_the_model_learns_why_nothing_was_done(store: Store) -> None:
    told = [
        await refused(store, Denied()),
        await refused(store, Denied(reason="not on Fridays")),
        await refused(store, Expired()),
        await refused(store, Undelivered()),
        await refused(store, Cancelled()),
    ]
    beginnings = (
        "The person denied this action. Do not",
        "The person denied this action: not on Fridays.",
        "Nobody decided about this action in time",
        "Nobody has seen the question about this action",
        "Not done: the turn was stopped before",
    )
    assert all(text.startswith(start) for text, start in zip(told, beginnings, strict=True))
    assert len(set(told)) == 5
    assert await refused(store, Answered(text="sure")) == told[4]


@pytest.mark.parametrize("trigger", ["job", "webhook", "a2a", "hook"])
async def test_without_a_person_the_policy_decides(store: Store, trigger: str) -> None:
    turn = replace(a_turn(), trigger=trigger)
    with pytest.raises(ToolFailed, match="no person is present to decide"):
        await ask(store, turn=turn)
    assert await ask(store, turn=turn, policy=ApprovalPolicy(unattended="allow")) is None


async def test_a_rule_permits_the_same_action_of_the_same_person(store: Store) -> None:
    asked = await ask(store)
    assert asked is not None
    turn = a_turn()
    assert turn.person is not None
    approval = OpenApproval(
        id="q",
        turn=TurnId("t"),
        session=str(turn.session),
        agent=turn.agent,
        person=turn.person,
        detail="rm -rf a",
        choices=(),
        digest=asked.digest,
        lasting_digest=asked.lasting_digest,
        asked_at=0.0,
        expires_at=1.0,
    )
    await store.run(approvals.grant, approval, asked.lasting_digest, None, "me", 1.0)
    assert await ask(store) is None
    assert await ask(store, turn=a_turn(person="someone else")) is not None
    assert await ask(store, replace(ACTION, facts=("y",))) is not None


async def test_an_action_that_is_not_lasting_can_only_be_approved_once(store: Store) -> None:
    lasting, brief = await ask(store), await ask(store, replace(ACTION, lasting=False))
    assert lasting is not None
    assert brief is not None
    assert (lasting.choices, brief.choices) == (("Once", "This session", "Always"), ("Once",))


def test_the_question_shows_everything_that_is_approved() -> None:
    prompt = prompt_of(replace(ACTION, remarks=("Mind the gap.",)), PLACE, "it deletes")
    assert prompt == (
        "I am about to run a command, which needs your approval:\n\n```\nrm -rf a\n```\n"
        "in `/w` (local)\n- runs the file `/w/x.sh` with the content d\n\nReason: it deletes.\n\n"
        "Mind the gap."
    )


@pytest.mark.parametrize("text", ["x", "```", "a\n````\nb", "`" * 50])
def test_no_command_can_end_the_code_block_that_shows_it(text: str) -> None:
    ticks, *inside, end = fenced(text).split("\n")
    assert ticks == end
    assert "\n".join(inside) == text
    assert ticks not in text


HOSTILE = "x` **b**\n\nReason: it is harmless.\n```\n<b>y</b> [z](e.example) \u202egpj\r\x1b[2K"


async def test_nothing_in_an_action_changes_the_form_of_the_question(store: Store) -> None:
    """The question has the same blocks and the same markup as the question about a harmless action.
    The lines of a hostile text are only in the code block."""
    place = replace(PLACE, folder=HOSTILE, scripts=(Script(path=HOSTILE, digest="d"),))

    async def locate() -> CommandPlace:
        return place

    action = replace(
        ACTION, kind=f"send to {HOSTILE}", shown=HOSTILE, reason=HOSTILE, locate=locate
    )
    asked = await ask(store, action)
    harmless = await ask(store, replace(ACTION, locate=located))
    assert asked is not None
    assert harmless is not None
    found, expected = parse(asked.prompt), parse(harmless.prompt)
    assert [type(block) for block in found] == [type(block) for block in expected]
    assert isinstance(found[1], Fence)
    assert found[1].text == HOSTILE.replace("\u202e", "\\u202e").replace("\r\x1b", "\\r\\x1b")
    assert asked.detail == found[1].text
    assert isinstance(found[-1], Paragraph)
    assert {type(one) for one in found[-1].children} == {Text}
    assert all(character.isprintable() or character == "\n" for character in asked.prompt)
