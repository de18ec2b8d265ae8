"""A program is recognized by the last part of its path. A program that another program starts reads
the input of that program. A nested shell does not change the variables of the outer shell."""

from collections.abc import Sequence

from hermes.core.danger.findings import Findings
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.scope import ShellScope


class RecordingShell:
    """A shell that evaluates nothing, and records the commands that it gets."""

    def __init__(self) -> None:
        self.findings = Findings()
        self.commands: list[object] = []

    def run(self, argv: Sequence[str], scope: ShellScope, stdin: str | None) -> str:
        self.commands.append((list(argv), stdin))
        return ""

    def run_text(self, text: str, scope: ShellScope, stdin: str | None) -> str:
        self.commands.append((text, stdin))
        scope.assign("x", "changed")
        return ""


def test_a_program_is_named_by_the_end_of_its_path() -> None:
    shell = RecordingShell()
    call = Invocation(["/usr/bin/sudo", "ls"], ShellScope(), None, shell)
    assert (call.program, call.arguments) == ("sudo", ["ls"])


def test_a_nested_program_reads_the_same_input_unless_another_is_given() -> None:
    shell = RecordingShell()
    call = Invocation(["sudo"], ShellScope(), "in", shell)
    call.run(["ls"])
    call.run(["ls"], "other")
    assert shell.commands == [(["ls"], "in"), (["ls"], "other")]


def test_a_nested_shell_does_not_change_the_variables() -> None:
    shell = RecordingShell()
    scope = ShellScope()
    scope.assign("x", "same")
    Invocation(["sh"], scope, None, shell).run_text("x=changed")
    assert scope.value("x") == "same"
