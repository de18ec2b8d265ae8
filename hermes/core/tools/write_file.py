"""The tool that writes a file of the workspace."""

import msgspec

from hermes.core.context_files import prepare_write
from hermes.types.errors import ToolFailed
from hermes.types.tools import Tool, ToolContext


class WriteFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: str
    content: str


async def _write_file(context: ToolContext, arguments: WriteFile) -> str:
    path, content = arguments.path, arguments.content
    try:
        data = content.encode()
    except UnicodeEncodeError as error:
        raise ToolFailed(f"The text for {path!r} is not valid Unicode: {error}.") from error
    await prepare_write(path, context.turn)
    new = await context.sandbox.write(path, data)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    return f"{'Created' if new else 'Replaced'} {path!r}: {lines} lines, {len(data)} bytes."


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
