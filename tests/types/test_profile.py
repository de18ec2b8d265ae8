"""The setting for messages that arrive during a turn applies to the whole agent, except in chats
that have their own setting."""

from hermes.types.identity import AgentId, Source
from hermes.types.profile import AgentProfile


def test_the_mode_of_a_chat_replaces_the_mode_of_the_agent() -> None:
    profile = AgentProfile(
        id=AgentId("main"), busy_mode="steer", chat_busy_modes={"telegram:-5": "interrupt"}
    )
    private = Source(
        platform="telegram", account="telegram.b", chat_kind="private", chat_id="7", user_id="7"
    )
    group = Source(
        platform="telegram", account="telegram", chat_kind="group", chat_id="-5", user_id="7"
    )
    assert profile.busy_mode_in(private) == "steer"
    assert profile.busy_mode_in(group) == "interrupt"
