"""Writes a file of the workspace."""

import msgspec

from hermes.boundary.workspace import Workspace
from hermes.core.context_files import check_writable
from hermes.types.tools import Tool, ToolContext


class WriteFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: str
    content: str


async def _write_file(context: ToolContext, arguments: msgspec.Struct) -> str:
    assert isinstance(arguments, WriteFile)
    path, content = arguments.path, arguments.content
    check_writable(path, context.turn)
    new = await Workspace.of(context.turn.profile).write_text(path, content)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    size = f"{lines} lines, {len(content.encode())} bytes"
    return f"{'Created' if new else 'Replaced'} {path!r}: {size}."


write_file = Tool(
    name="write_file",
    description="Write a whole text file in the workspace, new or instead of the old one. Makes"
    " the folders it needs. Use patch to change a part.",
    arguments=WriteFile,
    handler=_write_file,
    repeatable=True,
    toolset="files",
    risk="medium",
)
