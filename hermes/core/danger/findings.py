"""Collects the dangers of a command while it is evaluated."""

import re
import shlex
from collections.abc import Sequence

from hermes.core.danger.holes import shown
from hermes.core.danger.spoofing import visible
from hermes.core.danger.syntax import NotParsed
from hermes.types.danger import DangerEffect, ScriptLanguage, Verdict, VerdictOutcome

MAX_COMMANDS = 250
"""Largest number of programs that are evaluated for one command. A program that runs several times
counts each time."""
MAX_EVALUATIONS = 16
"""Maximum depth to which scripts, functions and wrappers can be nested. Deeper commands are not
evaluated."""
MIN_WORK = 50_000
WORK_PER_CHARACTER = 40
"""All steps of the evaluation together may read MIN_WORK characters, and WORK_PER_CHARACTER more
for each character of the command."""
MAX_REASON = 300
MAX_RESOLVED = 256_000
"""Largest total length of the recorded programs and their arguments, in characters."""
SAFE = "nothing in the command is known to be dangerous"

_RANK: dict[VerdictOutcome, int] = {"run": 0, "ask": 1, "never": 2}
_EFFECT_RANK: dict[DangerEffect, int] = {"machine": 0, "unclear": 1, "other": 2}


class Findings:
    """The dangers that were found so far, and the programs that would run."""

    def __init__(self, command: str = "") -> None:
        self.outcome: VerdictOutcome = "run"
        self.reason = SAFE
        self.depth = 0
        self.elsewhere = 0
        """Number of wrappers, such as `ssh`, that run the evaluated command on another machine or
        in a container. If the number is greater than 0, a danger with the outcome `never` gets the
        outcome `ask` instead, because it does not affect this machine."""
        self.leaves = False
        """Whether the command may use the network or write outside of the workspace."""
        self.downloads = False
        """Whether one of the programs can print text from the network."""
        self._effect: DangerEffect = "machine"
        self._commands = 0
        self._work = MIN_WORK + WORK_PER_CHARACTER * len(command)
        self._scripts: dict[str, ScriptLanguage] = {}
        self._lines: list[str] = []
        self._length = 0

    def add(
        self, reason: str, outcome: VerdictOutcome = "ask", *, effect: DangerEffect = "other"
    ) -> None:
        """Records a danger. The verdict gets the worst outcome and the worst effect of all dangers,
        and the reason of the first danger with the worst outcome."""
        self.leaves = self.leaves or effect == "unclear"
        self._effect = max(self._effect, effect, key=_EFFECT_RANK.__getitem__)
        if outcome == "never" and self.elsewhere:
            outcome = "ask"
        if _RANK[outcome] > _RANK[self.outcome]:
            self.outcome, self.reason = outcome, reason

    def record(
        self, words: Sequence[str], suffix: str = "", assigned: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Records a program that would run, with its arguments. `suffix` shows its redirections,
        and `assigned` are the variables that are set for it, with their values."""
        variables = [f"{name}={quoted_word(value) if value else ''}" for name, value in assigned]
        line = " ".join([*variables, *(quoted_word(word) for word in words)]) + suffix
        if self._lines[-1:] == [line]:
            return
        self._length += len(line)
        if self._length > MAX_RESOLVED:
            raise NotParsed("the command is too long after its expansion")
        self._lines.append(line)

    def add_script(self, path: str, language: ScriptLanguage) -> None:
        """Records a file whose content decides what the command does."""
        known = self._scripts.get(path, "other")
        if known not in ("other", language):
            language = "several" if language != "other" else known
        self._scripts[path] = language

    def enter(self) -> None:
        """Begins to evaluate a nested command. Raises NotParsed if it is nested too deeply."""
        self.depth += 1
        if self.depth > MAX_EVALUATIONS:
            raise NotParsed("the command is nested too deeply")

    def count(self, characters: int) -> None:
        """Counts an evaluated program, and the characters that its evaluation reads. Raises
        NotParsed if there are too many programs or too many characters."""
        self._commands += 1
        self._work -= characters
        if self._commands > MAX_COMMANDS:
            raise NotParsed("the command runs too many programs")
        if self._work < 0:
            raise NotParsed("the command takes too long to check")

    def leave(self) -> None:
        self.depth -= 1

    def verdict(self) -> Verdict:
        resolved = visible(shown("\n".join(self._lines)))
        return Verdict(
            outcome=self.outcome,
            reason=visible(shown(self.reason))[:MAX_REASON],
            resolved=resolved,
            effect=self._effect,
            leaves=self.leaves,
            downloads=self.downloads and self.leaves,
            scripts=tuple(self._scripts),
            languages=tuple(self._scripts.values()),
        )


_NEEDS_QUOTES = re.compile(r"[\s'\"\\$`;&|<>()#]")


def quoted_word(word: str) -> str:
    """Returns the word in one line. It is quoted if a shell would otherwise not read it as a single
    argument."""
    if "\n" in word:
        inside = word.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
        return f"$'{inside}'"
    return word if word and not _NEEDS_QUOTES.search(word) else shlex.quote(word)
