"""The input of a turn comes from its message, and its options from the last request."""

from msgspec.structs import replace

from hermes.control.turn_inputs import new_turn
from hermes.testing.rows import CHAT, said, session, turn_row
from hermes.types.identity import AgentId
from hermes.types.messages import Asked, Sampling
from hermes.types.profile import AgentProfile

PROFILE = AgentProfile(id=AgentId("main"))


def test_a_chat_message_has_the_model_of_the_session_and_no_live_events() -> None:
    turn = new_turn(turn_row("t"), session(), said("k"), said("k"), PROFILE, "p/chosen")
    assert (turn.model, turn.live, turn.reply_to) == ("p/chosen", False, CHAT)
    assert turn.profile is PROFILE


def test_a_later_request_replaces_the_options_but_not_the_model() -> None:
    first = Asked(messages=(), instructions="first", model="p/asked", live=False)
    later = Asked(messages=(), sampling=Sampling(seed=7), model="p/other")
    opened, resumed = replace(said("a"), body=first), replace(said("b"), body=later)
    turn = new_turn(turn_row("t"), session(), opened, resumed, PROFILE, "p/chosen")
    assert (turn.model, turn.sampling.seed) == ("p/asked", 7)
    assert (turn.instructions, turn.live) == ("first", True)
