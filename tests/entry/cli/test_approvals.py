"""The command `hermes approvals` decides approvals, lists rules, and explains verdicts."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result

from hermes.app.application import Application
from hermes.entry.cli.approvals import NOT_A_STRING
from hermes.entry.cli.main import cli
from hermes.testing.approvals import DANGEROUS, make_folders, runs
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.stores import store_url, stores_on_postgres
from hermes.text.console import printable

Run = Callable[..., Result]
DANGER = "mkdir c && rm -rf a $'\\u202e'b"


@pytest.fixture(params=["sqlite", "postgres"])
def hermes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    """Yields a function that runs `hermes approvals` in a home with an open approval."""
    if request.param == "sqlite":
        yield waiting(tmp_path)
    else:
        with stores_on_postgres():
            yield waiting(tmp_path)


def waiting(home: Path) -> Run:
    make_folders(home / "workspace", "a")
    anyio.run(ask, home, ScriptedModel([runs(DANGER)]))
    environ = {"HERMES_HOME": str(home), "HERMES_STORE_URL": store_url(home)}
    runner = CliRunner(env=environ)
    return lambda *args: runner.invoke(cli, ["approvals", *args], obj=Application())


async def ask(home: Path, model: ScriptedModel) -> None:
    server = ChatServer()
    async with running(home, [PlainAdapter(server)], model, DANGEROUS) as gateway:
        server.says("clean up")
        await until(server.texts)
        await until(lambda: not gateway.busy)


async def proceed(home: Path, model: ScriptedModel) -> None:
    """Runs a gateway until the turn that waited is over."""
    server = ChatServer()
    async with running(home, [PlainAdapter(server)], model, DANGEROUS):
        await until(lambda: server.texts() == ["done"])


def only_id(hermes: Run) -> str:
    id: str = json.loads(hermes("list", "--json").stdout)["id"]
    return id[-8:]


def test_an_open_approval_is_listed_with_the_whole_action(hermes: Run) -> None:
    id = only_id(hermes)
    head, first, second = hermes().stdout.splitlines()
    assert head.startswith(f"{id}  asked ")
    assert "expires in 60 min; for plain:7 in agent:main:plain:private:1" in head
    assert first == "┃ mkdir c"
    assert second == "┃ rm -rf a \\u202eb"
    fields = json.loads(hermes("list", "--json").stdout)
    assert fields["state"] == "open"
    assert fields["detail"] == "mkdir c\nrm -rf a \\u202eb"
    assert fields["choices"] == ["Once", "This session", "Always"]
    assert not {"digest", "lasting_digest"} & fields.keys()


def test_an_approval_is_given_and_the_turn_continues_at_the_next_start(
    hermes: Run, tmp_path: Path
) -> None:
    id = only_id(hermes)
    done = hermes("approve", id)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{id} is approved once:\n┃ mkdir c\n┃ rm -rf a ")
    assert "the turn continues with" in done.stdout
    assert hermes().stdout == "No action waits for a decision.\n"
    anyio.run(proceed, tmp_path, ScriptedModel([says("done")]))
    assert not (tmp_path / "workspace" / "a").exists()


def test_an_action_is_denied_with_a_reason(hermes: Run, tmp_path: Path) -> None:
    id = only_id(hermes)
    assert hermes("deny", id, "use", "the", "trash").stdout.startswith(f"{id} is denied:\n")
    model = ScriptedModel([says("done")])
    anyio.run(proceed, tmp_path, model)
    assert "denied this action: use the trash." in model.requests[0].messages[-1].text
    assert (tmp_path / "workspace" / "a").exists()


@pytest.mark.parametrize(
    ("grant", "told", "where"),
    [
        ("--session", "approved for this conversation", "in agent:main:plain:private:1"),
        ("--always", "approved always", "always"),
    ],
)
def test_a_lasting_approval_is_a_rule_that_can_be_revoked(
    hermes: Run, grant: str, told: str, where: str
) -> None:
    id = only_id(hermes)
    assert f"{id} is {told}:" in hermes("approve", id, grant).stdout
    rule = json.loads(hermes("rules", "--json").stdout)
    assert rule["state"] == "rule"
    short = rule["id"][-8:]
    head, action, _ = hermes("rules").stdout.splitlines()
    assert head.startswith(f"rule {short}  {where}, for plain:7; by owner, ")
    assert action == "┃ mkdir c"
    assert head in hermes("list").stdout
    assert hermes("revoke", short).stdout.startswith("revoked; this action needs approval again:\n")
    assert hermes("rules").stdout == "There are no rules: every approval was for one time.\n"
    assert hermes("revoke", short).exit_code == 2


def test_a_wrong_id_is_refused_with_advice(hermes: Run) -> None:
    for command in ("approve", "deny"):
        done = hermes(command, "00000000")
        assert done.exit_code == 2
        assert done.stderr == (
            "there is no approval that waits with the id '00000000':"
            " `hermes approvals list` shows the ids\n"
        )
    assert hermes("list").stdout.count("asked") == 1


def test_a_new_home_has_nothing_to_decide(tmp_path: Path) -> None:
    run = partial(CliRunner(env={"HERMES_HOME": str(tmp_path)}).invoke, cli, obj=Application())
    assert run(["approvals"]).stdout == "No action waits for a decision.\n"
    assert run(["approvals", "list", "--json"]).stdout == ""


def test_the_help_teaches_with_examples() -> None:
    run = partial(CliRunner().invoke, cli, obj=Application())
    assert "hermes approvals approve 9f3a2b1c" in run(["approvals", "--help"]).stdout
    for command in ("list", "approve", "deny", "revoke", "explain"):
        assert "\n  hermes approvals " in run(["approvals", command, "--help"]).stdout


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
