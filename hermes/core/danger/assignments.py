"""Judges assignments to variables that make programs run commands or load code, such as `PAGER`."""

import re
from collections.abc import Sequence

from hermes.core.danger.holes import is_known
from hermes.core.danger.invocation import Evaluating
from hermes.core.danger.options import names
from hermes.core.danger.paths import classify
from hermes.core.danger.scope import ShellScope

_INJECTING = names(
    """BASH_ENV ENV LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES PYTHONSTARTUP PYTHONHOME PERL5OPT
    PERL5DB RUBYOPT GIT_EXEC_PATH GIT_TEMPLATE_DIR JAVA_TOOL_OPTIONS _JAVA_OPTIONS"""
)
"""Variables that make programs load code."""
_COMMANDS = names(
    """PROMPT_COMMAND GIT_SSH_COMMAND GIT_SSH GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER
    GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS SUDO_EDITOR PAGER MANPAGER
    SYSTEMD_PAGER EDITOR VISUAL BROWSER LESSOPEN LESSCLOSE FCEDIT PS4 RSYNC_RSH CVS_RSH"""
)
"""Variables whose value is a command."""
_LIBRARIES = names("LD_LIBRARY_PATH PERL5LIB RUBYLIB PYTHONPATH")
"""Variables that list the folders from which programs load libraries."""


def judge_assignment(
    name: str, values: Sequence[str], scope: ShellScope, shell: Evaluating
) -> None:
    """Judges a variable that the command sets: by an assignment, by a builtin such as `export`, or
    for one program, as in `NAME=value program`."""
    value = values[0] if values else ""
    if name in _COMMANDS and value:
        shell.run_text(value.lstrip("|"), scope.inner(), None)
    elif name in _LIBRARIES:
        if classify(value.partition(":")[0]) == "temporary":
            shell.findings.add(f"makes programs load code through {name}", effect="machine")
    elif name in _INJECTING and value:
        shell.findings.add(f"makes programs load code through {name}", effect="machine")
    elif name == "NODE_OPTIONS" and re.search(r"-r\b|--(require|import|loader)", value):
        shell.findings.add("makes programs load code through NODE_OPTIONS", effect="machine")
    elif (name == "HISTFILE" and value in ("", "/dev/null")) or (
        name in ("HISTSIZE", "HISTFILESIZE") and value == "0"
    ):
        shell.findings.add("switches the history of the shell off", effect="machine")
    elif name == "PATH" and is_known(value[:1]):
        first = value.partition(":")[0]
        if first == "." or classify(first) == "temporary":
            shell.findings.add(f"makes the shell look for programs in {first}", effect="machine")
