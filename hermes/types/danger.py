"""The verdict on a shell command."""

from typing import Literal

from hermes.types.value import Value

DangerEffect = Literal["machine", "unclear", "other"]
"""The harm that a danger can do. `machine`: harm to this machine, against which an isolated sandbox
protects. `unclear`: harm to anything that the command can reach, because the command can't be
understood completely. `other`: harm to files of the workspace or to other machines."""
ScriptLanguage = Literal["shell", "python", "program", "other", "several"]
"""How a script is run: by a shell, by Python, as a program (its first line names the interpreter),
by another program, or in several of these ways."""
VerdictOutcome = Literal["run", "ask", "never"]
"""The decision about a command. `run`: the command runs without an approval. `ask`: the command
needs an approval. `never`: the command is refused, even if all approvals are switched off."""


class Verdict(Value):
    """The decision about one command."""

    outcome: VerdictOutcome
    reason: str
    """A sentence without a final period that explains the outcome."""
    resolved: str
    """The programs that the command would start, one per line, with all quoting and all constant
    expansions resolved. An ellipsis replaces text that is known only when the command runs."""
    effect: DangerEffect = "other"
    """The worst effect of the dangers: `other` is worse than `unclear`, and `unclear` is worse than
    `machine`."""
    leaves: bool = False
    """Whether the command may send data over the network or write outside of the workspace."""
    downloads: bool = False
    """Whether the command can print text from the network, which strangers may have written."""
    scripts: tuple[str, ...] = ()
    """Script files that the command runs, and whose content is not part of the command itself:
    `x.sh` in `bash x.sh`, `./x.sh`, `source x.sh` or `sh < x.sh`. The paths are relative to the
    working directory in which the command starts, absolute, or begin with `~/` for the home folder.
    After a `cd` that may fail or be skipped, both possible paths are listed, so a listed file need
    not exist. Programs in the program folders of the system are not listed. If a path is known only
    when the command runs, or if the command can't be checked, the list is incomplete and the
    outcome is not `run`."""
    languages: tuple[ScriptLanguage, ...] = ()
    """For each script, how it is run."""
