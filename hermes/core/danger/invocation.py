"""A program with its arguments, as it would be started."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Protocol

from hermes.core.danger.findings import Findings
from hermes.core.danger.options import ParsedOptions, parse_options
from hermes.core.danger.scope import ShellScope
from hermes.types.danger import DangerEffect, ScriptLanguage, VerdictOutcome

_PROGRAM_FILE = re.compile(
    r"(?:/usr(?:/local)?|/opt/homebrew|/snap)?/s?bin/|/(?:dev|proc)/|/nix/store/"
)
"""Files that are not scripts: programs that the system administrator has installed, and devices."""


class Evaluating(Protocol):
    """Evaluates the programs and shell commands that a program would start."""

    findings: Findings

    def run(self, argv: Sequence[str], scope: ShellScope, stdin: str | None) -> str:
        """Evaluates a program with its arguments. Returns the text that it would print."""
        ...

    def run_text(self, text: str, scope: ShellScope, stdin: str | None) -> str:
        """Evaluates a shell command. Returns the text that it would print."""
        ...


class Invocation:
    """A program that a command would start."""

    def __init__(
        self, argv: Sequence[str], scope: ShellScope, stdin: str | None, shell: Evaluating
    ) -> None:
        self.word = argv[0]
        """The word that names the program. It may be a path."""
        self.program = argv[0].rpartition("/")[2]
        self.arguments = list(argv[1:])
        self.scope = scope
        self.stdin = stdin
        """The standard input; None if the command does not redirect it."""
        self.shell = shell

    def options(
        self,
        valued: Collection[str] = (),
        *,
        permute: bool = True,
        single_dash: bool = False,
    ) -> ParsedOptions:
        """Returns the options and operands among the arguments. `parse_options` explains the
        parameters."""
        return parse_options(self.arguments, valued, permute=permute, single_dash=single_dash)

    def danger(
        self, reason: str, outcome: VerdictOutcome = "ask", *, effect: DangerEffect = "other"
    ) -> None:
        """Records that the program is dangerous."""
        self.shell.findings.add(reason, outcome, effect=effect)

    def run(
        self, argv: Sequence[str], stdin: str | None = None, *, folder: str | None = None
    ) -> str:
        """Evaluates a program that the judged program starts. `stdin` and `folder` are the input
        and the working directory of the started program. If one of them is None, the started
        program has the same input or directory as the judged program."""
        scope = self.scope if folder is None else self._scope_in(folder)
        return self.shell.run(argv, scope, self.stdin if stdin is None else stdin)

    def run_text(self, text: str, stdin: str | None = None, *, folder: str | None = None) -> str:
        """Evaluates a shell command that the judged program runs in a new shell. `run` explains
        the parameters."""
        scope = self.scope.inner() if folder is None else self._scope_in(folder)
        return self.shell.run_text(text, scope, self.stdin if stdin is None else stdin)

    def _scope_in(self, folder: str) -> ShellScope:
        scope = self.scope.inner()
        scope.enter_folder(folder)
        return scope

    def add_script(self, operand: str, language: ScriptLanguage = "other") -> None:
        """Records that the program runs the file that an operand names. A file whose path is not
        known needs approval."""
        paths = self.scope.script_paths(operand)
        if self.scope.downloads and not any(map(_PROGRAM_FILE.match, paths)):
            self.danger(f"runs {operand}, which may come from the network", effect="machine")
        if not paths:
            self.danger(
                "runs a script whose name is known only when the command runs", effect="unclear"
            )
        elif not self.shell.findings.elsewhere:
            for path in paths:
                self._add_script(path, language)

    def add_read_scripts(self) -> None:
        """Records all files that the command has read. They count as scripts, because the program
        runs text that may come from any of these files."""
        for path in self.scope.reads:
            self._add_script(path, "other")
        self.scope.reads.clear()

    def _add_script(self, path: str, language: ScriptLanguage) -> None:
        if not _PROGRAM_FILE.match(path):
            self.shell.findings.add_script(self.scope.copies.get(path, path), language)

    def path(self, text: str) -> str:
        """Returns the path that an operand names: absolute, or relative to the folder in which the
        command starts."""
        return self.scope.path(text)
