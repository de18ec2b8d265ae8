"""Judges redirections, and finds the input and output files of a command."""

from collections.abc import Sequence

from hermes.core.danger.expansion import WordExpander
from hermes.core.danger.file_access import judge_read, judge_write
from hermes.core.danger.findings import Findings, quoted_word
from hermes.core.danger.holes import ANYTHING, DOWNLOAD, ENDLESS, SECRET_TEXT
from hermes.core.danger.paths import classify, may_hold_secret
from hermes.core.danger.scope import ShellScope
from hermes.core.danger.syntax import Redirection
from hermes.types.value import Value


class Streams(Value):
    """The input and output of a command after its redirections."""

    stdin: str | None = None
    """The text that the command reads; None if its input is not redirected."""
    output: str = ""
    """The file that the command writes to; empty if its output is not redirected."""
    append: bool = False
    network: bool = False
    """Whether the output goes to the network."""
    shown: str = ""
    """The redirections, as they are shown to people."""


def open_streams(
    redirections: Sequence[Redirection],
    expander: WordExpander,
    scope: ShellScope,
    findings: Findings,
) -> Streams:
    """Expands and judges redirections. Returns the input and output that result from them."""
    stdin: str | None = None
    output = ""
    append = network = False
    shown: list[str] = []
    for one in redirections:
        target = expander.text(one.target)
        shown.append(_shown(one, target))
        if one.operator in ("<<<", "<<"):
            stdin = target + "\n" * (one.operator == "<<<")
        elif one.operator == "<":
            stdin = file_text(target, scope)
            judge_read(scope.path(target), findings)
        elif one.operator in ("<&", ">&") and (target.rstrip("-").isdigit() or target == "-"):
            if one.operator == "<&" and target not in ("0", "-"):
                stdin = ANYTHING
        else:
            path = scope.path(target)
            network = network or classify(path) == "network"
            if one.operator in ("<>", "<&"):
                stdin = ANYTHING
            judge_write(path, findings, append=one.operator in (">>", "&>>"))
            if one.descriptor in ("", "1"):
                output, append = target, one.operator in (">>", "&>>")
    return Streams(stdin=stdin, output=output, append=append, network=network, shown="".join(shown))


def _shown(redirection: Redirection, target: str) -> str:
    if redirection.operator in (">&", "<&"):
        return f" {redirection.descriptor}{redirection.operator}{target}"
    if redirection.operator in ("<<", "<<<"):
        return f" {redirection.descriptor}<<< {quoted_word(target)}"
    return f" {redirection.descriptor}{redirection.operator} {target}"


def file_text(path: str, scope: ShellScope) -> str:
    """Returns the content of the file if the command has written the file, and otherwise unknown
    text. The unknown text is marked in accordance with the file: as secret, downloaded or
    endless."""
    content = scope.content(path)
    if content is not None:
        return content
    place = scope.path(path)
    scope.reads.update(dict.fromkeys(scope.script_paths(path)))
    if classify(place) == "network":
        return DOWNLOAD
    if classify(place) == "device":
        return SECRET_TEXT
    if place in ("/dev/zero", "/dev/random", "/dev/urandom", "/dev/full"):
        return ENDLESS
    return SECRET_TEXT if may_hold_secret(place) else ANYTHING
