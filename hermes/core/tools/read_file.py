"""The tool that reads a file in pages: a file of the workspace, or a long tool result that was
stored in a file (spilled)."""

from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import Annotated

import anyio.to_thread
import msgspec

from hermes.core.tools.results import LONGEST_RESULT
from hermes.state.spill import PREFIX, Spill
from hermes.text.quantity import counted
from hermes.text.secret_files import NOTE, is_secret_file, masked_values
from hermes.types.errors import ToolFailed
from hermes.types.tools import Tool, ToolContext

PAGE_LINES = 2000
PAGE_WIDTH = 2000
"""Maximum number of characters of a line. The rest of a longer line is not shown."""
PAGE_SIZE = LONGEST_RESULT - 200
"""Maximum number of characters of a page. It is a little less than the maximum for a result,
because a note about the next page is added."""
BINARY_CHECK = 8192
"""Number of bytes at the beginning of a file that are searched for a NUL byte. A file with a NUL
byte is binary."""


class ReadFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: str
    offset: Annotated[int, msgspec.Meta(description="First line, from 1.")] = 1
    limit: Annotated[int, msgspec.Meta(description="Most lines.")] = PAGE_LINES


def read_file_tool(spill: Spill) -> Tool[ReadFile]:
    async def run(context: ToolContext, arguments: ReadFile) -> str:
        path, session = arguments.path, str(context.turn.session)
        offset, limit = arguments.offset, arguments.limit

        def safe(line: str) -> str:
            # A long line is redacted here, because it is cut afterwards and a cut may split a
            # secret. Other lines are redacted later, with the whole result.
            return line if len(line) <= PAGE_WIDTH else context.redact(line)

        if path.startswith(PREFIX):
            text = await anyio.to_thread.run_sync(spill.read, session, path)
            return await anyio.to_thread.run_sync(page, text, offset, limit)
        text = _text(await context.sandbox.read(path), path)
        if not is_secret_file(str(PurePosixPath(path))):
            if len(text) <= LONGEST_RESULT:
                return page(text, offset, limit, safe)
            return await anyio.to_thread.run_sync(page, text, offset, limit, safe)
        shown = await anyio.to_thread.run_sync(page, text, offset, limit, masked_values)
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


def _text(data: bytes, path: str) -> str:
    if b"\0" in data[:BINARY_CHECK]:
        raise ToolFailed(f"{path!r} is not a text file.")
    return data.decode("utf-8", errors="replace")


def page(text: str, offset: int, limit: int, show: Callable[[str], str] = str) -> str:
    """Returns the lines from number `offset` on: at most `limit` lines, and only as many as fit
    into a page. A note says how to read on. Each line is passed through `show`."""
    if not text:
        return "[the file is empty]"
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    first = max(offset, 1)
    chosen = _fitting(map(show, lines[first - 1 : first - 1 + max(limit, 1)]))
    if not chosen:
        return f"[the file has only {counted(len(lines), 'line')}]"
    shown = "\n".join(chosen)
    last = first - 1 + len(chosen)
    if last < len(lines):
        shown += f"\n\n[lines {first}-{last} of {len(lines)}; go on with offset {last + 1}]"
    return shown


def _fitting(lines: Iterable[str]) -> list[str]:
    room, chosen = PAGE_SIZE, []
    for line in lines:
        shown = line if len(line) <= PAGE_WIDTH else line[:PAGE_WIDTH] + "…"
        room -= len(shown) + 1
        if room < 0:
            break
        chosen.append(shown)
    return chosen
