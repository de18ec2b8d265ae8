"""No random trial of approvals finds a decision that had the wrong effect."""

from pathlib import Path

import pytest

from hermes.testing.approval_trials import count_accepted, count_swapped, count_unasked
from hermes.types.approvals import Grant


async def test_answers_in_random_order_decide_about_their_own_commands(tmp_path: Path) -> None:
    decided, swapped = await count_swapped(tmp_path, 5)
    assert decided >= 10
    assert swapped == 0


@pytest.mark.parametrize("grant", ["once", "session", "always"])
async def test_an_approval_covers_no_command_of_the_same_kind(tmp_path: Path, grant: Grant) -> None:
    assert await count_unasked(tmp_path, grant, 6) == 0


async def test_nobody_else_can_approve(tmp_path: Path) -> None:
    assert await count_accepted(tmp_path, 30) == 0
