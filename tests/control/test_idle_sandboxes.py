"""Idle sandboxes are shut down, and a failure of a backend is logged."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.boundary.execution.local import LocalBackend
from hermes.control.idle_sandboxes import IdleSandboxes
from hermes.testing.turns import hosted_agent
from hermes.types.errors import ToolFailed


class Idle(LocalBackend):
    """A backend whose `close_idle` returns prepared numbers, or raises prepared errors."""

    def __init__(self, answers: Sequence[int | Exception]) -> None:
        super().__init__(Path("/nonexistent"), None)
        self._answers = iter(answers)
        self.asked: list[float] = []

    async def close_idle(self, seconds: float) -> int:
        self.asked.append(seconds)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_idle_sandboxes_are_shut_down_after_the_time_of_the_agent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    backend = Idle([2, 0, ToolFailed("no connection"), ValueError("a defect")])
    agent = replace(hosted_agent(), backend=backend, idle_seconds=7.0)
    for _ in range(4):
        await IdleSandboxes([agent]).close(agent)
    assert backend.asked == [7.0] * 4
    assert [record.getMessage() for record in caplog.records] == [
        "2 idle sandboxes of agent main were shut down",
        "idle sandboxes of agent main still run: no connection",
        "idle sandboxes of agent main still run",
    ]
