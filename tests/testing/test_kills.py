"""A process can be killed before each of its changes to files."""

from functools import partial
from pathlib import Path

import pytest

from hermes.testing.kills import completes


def make_folders(folder: Path) -> None:
    for name in "abc":
        (folder / name).mkdir()


@pytest.mark.parametrize("changes", range(5))
def test_the_given_number_of_changes_is_made_before_the_kill(tmp_path: Path, changes: int) -> None:
    assert completes(partial(make_folders, tmp_path), changes) == (changes >= 3)
    assert len(list(tmp_path.iterdir())) == min(changes, 3)


def test_an_error_of_the_action_does_not_count_as_a_kill(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended with 1"):
        completes((tmp_path / "missing" / "folder").mkdir, 10)
