"""Evaluates the programs that wrappers start, such as `ls` in `sudo ls`."""

import re
import shlex
import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from hermes.core.danger.holes import ANYTHING, ONE_WORD, is_known, is_open
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import ParsedOptions, names, parse_options
from hermes.core.danger.words import unescape
from hermes.types.value import Value

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class WrapperGrammar(Value):
    """The options of a program that starts another program. `wrappers.toml` explains the fields."""

    valued: str = ""
    operands: int = 0
    assignments: bool = False
    text: bool = False
    both: bool = False
    program: str = ""
    commands: tuple[str, ...] = ()
    remote: bool = False
    verbs: tuple[str, ...] = ()
    valued_before: str = ""
    folder: str = ""
    login: str = ""


@cache
def grammars() -> dict[str, WrapperGrammar]:
    """Returns the content of `wrappers.toml`: the options of each wrapper, by its name."""
    table = files("hermes.core.danger").joinpath("wrappers.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(table), dict[str, WrapperGrammar])


def run_wrapped(call: Invocation) -> str | None:
    """Evaluates the program that a wrapper starts, and returns what it would print. Returns None if
    `call` is not a call of a wrapper."""
    grammar = grammars().get(call.program)
    if grammar is None:
        return None
    arguments = call.arguments
    if grammar.verbs:
        before = parse_options(arguments, names(grammar.valued_before), permute=False)
        if not before.operands or before.operands[0] not in grammar.verbs:
            return None
        arguments = before.operands[1:]
    parsed = parse_options(arguments, names(grammar.valued), permute=False)
    findings = call.shell.findings
    findings.elsewhere += grammar.remote
    try:
        return _run(call, grammar, parsed)
    finally:
        findings.elsewhere -= grammar.remote


def _run(call: Invocation, grammar: WrapperGrammar, parsed: ParsedOptions) -> str:
    output = ""
    rest = parsed.operands
    folder = None
    if folders := parsed.values(*names(grammar.folder)):
        folder = folders[-1]
    elif grammar.login and (parsed.has(*names(grammar.login)) or "-" in rest):
        folder = ANYTHING
    if grammar.commands:
        # In `su user -c command`, the options come after the first operand. So the arguments after
        # the operand are also parsed for options.
        later = parse_options(rest, names(grammar.valued))
        for text in (*parsed.values(*grammar.commands), *later.values(*grammar.commands)):
            output = call.run_text(text, folder=folder)
    rest = [*parsed.values(*names(grammar.program)), *rest[grammar.operands :]]
    if "--" in rest and rest[0].startswith("-"):
        # `kubectl exec pod -c container -- program` has options after its operand. The program
        # begins after `--`.
        rest = rest[rest.index("--") + 1 :]
    if grammar.assignments:
        rest = skip_assignments(call, rest)
    if not rest:
        return output
    if grammar.text or grammar.both:
        output += call.run_text(" ".join(rest), folder=folder)
    if grammar.text or (grammar.both and len(rest) == 1):
        return output
    return output + call.run(rest, folder=folder)


def skip_assignments(call: Invocation, arguments: list[str]) -> list[str]:
    """Sets the variables of leading `NAME=value` arguments. Returns the arguments after them."""
    for position, argument in enumerate(arguments):
        found = _ASSIGNMENT.fullmatch(argument)
        if not found:
            return arguments[position:]
        call.run(["export", argument])
    return []


def run_env(call: Invocation) -> str | None:
    """Evaluates the program that `env` starts, and returns what it would print. Returns None if
    `env` starts no program."""
    arguments = call.arguments
    for position, argument in enumerate(arguments):
        found = re.match(r"-\w*S(.*)|--split-string=?(.*)", argument, re.DOTALL)
        if found and not argument.startswith("--unset"):
            attached = found[1] or found[2]
            following = arguments[position + 1 :]
            text = attached or "".join(following[:1])
            return call.run_text(" ".join(["env", text, *(following[not attached :])]))
        if argument[:1] != "-":
            break
    parsed = call.options(("u", "C", "unset", "chdir"), permute=False)
    rest = skip_assignments(call, parsed.operands)
    folders = parsed.values("C", "chdir")
    return call.run(rest, folder=folders[-1] if folders else None) if rest else None


def run_xargs(call: Invocation) -> str:
    """Evaluates the program that `xargs` starts, with the arguments that `xargs` reads from its
    input. These arguments may be unknown."""
    valued = "a d E I L n P s arg-file delimiter max-lines max-args max-procs max-chars"
    attached = [one for one in call.arguments if one in ("-i", "-l", "-e", "--replace")]
    parsed = parse_options(call.arguments, [*names(valued), "process-slot-var"], permute=False)
    command = parsed.operands or ["echo"]
    text = call.stdin if call.stdin is not None and not parsed.has("a", "arg-file") else ANYTHING
    mark = "".join(parsed.values("I", "replace")[:1]) or ("{}" if attached else "")
    items = _items(text, parsed, lines=bool(mark)) or [ANYTHING]
    if not mark:
        return call.run([*command, *items[:64]], "")
    output = ""
    for item in items[:16]:
        output += call.run([_replaced(word, mark, item) for word in command], "")
    return output


def _items(text: str, parsed: ParsedOptions, *, lines: bool) -> list[str]:
    """Returns the arguments that `xargs` reads from its input."""
    delimiter = "".join(parsed.values("d", "delimiter")[:1])
    if parsed.has("0", "null"):
        items = [text.rstrip("\n")]
    elif delimiter or lines:
        items = text.split(unescape(delimiter) or "\n")
    elif is_known(text):
        try:
            items = shlex.split(text)
        except ValueError:
            items = text.split()
    else:
        items = [item.strip("'\"") for item in re.split(r"[ \n]+", text)]
    return [item for item in items if item.strip()]


def _replaced(word: str, mark: str, value: str) -> str:
    return value if word == mark else word.replace(mark, value if is_known(value) else ONE_WORD)


def run_parallel(call: Invocation) -> str:
    """Evaluates the commands that GNU parallel runs. The first operands of parallel are a command,
    which parallel runs once for each item, with the item as an argument. The items are the operands
    after `:::`. Without `:::`, they are read from the input."""
    valued = "j a I S N n d P C jobs arg-file sshlogin max-args colsep delay timeout joblog retries"
    parsed = call.options(names(valued), permute=False)
    command: list[str] = []
    values: list[str] = []
    for position, operand in enumerate(parsed.operands):
        if operand in (":::", "::::", ":::+"):
            values = parsed.operands[position + 1 :]
            break
        command.append(operand)
    items = values or [call.stdin.strip() if call.stdin and is_known(call.stdin) else ANYTHING]
    if not command:
        return "".join(
            call.run_text(item) if not is_open(item) else _unclear(call) for item in items
        )
    text = " ".join(command)
    output = ""
    for item in items[:16]:
        replaced = re.sub(r"\{[./#%]*\}", lambda _, item=item: item, text)  # type: ignore[misc]
        output += call.run_text(replaced if replaced != text else f"{text} {item}")
    return output


def _unclear(call: Invocation) -> str:
    call.danger("runs commands that are known only when the command runs", effect="unclear")
    return ANYTHING


def run_busybox(call: Invocation) -> str | None:
    """Evaluates the program that is the first operand of `busybox` or `toybox`. Returns None if
    there is no operand."""
    return call.run(call.arguments) if call.arguments else None
