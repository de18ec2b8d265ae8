"""The input of a turn comes from its message, and from what a person has chosen for its session,
such as a model."""

from msgspec.structs import replace

from hermes.control.turn_inputs import new_turn
from hermes.state.sessions import SessionRow
from hermes.testing.rows import NOW, said, session, turn_row
from hermes.types.identity import AgentId
from hermes.types.messages import Asked, MessageEvent, Origin, Sampling, UserMessage
from hermes.types.profile import AgentProfile
from hermes.types.turns import Turn

PROFILE = AgentProfile(id=AgentId("main"), personalities={"pirate": "Talk like a pirate."})
CHOSEN = SessionRow(
    generation=0,
    created_at=NOW,
    used_before=None,
    prompt=None,
    compaction=0,
    model="a/b",
    reasoning="high",
    personality="pirate",
    summarise=True,
)


def made(event: MessageEvent, row: SessionRow | None = CHOSEN) -> Turn:
    return new_turn(turn_row("t"), session(), event, event, PROFILE, row)


def test_the_choices_for_the_session_apply_to_its_turns() -> None:
    turn = made(said("k"))
    assert (turn.model, turn.reasoning, turn.summarise) == ("a/b", "high", True)
    assert turn.personality == "Talk like a pirate."


def test_a_personality_that_the_settings_no_longer_define_is_not_used() -> None:
    assert made(said("k"), replace(CHOSEN, personality="parrot")).personality == ""


def test_a_request_takes_precedence_over_the_session() -> None:
    asked = Asked(
        messages=(UserMessage(text="hi"),),
        model="c/d",
        sampling=Sampling(reasoning_effort="low"),
        stateless=False,
        live=False,
    )
    turn = made(replace(said("k"), body=asked, origin=Origin(trigger="api")))
    assert (turn.model, turn.sampling.reasoning_effort, turn.live) == ("c/d", "low", False)
    assert turn.personality == "Talk like a pirate."


def test_a_stateless_request_has_no_choices() -> None:
    asked = Asked(messages=(UserMessage(text="hi"),))
    turn = made(replace(said("k"), body=asked, origin=Origin(trigger="api")), None)
    assert (turn.model, turn.reasoning, turn.personality, turn.summarise) == (None, None, "", False)
