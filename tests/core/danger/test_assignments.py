"""Assignments to variables such as PAGER, whose value a program runs as a command, are judged."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("LD_PRELOAD=./x.so ls", "ask"),
        ("BASH_ENV=x bash -c ls", "ask"),
        ("export PYTHONSTARTUP=x", "ask"),
        ("env LD_AUDIT=x ls", "ask"),
        ('NODE_OPTIONS="--require ./x" node a.js', "ask"),
        ("NODE_OPTIONS=--max-old-space-size=4096 node a.js", "run"),
        ("LD_LIBRARY_PATH=/tmp/x ls", "ask"),
        ("LD_LIBRARY_PATH=./lib ./app", "run"),
        ("PYTHONPATH=src pytest", "run"),
    ],
)
def test_a_variable_that_loads_code_needs_approval(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("PAGER='rm -r a' git log", "ask"),
        ("PAGER=cat git log", "run"),
        ("export EDITOR='vim -n'", "run"),
        ('GIT_SSH_COMMAND="ssh -i key" git fetch', "run"),
    ],
)
def test_a_variable_that_names_a_command_is_evaluated(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("PATH=.:$PATH ls", "ask"),
        ("PATH=/tmp/x:$PATH ls", "ask"),
        ('export PATH="$HOME/.local/bin:$PATH"', "run"),
    ],
)
def test_the_search_path_is_judged_by_its_first_folder(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome
