"""Searches the files of the workspace."""

import os
import re
from typing import Annotated

import anyio.to_thread
import msgspec

from hermes.boundary.scan import Query
from hermes.boundary.search import Found, search
from hermes.boundary.workspace import Workspace
from hermes.state.spill import PREFIX, Spill
from hermes.text.secret_files import is_secretive, veiled
from hermes.types.tools import Tool, ToolContext

SECONDS = 10.0
MOST = 1000
"""Results of one search."""
_LINE = re.compile(r":\d+: ")
"""Between the path and the text of a hit."""


class SearchFiles(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pattern: Annotated[
        str, msgspec.Meta(description="Regular expression, per line.", max_length=1000)
    ]
    path: Annotated[str, msgspec.Meta(description="Folder, file or `spill:` name.")] = "."
    files: Annotated[bool, msgspec.Meta(description="Match paths instead of contents.")] = False
    glob: Annotated[str, msgspec.Meta(description="Only such files: *.py", max_length=1000)] = ""
    limit: int = 100


def search_files_tool(spill: Spill, seconds: float = SECONDS) -> Tool:
    async def run(context: ToolContext, arguments: msgspec.Struct) -> str:
        assert isinstance(arguments, SearchFiles)
        workspace = Workspace.of(context.turn.profile)
        session = str(context.turn.session)
        place, path = await anyio.to_thread.run_sync(
            _place, spill, session, workspace, arguments.path
        )
        query = Query(
            pattern=arguments.pattern,
            path=path,
            names=arguments.files,
            glob=arguments.glob,
            limit=min(max(arguments.limit, 1), MOST),
            seconds=seconds,
            left_out=workspace.home(),
        )
        try:
            return _shown(await search(place, query))
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


def _place(spill: Spill, session: str, workspace: Workspace, path: str) -> tuple[int, str]:
    """What is searched, open, and how it is called."""
    if path.startswith(PREFIX):
        return spill.open(session, path), path
    return workspace.open(path), "/".join(workspace.parts(path))


def _shown(found: Found) -> str:
    remarks = [f"[{remark}]" for remark in found.remarks]
    return "\n".join([*map(_safe, found.hits), *remarks]) or "Nothing matches."


def _safe(hit: str) -> str:
    """Without the values of a file that holds secrets. In doubt of where a path ends: any end."""
    for place in _LINE.finditer(hit):
        if is_secretive(hit[: place.start()]):
            return hit[: place.end()] + veiled(hit[place.end() :])
    return hit
