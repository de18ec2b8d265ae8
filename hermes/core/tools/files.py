"""Files of the workspace, for the agent."""

import msgspec

from hermes.boundary.workspace import Workspace
from hermes.types.tools import Tool, ToolContext

LINES = 2000
WIDTH = 2000


class ReadFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: str
    """Relative to the workspace."""
    offset: int = 1
    """First line to read, from 1."""
    limit: int = LINES
    """Lines to read at the most."""


async def _read_file(context: ToolContext, arguments: msgspec.Struct) -> str:
    assert isinstance(arguments, ReadFile)
    text = await Workspace(context.workspace).read_text(arguments.path)
    lines = text.splitlines()
    first = max(arguments.offset, 1)
    chosen = lines[first - 1 : first - 1 + max(arguments.limit, 1)]
    shown = "\n".join(line if len(line) <= WIDTH else line[:WIDTH] + "…" for line in chosen)
    last = first - 1 + len(chosen)
    if last < len(lines):
        shown += f"\n\n[lines {first}-{last} of {len(lines)}; go on with offset {last + 1}]"
    if not lines:
        return "[the file is empty]"
    return shown if chosen else f"[the file has only {len(lines)} lines]"


read_file = Tool(
    name="read_file",
    description="Read a text file of the workspace.",
    arguments=ReadFile,
    handler=_read_file,
    read_only=True,
    repeatable=True,
)
