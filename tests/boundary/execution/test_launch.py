"""A launcher describes how a command is started: with which shell, variables and restrictions."""

import json
from pathlib import Path

from hermes.boundary.execution.launch import LandlockRules, Restrictions, ShellLauncher
from hermes.types.execution import CommandLimits


def test_all_restrictions_reach_the_supervisor() -> None:
    rules = LandlockRules(readable=("/usr",), listable=("/etc",), writable=("/w",))
    fields = json.loads(Restrictions(limits=CommandLimits(), landlock=rules).text())
    assert fields["landlock"] == {"readable": ["/usr"], "listable": ["/etc"], "writable": ["/w"]}
    assert fields["limits"]["processes"] == CommandLimits().processes
    assert json.loads(Restrictions().text())["limits"] is None


def test_a_shell_runs_the_command() -> None:
    launcher = ShellLauncher("/bin/sh", {"A": "b"})
    launch = launcher.launch("true", Path("/w"), background=True)
    assert (launch.arguments, launch.environment) == (("/bin/sh", "-c", "true"), {"A": "b"})
    assert launcher.shell() == ("/bin/sh", "-i")
