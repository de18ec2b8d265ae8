"""The limit on the rate of calls to a chat."""

import time

from hermes.control.rate_gate import RateGate
from hermes.types.identity import Target

CHAT = Target(account="a", chat_id="1")


async def test_calls_to_one_chat_keep_their_interval() -> None:
    gate = RateGate()
    since = time.time()
    for _ in range(4):
        await gate.enter(CHAT, 0.05)
    assert time.time() - since >= 0.15
    assert gate.wait_for(Target(account="a", chat_id="2")) == 0


async def test_no_call_is_made_during_a_pause_of_the_platform() -> None:
    gate = RateGate()
    since = time.time()
    gate.freeze("a", "1", since + 0.1)
    gate.freeze("a", "1", since)
    assert gate.wait_for(CHAT) > 0
    await gate.enter(CHAT, 0)
    assert time.time() >= since + 0.1
    assert gate.wait_for(CHAT) == 0
