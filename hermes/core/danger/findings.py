"""Collects the dangers of a command while it is evaluated."""

import re
import shlex
from collections.abc import Sequence

from hermes.core.danger.holes import shown
from hermes.core.danger.spoofing import visible
from hermes.core.danger.syntax import NotParsed
from hermes.types.danger import Verdict, VerdictOutcome

MAX_COMMANDS = 250
"""Number of programs that are evaluated, including repeated and nested ones."""
MAX_EVALUATIONS = 16
"""Depth of scripts, functions and wrappers that call each other."""
MIN_WORK = 50_000
WORK_PER_CHARACTER = 40
"""Number of characters that all steps of the evaluation together may read, for each character of
the command and at least."""
MAX_REASON = 300
MAX_RESOLVED = 256_000
"""Number of characters of the longest resolved command."""
SAFE = "nothing in the command is known to be dangerous"

_RANK: dict[VerdictOutcome, int] = {"run": 0, "ask": 1, "never": 2}


class Findings:
    """The dangers that were found so far, and the programs that would run."""

    def __init__(self, command: str = "") -> None:
        self.outcome: VerdictOutcome = "run"
        self.reason = SAFE
        self.depth = 0
        self.elsewhere = 0
        """Number of wrappers around the evaluated command that run it on another machine."""
        self._commands = 0
        self._work = MIN_WORK + WORK_PER_CHARACTER * len(command)
        self._lines: list[str] = []
        self._length = 0

    def add(self, reason: str, outcome: VerdictOutcome = "ask") -> None:
        """Records a danger. The first of the worst dangers is the reason of the verdict."""
        if outcome == "never" and self.elsewhere:
            outcome = "ask"
        if _RANK[outcome] > _RANK[self.outcome]:
            self.outcome, self.reason = outcome, reason

    def record(self, words: Sequence[str], suffix: str = "") -> None:
        """Records a program that would run."""
        line = " ".join([_quoted(word) for word in words]) + suffix
        self._length += len(line)
        if self._length > MAX_RESOLVED:
            raise NotParsed("the command is too long after its expansion")
        self._lines.append(line)

    def enter(self) -> None:
        """Begins to evaluate a nested command. Raises NotParsed if it is nested too deeply."""
        self.depth += 1
        if self.depth > MAX_EVALUATIONS:
            raise NotParsed("the command is nested too deeply")

    def count(self, characters: int) -> None:
        """Counts a program that is evaluated with this number of characters. Raises NotParsed if
        the evaluation takes too long."""
        self._commands += 1
        self._work -= characters
        if self._commands > MAX_COMMANDS or self._work < 0:
            raise NotParsed("the command runs too many programs")

    def leave(self) -> None:
        self.depth -= 1

    def verdict(self) -> Verdict:
        resolved = visible(shown("\n".join(dict.fromkeys(self._lines))))
        return Verdict(
            outcome=self.outcome, reason=visible(shown(self.reason))[:MAX_REASON], resolved=resolved
        )


_NEEDS_QUOTES = re.compile(r"[\s'\"\\$`;&|<>()#]")


def _quoted(word: str) -> str:
    """Returns the word in quotes if it would otherwise not be read as one argument."""
    return word if word and not _NEEDS_QUOTES.search(word) else shlex.quote(word)
