"""Progress is shown as a bar on a terminal, and as lines in a log."""

import io

from hermes.entry.cli.progress_bar import ProgressBar


def megabytes(done: int, total: int) -> str:
    return f"{done / 1_000_000:3.0f} of {total / 1_000_000:.0f} MB"


class Screen(io.StringIO):
    """A stream that the progress bar takes for a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_bar_stays_in_one_line() -> None:
    screen = Screen()
    bar = ProgressBar(screen, "embedded model", megabytes)
    for done in (0, 0, 46_000_000, 40_000_000, 93_000_000):
        bar(done, 93_000_000)
    bar.close()
    bar.close()
    frames = screen.getvalue().split("\r")
    assert [frame.count("█") for frame in frames] == [0, 0, 14, 30]
    assert frames[-1].endswith(" 93 of 93 MB\n")
    assert len({len(frame.rstrip("\n")) for frame in frames[1:]}) == 1


def test_elsewhere_a_line_is_written_for_every_tenth() -> None:
    file = io.StringIO()
    bar = ProgressBar(file, "embedded model", megabytes)
    for percent in range(101):
        bar(percent * 1_000_000, 100_000_000)
    bar.close()
    lines = file.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[5] == "embedded model:  50 of 100 MB"


def test_nothing_is_shown_without_progress() -> None:
    screen = Screen()
    ProgressBar(screen, "embedded model", megabytes).close()
    assert screen.getvalue() == ""


def test_work_without_parts_is_complete_at_once() -> None:
    screen = Screen()
    ProgressBar(screen, "copy", lambda done, total: "nothing")(0, 0)
    assert screen.getvalue().count("█") == 30
