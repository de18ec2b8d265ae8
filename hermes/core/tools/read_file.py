"""Reads a file of the workspace, or a result that was too long, page by page."""

from collections.abc import Callable, Iterable
from typing import Annotated

import anyio.to_thread
import msgspec

from hermes.boundary.workspace import Workspace
from hermes.core.tools.results import LONGEST
from hermes.state.spill import PREFIX, Spill
from hermes.text.secret_files import NOTE, is_secretive, veiled
from hermes.types.tools import Tool, ToolContext

LINES = 2000
WIDTH = 2000
PAGE = LONGEST - 200
"""Characters: with the note on how to go on it is not too long itself."""


class ReadFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: str
    offset: Annotated[int, msgspec.Meta(description="First line, from 1.")] = 1
    limit: Annotated[int, msgspec.Meta(description="Most lines.")] = LINES


def read_file_tool(spill: Spill) -> Tool:
    async def run(context: ToolContext, arguments: msgspec.Struct) -> str:
        assert isinstance(arguments, ReadFile)
        path, session = arguments.path, str(context.turn.session)
        offset, limit = arguments.offset, arguments.limit

        def safe(line: str) -> str:
            # It will be cut; what is shown whole is looked at later, with the rest.
            return line if len(line) <= WIDTH else context.hide(line)

        if path.startswith(PREFIX):
            text = await anyio.to_thread.run_sync(spill.read, session, path)
            return await anyio.to_thread.run_sync(page, text, offset, limit)
        workspace = Workspace.of(context.turn.profile)
        text = await workspace.read_text(path)
        if not is_secretive("/".join(workspace.parts(path))):
            if len(text) <= LONGEST:
                return page(text, offset, limit, safe)
            return await anyio.to_thread.run_sync(page, text, offset, limit, safe)
        shown = await anyio.to_thread.run_sync(page, text, offset, limit, veiled)
        return f"{shown}\n\n{NOTE}"

    return Tool(
        name="read_file",
        description="Read a text file of the workspace, or a long result by its `spill:` name.",
        arguments=ReadFile,
        handler=run,
        read_only=True,
        repeatable=True,
        toolset="files",
    )


def page(text: str, offset: int, limit: int, show: Callable[[str], str] = str) -> str:
    """The lines from the offset on, each as `show` has it, as many as fit, and how to go on."""
    if not text:
        return "[the file is empty]"
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    first = max(offset, 1)
    chosen = _fitting(map(show, lines[first - 1 : first - 1 + max(limit, 1)]))
    if not chosen:
        return f"[the file has only {len(lines)} lines]"
    shown = "\n".join(chosen)
    last = first - 1 + len(chosen)
    if last < len(lines):
        shown += f"\n\n[lines {first}-{last} of {len(lines)}; go on with offset {last + 1}]"
    return shown


def _fitting(lines: Iterable[str]) -> list[str]:
    room, chosen = PAGE, []
    for line in lines:
        shown = line if len(line) <= WIDTH else line[:WIDTH] + "…"
        room -= len(shown) + 1
        if room < 0:
            break
        chosen.append(shown)
    return chosen
