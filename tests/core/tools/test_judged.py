"""The danger detector judges long commands in a thread. The verdict is the same as without a
thread."""

import threading

import pytest

from hermes.core.danger.detector import judge
from hermes.core.tools.judged import JUDGED_AT_ONCE, judged


@pytest.mark.parametrize("command", ["ls", "rm -rf build", "rm -rf /", "echo 'open"])
async def test_the_verdict_does_not_depend_on_the_length(command: str) -> None:
    assert await judged(command) == judge(command)
    long = command + " " * (JUDGED_AT_ONCE + 1)
    assert await judged(long) == judge(long)


async def test_the_judgement_of_a_long_command_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    await judged("echo " + "x" * JUDGED_AT_ONCE)
    # Anyio keeps one idle worker thread for the next call.
    assert threading.active_count() <= before + 1
