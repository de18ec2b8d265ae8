"""The list of the sandbox levels that this machine offers."""

from hermes.boundary.execution.levels import DESCRIPTIONS, SANDBOX_LEVELS, best_level, level_problem


def test_this_machine_offers_both_levels_of_linux() -> None:
    assert level_problem("bubblewrap") == ""
    assert level_problem("landlock") == ""
    assert level_problem("seatbelt") == "it needs macOS"
    assert best_level() == SANDBOX_LEVELS[0] == "bubblewrap"
    assert set(DESCRIPTIONS) == set(SANDBOX_LEVELS)
