"""Evaluates a syntax tree: finds the programs that would start, with their arguments and input, and
judges each program. Nothing is run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import assert_never

from hermes.core.danger.assignments import judge_assignment
from hermes.core.danger.expansion import WordExpander
from hermes.core.danger.findings import Findings
from hermes.core.danger.holes import (
    ANYTHING,
    DOWNLOAD,
    ENDLESS,
    SECRET_TEXT,
    is_known,
    unquoted,
)
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.parsing import parse
from hermes.core.danger.paths import classify
from hermes.core.danger.programs import run_program
from hermes.core.danger.redirections import Streams, open_streams
from hermes.core.danger.scope import ShellScope
from hermes.core.danger.spoofing import spoofs_name
from hermes.core.danger.syntax import (
    Assignment,
    Compound,
    ForLoop,
    FunctionDefinition,
    Pipeline,
    ShellCommand,
    ShellScript,
    ShellStatement,
    SimpleCommand,
    Substitution,
)

MAX_OUTPUT = 100_000
"""Largest number of characters of a program's output that are kept. The rest counts as unknown
text."""
MAX_ITEMS = 16
"""Largest number of items for which a loop is evaluated item by item. A loop over more items is
evaluated once, with an unknown item."""
_PATTERN = frozenset("*?[")
_ALWAYS_TRUE = tuple(parse(text) for text in (":", "true", "[ 1 ]", "((1))", "[[ 1 ]]"))
"""Conditions that are always true. A loop with such a condition has no end."""


class Evaluator:
    """Evaluates commands and collects their dangers in `findings`."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._substitutions = 0

    def run_text(self, text: str, scope: ShellScope, stdin: str | None) -> str:
        """Evaluates a shell command. Returns the text that it would print. Each unknown part of the
        text is replaced by a placeholder character (a hole)."""
        if DOWNLOAD in text:
            self.findings.add("runs commands that come from the network", effect="machine")
            return DOWNLOAD
        self.findings.enter()
        self.findings.count(10 * len(text))
        try:
            return self.script(parse(text, self.findings.depth), scope, stdin)
        finally:
            self.findings.leave()

    def script(self, script: ShellScript, scope: ShellScope, stdin: str | None) -> str:
        """Evaluates statements in their order. Returns what they would print."""
        output: list[str] = []
        for statement in script:
            output.append(self._statement(statement, scope, stdin))
        return _limited("".join(output))

    def _statement(self, statement: ShellStatement, scope: ShellScope, stdin: str | None) -> str:
        before, folders = scope.conditional, scope.folders
        output = ""
        known: set[str] = set()
        for position, pipeline in enumerate(statement.pipelines):
            scope.conditional = before or position > 0
            if position == 1:
                known = set(scope.variables)
            output += self._pipeline(pipeline, scope, stdin, background=statement.background)
            if statement.alternatives:
                scope.may_be_in(folders)
        if len(statement.pipelines) > 1:
            scope.forget_new(known)
        scope.conditional = before
        scope.may_be_in(folders)
        return output

    def _pipeline(
        self, pipeline: Pipeline, scope: ShellScope, stdin: str | None, *, background: bool
    ) -> str:
        commands = pipeline.commands
        if len(commands) == 1:
            inner = scope.inner() if background else scope
            return self._command(commands[0], inner, stdin, forks=background)
        for command in commands:
            stdin = self._command(command, scope.inner(), stdin, forks=True)
        return stdin or ""

    def _command(
        self, command: ShellCommand, scope: ShellScope, stdin: str | None, *, forks: bool = False
    ) -> str:
        match command:
            case SimpleCommand():
                return self._simple(command, scope, stdin, forks=forks)
            case Compound():
                return self._compound(command, scope, stdin)
            case ForLoop():
                return self._for(command, scope, stdin)
            case FunctionDefinition(name=name, body=body):
                scope.define(name, body)
                return ""
            case _:
                assert_never(command)

    def _expander(self, scope: ShellScope) -> WordExpander:
        return WordExpander(scope, lambda part: self._substitute(part, scope))

    def _substitute(self, part: Substitution, scope: ShellScope) -> str:
        self.findings.enter()
        stdin = ANYTHING if part.kind == "output" else None
        output = self.script(part.body, scope.inner(), stdin)
        self.findings.leave()
        if part.kind == "command":
            return output.rstrip("\n")
        self._substitutions += 1
        path = f"/dev/fd/{60 + self._substitutions}"
        scope.files[path] = output
        return path

    def _compound(self, command: Compound, scope: ShellScope, stdin: str | None) -> str:
        self.findings.enter()
        expander = self._expander(scope)
        for word in command.words:
            expander.text(word)
        streams = open_streams(command.redirections, expander, scope, self.findings)
        inner = scope.inner() if command.kind == "subshell" else scope
        before = inner.conditional
        inner.conditional = before or command.kind in ("condition", "loop")
        given = stdin if streams.stdin is None else streams.stdin
        if command.kind == "loop" and _never_ends(command):
            self.findings.add("starts background processes without end", effect="machine")
        folder, known = inner.folder, set(inner.variables)
        output = "".join(self.script(body, inner, given) for body in command.bodies)
        if command.kind == "loop" and inner.folder != folder:
            inner.folders = None
        if command.kind in ("condition", "loop"):
            inner.forget_new(known)
        inner.conditional = before
        self.findings.leave()
        return self._written(_limited(output), streams, scope)

    def _for(self, loop: ForLoop, scope: ShellScope, stdin: str | None) -> str:
        self.findings.enter()
        expander = self._expander(scope)
        streams = open_streams(loop.redirections, expander, scope, self.findings)
        items = expander.arguments(loop.items)
        if not loop.items:
            items = [scope.value("@")]
        if len(items) > MAX_ITEMS:
            items = [ANYTHING]
        given = stdin if streams.stdin is None else streams.stdin
        before, output = scope.conditional, ""
        certain = all(map(is_known, items)) and loop.items
        known = set(scope.variables)
        for item in items:
            scope.variables[loop.name] = (item,)
            scope.conditional = True
            output += self.script(loop.body, scope, given)
        scope.conditional = before
        if not certain:
            scope.forget_new(known)
        self.findings.leave()
        return self._written(_limited(output), streams, scope)

    def _simple(
        self, command: SimpleCommand, scope: ShellScope, stdin: str | None, *, forks: bool
    ) -> str:
        expander = self._expander(scope)
        argv = expander.arguments(command.words)
        saved: dict[str, tuple[str, ...] | None] = {}
        assigned: list[tuple[str, str]] = []
        for one in command.assignments:
            saved.setdefault(one.name, scope.variables.get(one.name))
            self._assign(one, expander, scope)
            assigned.append((one.name, " ".join(scope.variables[one.name])))
        streams = open_streams(command.redirections, expander, scope, self.findings)
        given = stdin if streams.stdin is None else streams.stdin
        if not argv:
            # Only upper-case variables are recorded here. The values of other variables are
            # recorded with the commands that use them.
            assigned = [one for one in assigned if one[0].isupper()]
        if command.declares:
            self.findings.record([*argv, *map("=".join, assigned)], streams.shown)
            if "-n" in argv:
                # A name reference (`declare -n`) has the value of another variable. That value is
                # not known here, so it may be any text.
                scope.variables |= dict.fromkeys([name for name, _ in assigned], (ANYTHING,))
        elif argv or assigned or streams.shown:
            self.findings.record(argv, streams.shown, assigned)
        if not argv:
            # `$(<file)` prints a file, but an assignment or a here-document prints nothing.
            prints = not command.assignments and command.redirections[-1:]
            copied = streams.stdin if prints and prints[0].operator == "<" else ""
            return self._written(copied or "", streams, scope)
        output = self.run(argv, scope, given, forks=forks)
        if not command.declares:
            for name, value in saved.items():
                if value is None:
                    scope.variables.pop(name, None)
                else:
                    scope.variables[name] = value
        return self._written(output, streams, scope)

    def _assign(self, one: Assignment, expander: WordExpander, scope: ShellScope) -> None:
        if one.items is not None:
            values = tuple(expander.arguments(one.items))
            if one.append:
                values = (*(scope.values(one.name) or ()), *values)
        elif one.index is not None:
            values = scope.with_element(one.name, one.index, expander.text(one.value))
        elif one.append:
            values = (scope.value(one.name) + expander.text(one.value),)
        else:
            values = (expander.text(one.value),)
        scope.assign(one.name, *values)
        judge_assignment(one.name, values, scope, self)

    def _written(self, output: str, streams: Streams, scope: ShellScope) -> str:
        """Records the output as the content of the file to which it is redirected. Returns the
        output that is not redirected, which goes to the next command."""
        if streams.network and SECRET_TEXT in output:
            self.findings.add("sends secrets to the network")
        if not streams.output:
            return output
        if ENDLESS in output and classify(scope.path(streams.output)) != "harmless_device":
            self.findings.add(f"fills the disk with the file {streams.output}", effect="machine")
        scope.write(streams.output, output, append=streams.append)
        return ""

    def run(
        self, argv: Sequence[str], scope: ShellScope, stdin: str | None, *, forks: bool = False
    ) -> str:
        """Evaluates a program with its arguments. Returns the text that it would print."""
        name = argv[0].rpartition("/")[2]
        if not is_known(name or argv[0]):
            self.findings.add(
                "runs a program whose name is known only when the command runs", effect="unclear"
            )
            return ANYTHING
        if name not in ("[", "[[") and not _PATTERN.isdisjoint(argv[0]):
            self.findings.add(
                f"runs a program whose name is the pattern {argv[0]}", effect="unclear"
            )
            return ANYTHING
        if argv[0].startswith(("/proc/", "/dev/")):
            self.findings.add(f"runs {argv[0]}, which may be any program", effect="unclear")
        if spoofs_name(argv[0]):
            self.findings.add("the name of a program has misleading characters")
        self.findings.enter()
        self.findings.count(sum(map(len, argv)) + len(stdin or ""))
        try:
            if name in scope.functions and name == argv[0]:
                return self._call(argv, scope, stdin, forks=forks)
            if argv[0] in scope.aliases:
                return self._alias(argv, scope, stdin)
            return _limited(run_program(Invocation(argv, scope, stdin, self)))
        finally:
            self.findings.leave()

    def _call(
        self, argv: Sequence[str], scope: ShellScope, stdin: str | None, *, forks: bool
    ) -> str:
        body = scope.functions[argv[0]]
        # A function may replace its own definition while it runs. So a call is recursive only if
        # the same body is already being evaluated.
        if any(one is body for one in scope.active):
            if forks:
                self.findings.add("is a fork bomb: a function starts itself again", "never")
            return ANYTHING
        arguments, active = scope.arguments, scope.active
        scope.arguments, scope.active = tuple(argv[1:]), (*active, body)
        output = self._command(body, scope, stdin)
        scope.arguments, scope.active = arguments, active
        return output

    def _alias(self, argv: Sequence[str], scope: ShellScope, stdin: str | None) -> str:
        """Evaluates the text of an alias. The alias is not expanded again inside this text, so that
        `alias ls='ls -l'` works."""
        text = scope.aliases.pop(argv[0])
        words = " ".join(map(shlex.quote, argv[1:]))
        output = self.run_text(f"{text} {words}", scope, stdin)
        scope.aliases[argv[0]] = text
        return output


def _never_ends(loop: Compound) -> bool:
    """Returns whether the loop has a condition that is always true and a body that starts
    background processes."""
    if len(loop.bodies) < 2:
        return False
    condition, body = loop.bodies
    return any(one.background for one in body) and condition in _ALWAYS_TRUE


def _limited(output: str) -> str:
    return output if len(output) <= MAX_OUTPUT else unquoted(output[:MAX_OUTPUT]) + ANYTHING
