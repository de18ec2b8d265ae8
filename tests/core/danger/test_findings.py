"""The list of dangers that the detector has found in a command."""

import pytest

from hermes.core.danger.findings import (
    MAX_COMMANDS,
    MAX_EVALUATIONS,
    MAX_REASON,
    MAX_RESOLVED,
    SAFE,
    Findings,
)
from hermes.core.danger.syntax import NotParsed


def test_the_first_of_the_worst_dangers_is_the_reason() -> None:
    findings = Findings()
    assert findings.verdict().reason == SAFE
    findings.add("first")
    findings.add("second")
    assert (findings.verdict().outcome, findings.verdict().reason) == ("ask", "first")
    findings.add("third", "never")
    assert (findings.verdict().outcome, findings.verdict().reason) == ("never", "third")


def test_a_danger_on_another_machine_can_be_approved() -> None:
    findings = Findings()
    findings.elsewhere = 1
    findings.add("formats a disk", "never")
    assert findings.verdict().outcome == "ask"


def test_a_program_is_listed_once() -> None:
    findings = Findings()
    for _ in range(2):
        findings.record(["rm", "a b", ""], " > f")
    assert findings.verdict().resolved == "rm 'a b' '' > f"


def test_a_long_reason_is_shortened() -> None:
    findings = Findings()
    findings.add("x" * 1_000)
    assert len(findings.verdict().reason) == MAX_REASON


def test_the_number_of_programs_is_limited() -> None:
    findings = Findings()
    for _ in range(MAX_COMMANDS):
        findings.count(0)
    with pytest.raises(NotParsed):
        findings.count(0)


def test_the_work_is_limited_by_the_length_of_the_command() -> None:
    Findings("a" * 10_000).count(200_000)
    with pytest.raises(NotParsed):
        Findings("a").count(200_000)


def test_the_depth_is_limited() -> None:
    findings = Findings()
    for _ in range(MAX_EVALUATIONS):
        findings.enter()
    with pytest.raises(NotParsed):
        findings.enter()


def test_the_resolved_command_is_never_cut() -> None:
    with pytest.raises(NotParsed):
        Findings().record(["x" * (MAX_RESOLVED + 1)])
