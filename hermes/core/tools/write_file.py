"""The tool that writes a file of the workspace."""

import hashlib

import msgspec

from hermes.core.context_files import prepare_write
from hermes.text.quantity import counted
from hermes.types.approvals import ProposedAction
from hermes.types.errors import ToolFailed
from hermes.types.execution import Sandbox
from hermes.types.tools import Tool, ToolContext

COMPARED_BYTES = 200_000
"""Maximum size in bytes of an old file that is compared with the new text, to show what has
changed."""


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
    before = await _old_text(context.sandbox, path)
    new = await context.sandbox.write(path, data)
    if new or before is not None:
        await context.show_change(path, before or "", content)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    size = f"{counted(lines, 'line')}, {counted(len(data), 'byte')}"
    return f"{'Created' if new else 'Replaced'} {path!r}: {size}."


async def review_write(context: ToolContext, arguments: WriteFile) -> ProposedAction | None:
    """Returns the action that a person must approve, if the call overwrites a file whose content
    the model does not know. Otherwise, returns None."""
    path = arguments.path
    data = arguments.content.encode(errors="surrogatepass")
    if context.knows_file(path) or await _destroys_nothing(context.sandbox, path, data):
        return None
    return ProposedAction(
        kind="overwrite a file",
        shown=path,
        reason="the agent has not read the file, so it may not know what is lost",
        contained=context.sandbox.private_files,
        facts=(hashlib.sha256(data).hexdigest(),),
        remarks=(f"The new content has {counted(len(arguments.content), 'character')}.",),
    )


async def _destroys_nothing(sandbox: Sandbox, path: str, data: bytes) -> bool:
    """Returns whether the write destroys no content: there is no file, the file is empty, or the
    file already has the new content, for example because a write is repeated after a crash."""
    try:
        info = await sandbox.stat(path)
        if info is None or info.kind != "file" or info.size == 0:
            return True
        return info.size == len(data) and await sandbox.read(path) == data
    except ToolFailed:
        # If the path is wrong, the write itself reports the error.
        return True


async def _old_text(sandbox: Sandbox, path: str) -> str | None:
    """Returns the text that will be replaced. Returns None if there is no old file, if it is too
    large, or if it is not a text file."""
    try:
        info = await sandbox.stat(path)
        if info is None or info.kind != "file" or info.size > COMPARED_BYTES:
            return None
        return (await sandbox.read(path)).decode()
    except (ToolFailed, UnicodeDecodeError):
        # If the path is wrong, the write itself reports the error later.
        return None


write_file = Tool(
    name="write_file",
    description="Write a whole text file in the workspace, new or instead of the old one. Makes"
    " the folders it needs. Use patch to change a part.",
    arguments=WriteFile,
    handler=_write_file,
    review=review_write,
    repeatable=True,
    toolset="files",
    risk="medium",
)
