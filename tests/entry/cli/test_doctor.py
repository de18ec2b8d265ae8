"""The command `hermes doctor`."""

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from hermes.entry.cli.doctor import doctor, lines
from hermes.types.checks import Check

Run = Callable[..., "subprocess.CompletedProcess[str]"]

FINE = Check(name="disk", level="ok", text="3 GB are free")
DOUBT = Check(name="permissions", level="warning", text="others can read", hint="run `chmod`")
WRONG = Check(name="store", level="error", text="it is damaged", hint="restart")


class Diagnosis:
    """An application whose checks have these results."""

    def __init__(self, *checks: Check) -> None:
        self._checks = checks

    async def diagnose(self, home: Path, environ: Mapping[str, str]) -> Sequence[Check]:
        return self._checks


def test_each_check_is_a_line_and_advice_is_below_it() -> None:
    assert lines([FINE, DOUBT, WRONG]) == [
        "ok       disk         3 GB are free",
        "warning  permissions  others can read",
        "                      → run `chmod`",
        "error    store        it is damaged",
        "                      → restart",
        "1 error, 1 warning.",
    ]


def test_a_narrow_terminal_shows_each_text_below_its_name() -> None:
    long = Check(
        name="permissions",
        level="warning",
        text="others can read all files here",
        hint="run `chmod -R go= ~/.hermes` as the owner",
    )
    assert lines([FINE, long], 40)[:-1] == [
        "ok       disk         3 GB are free",
        "warning  permissions\n    others can read all files here",
        "    → run `chmod -R go= ~/.hermes` as\n      the owner",
    ]


def test_a_report_without_findings_says_that_everything_works() -> None:
    assert lines([FINE])[-1] == "Everything works."


@pytest.mark.parametrize(("checks", "code"), [((FINE,), 0), ((FINE, DOUBT), 0), ((WRONG, FINE), 1)])
def test_the_exit_code_is_1_if_a_line_is_an_error(checks: Sequence[Check], code: int) -> None:
    for option in ([], ["--json"]):
        assert CliRunner().invoke(doctor, option, obj=Diagnosis(*checks)).exit_code == code


def test_the_report_can_be_read_by_programs() -> None:
    done = CliRunner().invoke(doctor, ["--json"], obj=Diagnosis(FINE, DOUBT))
    assert json.loads(done.stdout) == {
        "errors": 0,
        "warnings": 1,
        "checks": [
            {"name": "disk", "level": "ok", "text": "3 GB are free", "hint": ""},
            {
                "name": "permissions",
                "level": "warning",
                "text": "others can read",
                "hint": "run `chmod`",
            },
        ],
    }


def test_a_new_installation_is_diagnosed(hermes: Run, home: Path) -> None:
    done = hermes("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{home} does not exist yet" in done.stdout
    assert done.stdout.splitlines()[-1] == "Everything works."
    assert len(done.stdout.splitlines()) <= 30
    assert not home.exists()
