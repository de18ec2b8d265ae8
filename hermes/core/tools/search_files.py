"""The tool that searches the files of the workspace."""

import os
from collections.abc import Awaitable, Callable
from typing import Annotated

import anyio.to_thread
import msgspec

from hermes.state.spill import PREFIX, Spill
from hermes.text.secret_files import is_secret_file, masked_values
from hermes.types.execution import SearchHit, SearchQuery, SearchResult
from hermes.types.tools import Tool, ToolContext

SEARCH_SECONDS = 10.0
MOST_HITS = 1000

SearchFile = Callable[[int, SearchQuery], Awaitable[SearchResult]]
"""Searches an open file of this machine. The first argument is the file's descriptor."""


class SearchFiles(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pattern: Annotated[
        str, msgspec.Meta(description="Regular expression, per line.", max_length=1000)
    ]
    path: Annotated[str, msgspec.Meta(description="Folder, file or `spill:` name.")] = "."
    files: Annotated[bool, msgspec.Meta(description="Match paths instead of contents.")] = False
    glob: Annotated[str, msgspec.Meta(description="Only such files: *.py", max_length=1000)] = ""
    limit: int = 100


def search_files_tool(
    spill: Spill, search_file: SearchFile, seconds: float = SEARCH_SECONDS
) -> Tool[SearchFiles]:
    async def run(context: ToolContext, arguments: SearchFiles) -> str:
        query = SearchQuery(
            pattern=arguments.pattern,
            path=arguments.path,
            names=arguments.files,
            glob=arguments.glob,
            limit=min(max(arguments.limit, 1), MOST_HITS),
            seconds=seconds,
        )
        if not query.path.startswith(PREFIX):
            return _shown(await context.sandbox.search(query))
        session = str(context.turn.session)
        place = await anyio.to_thread.run_sync(spill.open, session, query.path)
        try:
            return _shown(await search_file(place, query))
        finally:
            os.close(place)

    return Tool(
        name="search_files",
        description="Search the files of the workspace: `path:line: text` for each line that"
        " matches. Skips .git and the like.",
        arguments=SearchFiles,
        handler=run,
        read_only=True,
        repeatable=True,
        toolset="files",
    )


def _shown(found: SearchResult) -> str:
    remarks = [f"[{remark}]" for remark in found.remarks]
    return "\n".join([*map(_line, found.hits), *remarks]) or "Nothing matches."


def _line(hit: SearchHit) -> str:
    """Formats a hit for the model. Values in secret files are masked."""
    if not hit.line:
        return hit.path
    text = masked_values(hit.text) if is_secret_file(hit.path) else hit.text
    return f"{hit.path}:{hit.line}: {text}"
