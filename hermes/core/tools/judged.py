"""Judges shell commands without blocking the event loop."""

import anyio.to_thread

from hermes.core.danger.detector import judge
from hermes.types.danger import Verdict

_END = "HERMES_END_OF_INPUT"
JUDGED_AT_ONCE = 4000
"""Maximum number of characters of a command that is judged in the event loop. For such a command,
judging takes less time than passing the command to a thread."""


async def judged(command: str) -> Verdict:
    """Returns the verdict on a shell command."""
    if len(command) <= JUDGED_AT_ONCE:
        return judge(command)
    return await anyio.to_thread.run_sync(judge, command)


def with_input(command: str, text: str) -> str:
    """Returns a shell command that runs `command` with `text` as the input."""
    end = _END
    while end in text:
        end += "_"
    return f"{{\n{command}\n}} <<'{end}'\n{text}\n{end}\n"
