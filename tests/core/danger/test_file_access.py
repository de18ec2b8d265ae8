"""A command is judged by the files that it writes, deletes, moves or reads."""

import pytest

from hermes.core.danger.file_access import judge_delete, judge_move, judge_read, judge_write
from hermes.core.danger.findings import Findings
from hermes.core.danger.holes import ONE_WORD, PLAIN_NAME


@pytest.mark.parametrize(
    ("path", "outcome"),
    [
        ("out.txt", "run"),
        (f"log-{PLAIN_NAME}", "run"),
        ("/tmp/out", "run"),
        ("~/out.txt", "run"),
        (".env", "run"),
        ("/dev/null", "run"),
        ("/etc/hosts", "ask"),
        ("~/.profile", "ask"),
        ("~/.netrc", "ask"),
        ("/dev/tcp/host/80", "ask"),
        (ONE_WORD, "ask"),
        ("/dev/sda", "never"),
    ],
)
def test_a_written_file_is_judged(path: str, outcome: str) -> None:
    findings = Findings()
    judge_write(path, findings)
    assert findings.outcome == outcome


@pytest.mark.parametrize(
    ("path", "recursive", "outcome"),
    [
        ("a.o", False, "run"),
        ("*.o", False, "run"),
        ("/tmp/a", False, "run"),
        ("*", False, "ask"),
        ("/etc/hosts", False, "ask"),
        ("../a", False, "ask"),
        (f"a/{ONE_WORD}", False, "ask"),
        ("docs", True, "ask"),
        ("/dev/sda", True, "ask"),
        ("~", True, "never"),
        ("/usr", True, "never"),
    ],
)
def test_a_deleted_file_is_judged(path: str, recursive: bool, outcome: str) -> None:
    findings = Findings()
    judge_delete(path, findings, recursive=recursive)
    assert findings.outcome == outcome


@pytest.mark.parametrize(
    ("path", "outcome"), [("a", "run"), ("/etc/hosts", "ask"), ("~/.ssh/id_rsa", "ask")]
)
def test_a_moved_file_is_judged(path: str, outcome: str) -> None:
    findings = Findings()
    judge_move(path, findings)
    assert findings.outcome == outcome


@pytest.mark.parametrize(
    ("path", "outcome"), [("/etc/hosts", "run"), (".env", "run"), ("/etc/shadow", "ask")]
)
def test_a_read_file_is_judged(path: str, outcome: str) -> None:
    findings = Findings()
    judge_read(path, findings)
    assert findings.outcome == outcome
