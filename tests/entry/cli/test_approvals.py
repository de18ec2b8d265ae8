"""The command `hermes approvals` explains the verdict on a shell command."""

import json

from click.testing import CliRunner, Result

from hermes.app.application import Application
from hermes.entry.cli.approvals import NOT_A_STRING
from hermes.entry.cli.main import cli
from hermes.text.console import printable


def explain(*args: str, stdin: str = "") -> Result:
    return CliRunner().invoke(
        cli, ["approvals", "explain", *args], obj=Application(), input=stdin.encode()
    )


def test_the_verdict_the_reason_and_the_resolved_command_are_shown() -> None:
    done = explain("c='rm -rf'; $c ./src")
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "verdict   ask",
        "reason    deletes src with everything in it",
        "resolved  rm -rf ./src",
    ]


def test_every_program_of_a_resolved_command_has_its_line() -> None:
    assert explain("ls -l | wc -l").output.splitlines()[-2:] == [
        "resolved  ls -l",
        "          wc -l",
    ]


def test_a_command_can_be_explained_as_json() -> None:
    done = explain("--json", "pwd")
    assert json.loads(done.output) == {
        "verdict": "run",
        "reason": "nothing in the command is known to be dangerous",
        "resolved": "pwd",
        "scripts": [],
    }


def test_the_scripts_that_a_command_runs_are_named() -> None:
    assert explain("cd sub && ./x").output.splitlines()[-1] == "script    'sub/x'"
    assert json.loads(explain("--json", "bash x.sh").output)["scripts"] == ["x.sh"]


def test_json_strings_on_standard_input_are_answered_line_by_line() -> None:
    commands = ["ls", "rm -rf /", "git push \\\n--force", "echo '…'"]
    done = explain("--json", stdin="".join(json.dumps(one) + "\n" for one in commands))
    answers = [json.loads(line) for line in done.output.splitlines()]
    assert [answer["verdict"] for answer in answers] == ["run", "never", "ask", "run"]
    assert done.exit_code == 0


def test_a_line_that_is_not_a_json_string_is_answered_with_an_error() -> None:
    done = explain("--json", stdin='"ls"\nrm -rf /\n{"a": 1}\n\n"pwd"\n')
    answers = [json.loads(line) for line in done.output.splitlines()]
    assert [answer.get("error", "") for answer in answers] == ["", NOT_A_STRING, NOT_A_STRING, ""]
    assert done.exit_code == 2


def test_a_command_without_quotes_is_refused_with_advice() -> None:
    done = explain("rm", "-rf", "build")
    assert done.exit_code == 2
    assert "in quotes" in done.output


def test_a_missing_command_is_refused_with_advice() -> None:
    done = explain()
    assert done.exit_code == 2
    assert "--json" in done.output


def test_control_characters_of_a_command_are_not_printed() -> None:
    done = explain("rm \x1b[2J\u202e")
    assert printable(done.output) == done.output
    assert "verdict   ask" in done.output


def test_the_help_explains_the_verdicts() -> None:
    assert "never  the command is refused" in explain("--help").output
