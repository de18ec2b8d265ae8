"""The command line starts quickly, lists its commands, and reports errors in one sentence."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hermes import __version__
from hermes.entry.cli.main import SUBCOMMANDS, Commands, cli, sole
from hermes.testing.terminal import Terminal
from hermes.text.console import printable
from hermes.types.errors import ConfigError

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_version_and_help_import_no_command(hermes: Run) -> None:
    for flag in ("--version", "--help"):
        code = (
            "import sys\nfrom hermes.entry.cli.main import cli\n"
            f"try: cli([{flag!r}])\nexcept SystemExit: pass\n"
            "heavy = {'msgspec', 'anyio', 'asyncio', 'aiohttp', 'yaml', 'hermes.settings'}\n"
            "print('HEAVY', heavy & set(sys.modules))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert "HEAVY set()" in done.stdout


def test_the_status_is_shown_without_a_http_client(environ: dict[str, str]) -> None:
    code = (
        "import sys\nfrom hermes.app.application import Application\n"
        "from hermes.entry.cli.main import cli\n"
        "try: cli(['status'], obj=Application())\nexcept SystemExit: pass\n"
        "print('HEAVY', {'aiohttp', 'psycopg'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert "commands" in done.stdout
    assert "HEAVY set()" in done.stdout


@pytest.mark.parametrize(
    "args", [("sessions", "show"), ("sessions", "show", "a"), ("config", "get")]
)
def test_an_error_message_quotes_an_argument_safely(hermes: Run, args: tuple[str, ...]) -> None:
    done = hermes(*args, "\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202ename")
    assert done.returncode != 0
    assert "name" in done.stderr
    assert printable(done.stderr) == done.stderr


def test_version_is_quick(hermes: Run) -> None:
    used = []
    for _ in range(3):
        before = os.times()
        done = hermes("--version")
        after = os.times()
        # The test measures the CPU time of the child, because a busy machine changes the CPU time
        # less than the duration.
        used.append(sum(after[2:4]) - sum(before[2:4]))
        assert done.stdout == f"hermes {__version__}\n"
    assert min(used) < 0.25


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_list_of_commands_has_the_help_of_each_command(name: str) -> None:
    module, _, attribute = SUBCOMMANDS[name].place.partition(":")
    command: click.Command = vars(import_module(module))[attribute]
    assert command.get_short_help_str(100).startswith(SUBCOMMANDS[name].help.removesuffix("."))


def test_help_lists_every_command() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).stdout
    for name, lazy in SUBCOMMANDS.items():
        assert name in shown
        assert lazy.help in shown


def test_an_unknown_command_is_an_error() -> None:
    done = CliRunner().invoke(cli, ["chatt"])
    assert done.exit_code == 2
    assert "No such command 'chatt'" in done.stderr


def test_the_error_for_words_that_are_not_a_command_suggests_a_question() -> None:
    done = CliRunner().invoke(cli, ["what is", "the time"], prog_name="hermes")
    assert done.exit_code == 2
    assert "To ask the agent: hermes -q 'what is the time'" in done.stderr
    near = CliRunner().invoke(cli, ["sesions"], prog_name="hermes").stderr
    assert "Did you mean `hermes sessions`?" in near


def test_help_is_also_a_command() -> None:
    def shown(*args: str) -> str:
        return CliRunner().invoke(cli, args, prog_name="hermes").output

    assert shown("help") == shown("--help")
    assert shown("help", "sessions", "list") == shown("sessions", "list", "--help")
    assert "hermes sessions has no command 'lst'" in shown("help", "sessions", "lst")
    assert "hermes chat has no command 'x'" in shown("help", "chat", "x")


def test_the_default_command_gets_its_options() -> None:
    seen: list[str | None] = []

    @click.command(cls=Commands, default="first")
    def group() -> None:
        """A group."""

    @group.command()
    @click.option("--name")
    def first(name: str | None) -> None:
        """The default command."""
        seen.append(name)

    for args in ([], ["--name", "x"], ["first", "--name", "y"]):
        assert CliRunner().invoke(group, args).exit_code == 0
    assert seen == [None, "x", "y"]
    assert "The default command." in CliRunner().invoke(group, ["--help"]).stdout


def test_a_wrong_setting_gives_one_sentence_and_exit_code_78(hermes: Run, tmp_path: Path) -> None:
    for args in (("chat", "-q", "hi"), ("gateway", "run")):
        done = hermes(*args, API_SERVER_PORT="x")
        assert done.returncode == 78
        assert "API_SERVER_PORT" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_single_error_inside_task_groups_is_found() -> None:
    error = ConfigError("x")
    assert sole(ExceptionGroup("a", [ExceptionGroup("b", [error])])) is error
    both = ExceptionGroup("a", [error, ValueError()])
    assert sole(both) is both


@pytest.mark.parametrize(
    "command", [("--help",), ("sessions", "--help"), ("sessions",), ("confg",), ("config", "chekc")]
)
def test_no_word_is_broken_in_a_narrow_terminal(tmp_path: Path, command: tuple[str, ...]) -> None:
    environ = {"PATH": os.environ["PATH"], "HERMES_HOME": "home", "TERM": "xterm"}
    whole = (sys.executable, "-m", "hermes", *command)
    wide = subprocess.run(
        whole, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    with Terminal(whole, environ, tmp_path, columns=40, rows=60) as narrow:
        assert narrow.ended() == wide.returncode
        assert narrow.text.split() == (wide.stdout + wide.stderr).split()


@pytest.mark.parametrize("group", ["sessions", "config", "context", "prompt", "store"])
def test_a_misspelt_command_of_a_group_gets_a_suggestion(group: str) -> None:
    module, _, attribute = SUBCOMMANDS[group].place.partition(":")
    first = min(vars(import_module(module))[attribute].commands)
    done = CliRunner().invoke(cli, [group, f"{first}x"])
    assert f"Did you mean `cli {group} {first}`?" in done.output
    assert done.exit_code == 2


def test_a_group_without_a_default_command_shows_its_help() -> None:
    done = CliRunner().invoke(cli, ["store"])
    assert "Copy the store to another database." in done.output
