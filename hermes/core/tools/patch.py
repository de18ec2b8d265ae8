"""The tool that replaces text in a file of the workspace."""

from pathlib import PurePosixPath
from typing import Annotated

import anyio.to_thread
import msgspec

from hermes.core.context_files import prepare_write
from hermes.text.changes import Replacement, apply_replacements, diff, find_replacements
from hermes.text.secret_files import is_secret_file
from hermes.types.errors import ToolFailed
from hermes.types.tools import Tool, ToolContext

MOST_PLACES = 10
"""Maximum number of line numbers that an error message lists."""


class Patch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    path: str
    old: Annotated[str, msgspec.Meta(description="Exact text, with enough lines to be unique.")]
    new: str
    all: Annotated[bool, msgspec.Meta(description="Replace it everywhere.")] = False


async def _patch(context: ToolContext, arguments: Patch) -> str:
    path = arguments.path
    await prepare_write(path, context.turn)
    if not arguments.old:
        raise ToolFailed("`old` is empty: give the text to replace, or use write_file.")
    data = await context.sandbox.read(path)
    before = _text(data, path)
    after, told = await anyio.to_thread.run_sync(patched, before, arguments)
    await context.sandbox.write(path, after.encode(), expected=data)
    await context.show_change(path, before, after)
    return told


def patched(before: str, wanted: Patch) -> tuple[str, str]:
    """Returns the text after the change, and a description of the change for the model."""
    path = wanted.path
    found = find_replacements(before, wanted.old, wanted.new)
    _check(before, found, wanted)
    after = apply_replacements(before, found)
    if after == before:
        raise ToolFailed(
            f"The call changes nothing in {path!r}, because `old` and `new` are the same:"
            " give a different `new`."
        )
    times = "once" if len(found) == 1 else f"{len(found)} times, at lines {_lines(before, found)},"
    how = "" if found[0].exact else ", at lines that differ from `old` in their spaces"
    # No diff of a secret file is returned, because it would show the model the lines around the
    # change.
    changes = "" if is_secret_file(str(PurePosixPath(path))) else f"\n{diff(before, after)}"
    return after, f"Replaced {times} in {path!r}{how}.{changes}"


def _text(data: bytes, path: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ToolFailed(f"{path!r} is not UTF-8 text, and was left as it is.") from error
    if "\0" in text:
        raise ToolFailed(f"{path!r} is not a text file, and was left as it is.")
    return text


def _check(text: str, found: list[Replacement], wanted: Patch) -> None:
    if not found:
        raise ToolFailed(
            f"`old` is not in {wanted.path!r}: read the file again, and copy the text exactly."
        )
    if len(found) > 1 and not wanted.all:
        raise ToolFailed(
            f"`old` is in {wanted.path!r} {len(found)} times, at lines {_lines(text, found)}:"
            " give more of the text around it, or set `all`."
        )


def _lines(text: str, found: list[Replacement]) -> str:
    numbers = [str(text.count("\n", 0, spot.start) + 1) for spot in found[:MOST_PLACES]]
    return ", ".join([*numbers, "…"] if len(found) > MOST_PLACES else numbers)


patch = Tool(
    name="patch",
    description="Replace text in a file of the workspace. Shows what changed.",
    arguments=Patch,
    handler=_patch,
    # The tool is not repeatable. If `new` contains `old`, a repeated call would replace the text a
    # second time.
    toolset="files",
    risk="medium",
)
