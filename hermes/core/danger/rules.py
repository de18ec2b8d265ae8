"""Judges programs by a table of rules."""

import re
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from hermes.core.danger.file_access import judge_read, judge_write
from hermes.core.danger.holes import is_open
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import ParsedOptions, names
from hermes.core.danger.paths import classify
from hermes.types.danger import DangerEffect, VerdictOutcome
from hermes.types.value import Value


class DangerRule(Value):
    """A condition under which a program is dangerous. `rules.toml` explains the fields."""

    commands: tuple[str, ...]
    reason: str
    options: str = ""
    unless: str = ""
    operands: str = ""
    values: str = ""
    classes: tuple[str, ...] = ()
    outcome: VerdictOutcome = "ask"
    effect: DangerEffect = "other"
    count: int = 0


class ProgramGrammar(Value):
    """The options of a program. `rules.toml` explains the fields."""

    valued: str = ""
    single_dash: bool = False
    permute: bool = True
    writes: str = ""
    runs: str = ""
    reads: bool = False


class RuleTable(Value):
    """The content of `rules.toml`."""

    program: dict[str, ProgramGrammar]
    rule: tuple[DangerRule, ...]
    secret: tuple[str, ...]
    network: tuple[str, ...]


_DESTROYS = re.compile(
    r"(?:[\w-]+:)?(?:delete|destroy|purge|terminate|wipe|nuke|erase|obliterate|uninstall|drop"
    r"|factory-?reset|force-?delete)(?:[-:_][a-z-]+)?"
)
"""Verbs that count as dangerous in the commands of a program that rules.toml does not contain."""


class _Index(Value):
    programs: dict[str, ProgramGrammar]
    secrets: dict[str, list[list[str]]]
    networks: dict[str, list[list[str]]]
    rules: dict[str, list[DangerRule]]
    patterns: list[str]


@cache
def _index() -> _Index:
    table = files("hermes.core.danger").joinpath("rules.toml").read_text("utf-8")
    loaded = msgspec.convert(tomllib.loads(table), RuleTable)
    rules: dict[str, list[DangerRule]] = {}
    for rule in loaded.rule:
        for command in rule.commands:
            program, _, verbs = command.partition(" ")
            one = msgspec.structs.replace(rule, commands=(verbs,))
            rules.setdefault(program, []).append(one)
    programs = {name: spec for keys, spec in loaded.program.items() for name in keys.split()}
    return _Index(
        programs=programs,
        secrets=_verbs_by_program(loaded.secret),
        networks=_verbs_by_program(loaded.network),
        rules=rules,
        patterns=[one for one in rules if "*" in one],
    )


def _verbs_by_program(commands: Sequence[str]) -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for command in commands:
        program, _, verbs = command.partition(" ")
        found.setdefault(program, []).append(verbs.split())
    return found


@lru_cache(maxsize=1024)
def _rules_of(program: str) -> tuple[tuple[DangerRule, ...], ProgramGrammar | None]:
    """Returns the rules for a program, and the grammar of its options. The grammar is None if
    `rules.toml` has no entry for this program."""
    index = _index()
    names_of_rules = [program, *(one for one in index.patterns if fnmatchcase(program, one))]
    rules = [rule for name in names_of_rules for rule in index.rules.get(name, ())]
    return tuple(rules), index.programs.get(program)


def judge_by_rules(call: Invocation) -> None:
    """Judges a program by the rules for its name."""
    found, grammar = _rules_of(call.program)
    if not found and grammar is None:
        return
    grammar = grammar or ProgramGrammar()
    parsed = call.options(
        names(grammar.valued), permute=grammar.permute, single_dash=grammar.single_dash
    )
    if parsed.has("help") or call.arguments[:1] == ["--version"]:
        return
    _judge_grammar(call, grammar, parsed)
    for rule in found:
        if _matches(rule, parsed, call):
            call.danger(rule.reason, rule.outcome, effect=rule.effect)


def prints_secret(call: Invocation) -> bool:
    """Returns whether the program prints a secret, such as a token."""
    return _is_listed(call, _index().secrets)


def uses_network(call: Invocation) -> bool:
    """Returns whether the program may use the network."""
    return _is_listed(call, _index().networks)


def _is_listed(call: Invocation, table: dict[str, list[list[str]]]) -> bool:
    _, grammar = _rules_of(call.program)
    verbs = table.get(call.program, [])
    operands = call.options(names(grammar.valued if grammar else "")).operands if verbs else []
    return any(_has_verbs(one, operands) for one in verbs)


def judge_verbs(call: Invocation) -> None:
    """Judges a program that is not in `rules.toml` by its first two words, which may be verbs such
    as `delete`. A word after an option may be the value of the option, so this word is not
    judged."""
    before = ""
    for word in call.arguments[:2]:
        if _DESTROYS.fullmatch(word) and before[:1] != "-":
            call.danger(f"may delete data: {word}")
        before = word


def is_known_program(program: str) -> bool:
    """Returns whether `rules.toml` has an entry for the program."""
    found, grammar = _rules_of(program)
    return bool(found) or grammar is not None


def _judge_grammar(call: Invocation, grammar: ProgramGrammar, parsed: ParsedOptions) -> None:
    findings = call.shell.findings
    for path in parsed.values(*names(grammar.writes)):
        judge_write(call.path(path), findings)
    for text in parsed.values(*names(grammar.runs)):
        call.run_text(text)
    if grammar.reads:
        for path in parsed.operands:
            judge_read(call.path(path), findings)


def _matches(rule: DangerRule, parsed: ParsedOptions, call: Invocation) -> bool:
    verbs = rule.commands[0].split()
    if not _has_verbs(verbs, parsed.operands) or (verbs and call.arguments[-1:] == ["-h"]):
        return False
    if rule.unless and parsed.has(*names(rule.unless)) and not _is_false(rule, parsed):
        return False
    operands = parsed.operands[len([one for one in verbs if one != "*"]) :]
    if len(operands) < rule.count:
        return False
    if rule.options and not parsed.has(*names(rule.options)):
        return parsed.dynamic and not verbs
    if rule.values and not any(
        re.fullmatch(rule.values, one) for one in parsed.values(*names(rule.options))
    ):
        return False
    if rule.operands and not any(
        re.fullmatch(rule.operands, one, re.IGNORECASE) for one in operands
    ):
        return False
    if rule.classes:
        kinds = {"unknown" if is_open(one[:1]) else classify(call.path(one)) for one in operands}
        return bool(kinds & set(rule.classes))
    return True


def _is_false(rule: DangerRule, parsed: ParsedOptions) -> bool:
    """Returns whether the options that prevent the danger are switched off, as in
    `--dry-run=none`."""
    values = parsed.values(*names(rule.unless))
    return bool(values) and all(value in ("none", "false", "no") for value in values)


def _has_verbs(verbs: list[str], operands: list[str]) -> bool:
    """Returns whether the operands begin with the verbs. `*` matches any number of operands, and
    `a|b` matches the operand `a` or the operand `b`."""
    at = 0
    anywhere = False
    for verb in verbs:
        if verb == "*":
            anywhere = True
            continue
        choices = verb.split("|")
        while at < len(operands) and anywhere and operands[at] not in choices:
            at += 1
        if at >= len(operands) or operands[at] not in choices:
            return False
        at += 1
        anywhere = False
    return True
