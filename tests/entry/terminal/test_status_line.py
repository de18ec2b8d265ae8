"""The status line shows the model and the used share of its context window."""

import pytest

from hermes.control.context_use import ContextPart, ContextUse
from hermes.entry.terminal.status_line import status_line


def use(model: str = "fake", tokens: int = 25_600, window: int = 128_000) -> ContextUse:
    return ContextUse(model=model, window=window, parts=(ContextPart(name="all", tokens=tokens),))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (use(), "fake · context 20% of 128k"),
        (use(tokens=5), "fake · context <1% of 128k"),
        (use(tokens=0), "fake · context 0% of 128k"),
        (use(window=512), "fake · context 5000% of 512"),
        (use(window=1_000_000), "fake · context 3% of 1M"),
        (use(window=1_048_576 * 2), "fake · context 1% of 2.1M"),
        (use(model="a\x1b[2Jb\nc"), "ab\\nc · context 20% of 128k"),
        (ContextUse(model="fake", window=128_000), "fake"),
        (ContextUse(), "no model"),
    ],
)
def test_the_line_has_the_model_and_the_used_share_of_its_window(
    given: ContextUse, line: str
) -> None:
    assert status_line(given, 80) == line


def test_the_hint_is_shown_only_if_there_is_room() -> None:
    assert status_line(use(), 80, "Esc stops") == "fake · context 20% of 128k · Esc stops"
    assert status_line(use(), 30, "Esc stops") == "fake · context 20% of 128k"


def test_a_long_name_of_the_model_is_cut_but_the_share_is_not() -> None:
    line = status_line(use(model="a-model-with-a-very-long-name-漢字"), 39, "Esc stops")
    assert line == "a-model-with-a-v… · context 20% of 128k"
    assert len(line) == 39
