"""Decides whether a shell command may run. `judge` is the only function that other packages
call."""

import logging
import re

from msgspec.structs import replace

from hermes.core.danger.evaluation import Evaluator
from hermes.core.danger.findings import Findings
from hermes.core.danger.holes import HOLES
from hermes.core.danger.scope import ShellScope
from hermes.core.danger.spoofing import visible
from hermes.core.danger.syntax import NotParsed
from hermes.types.danger import Verdict

log = logging.getLogger(__name__)

_SURROGATES = re.compile("[\ud800-\udfff]")
"""Surrogates, which Python uses in place of bytes that are not valid UTF-8."""
_DEFECTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Exceptions that show a defect of the detector. A command that causes one of them needs
approval."""


def judge(command: str) -> Verdict:
    """Returns the verdict on a command that bash would run on this machine.

    The command is not run, and no file is read. A command that can't be parsed or that exceeds a
    limit needs approval.
    """
    findings = Findings(command)
    if not HOLES.isdisjoint(command):
        return _unclear(command, "the command has control characters", findings)
    if _SURROGATES.search(command):
        return _unclear(command, "the command is not valid text", findings)
    try:
        Evaluator(findings).run_text(command, ShellScope(), None)
    except NotParsed as error:
        return _unclear(command, f"the command can't be checked: {error}", findings)
    except _DEFECTS:
        log.exception("the check of a command failed")
        return _unclear(command, "the command can't be checked", findings)
    return findings.verdict()


def _unclear(command: str, reason: str, findings: Findings) -> Verdict:
    """Returns the verdict on a command that could not be checked completely. If no danger was found
    before, the verdict is `ask` with this reason. Otherwise, the worst danger decides the
    verdict."""
    findings.add(reason, effect="unclear")
    worst = findings.verdict()
    return replace(worst, resolved=visible(command))
