"""The benchmark runs, counts only complete answers, and notices a missed bar."""

import anyio
import pytest

from benchmarks.__main__ import measure
from benchmarks.bars import Bar
from benchmarks.client import Answer
from benchmarks.record import Figure, Record
from benchmarks.report import Row, rows, table
from benchmarks.sizes import Sizes

TINY = Sizes(latency=5, rounds=1, tools=3, old=3, grown=1)


@pytest.mark.slow
def test_a_tiny_run_measures_every_kind_of_load_without_an_error() -> None:
    record = Record()
    names = ["prompt", "latency", "tools", "growth"]
    anyio.run(measure, names, TINY, record, backend_options={"use_uvloop": True})
    assert record.samples == []
    assert record.errors == 0
    measured = {row.bar.key.partition(".")[0] for row in rows(record)}
    assert measured == {"prompt", "latency", "cpu", "tool", "growth", "errors"}
    assert "| added time to first token, median ms |" in table(record)


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        (Answer(status=200, tokens=20), True),
        (Answer(status=200, tokens=19), False),
        (Answer(status=500, tokens=20), False),
        (Answer(status=200, tokens=20, error="closed before the end"), False),
    ],
)
def test_an_answer_counts_only_when_it_is_whole(answer: Answer, good: bool) -> None:
    assert answer.good(20) is good


def missed(bar: Bar, ours: float) -> bool:
    return Row(bar=bar, figure=Figure(ours=ours, passthrough=100.0, ideal=100.0)).missed


def test_a_run_fails_by_its_ratios_and_not_by_the_speed_of_the_machine() -> None:
    share = Bar(key="rate", measure="turns/s", kind="share", number=0.24)
    times = Bar(key="cpu", measure="CPU", kind="times", number=5)
    start = Bar(key="start", measure="start, s", kind="at most", number=0.5, binding=False)
    assert not missed(share, 24)
    assert missed(share, 23)
    assert not missed(times, 500)
    assert missed(times, 501)
    assert not missed(start, 9)


def test_a_ratio_without_a_pass_through_does_not_hold() -> None:
    bar = Bar(key="rate", measure="turns/s", kind="share", number=0.24)
    assert bar.holds(Figure(ours=1000.0)) is False
