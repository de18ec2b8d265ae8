"""The tool for the agent's list of tasks in a conversation."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import anyio.to_thread
import msgspec

from hermes.state.paths import file_name, write_private
from hermes.types.errors import ToolFailed
from hermes.types.tools import Tool, ToolContext

TaskStatus = Literal["pending", "doing", "done", "dropped"]
MARKS: dict[TaskStatus, str] = {"pending": "[ ]", "doing": "[>]", "done": "[x]", "dropped": "[-]"}
MOST_TASKS = 50
"""Maximum number of tasks in a list."""


class Item(msgspec.Struct, kw_only=True, frozen=True):
    id: str
    text: Annotated[str, msgspec.Meta(max_length=500)] = ""
    status: TaskStatus = "pending"


class Todo(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    todos: list[Item] | None = None
    merge: Annotated[
        bool, msgspec.Meta(description="Change and add by id, instead of a new list.")
    ] = False


def todo_tool(folder: Path) -> Tool[Todo]:
    async def run(context: ToolContext, arguments: Todo) -> str:
        turn = context.turn
        # The list of a stateless request is not stored, because no later turn could use it.
        path = None if turn.stateless else _path(folder, str(turn.session))
        return shown(await anyio.to_thread.run_sync(_kept, path, arguments))

    return Tool(
        name="todo",
        description="Your list of tasks in this conversation, for work of several steps. Without"
        " `todos` it shows the list. Have one task in `doing`, and mark it done at once.",
        arguments=Todo,
        handler=run,
        repeatable=True,
        toolset="todo",
    )


def delete_todos(folder: Path, session: str, *, before: float) -> None:
    """Deletes the session's list if it was last written before the time `before`."""
    path = _path(folder, session)
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_mtime < before:
            path.unlink()


def merged(old: Sequence[Item], new: Sequence[Item]) -> list[Item]:
    """Merges tasks by id. A change without a text keeps the old text, and new tasks come last."""
    tasks = {item.id: item for item in old}
    for item in new:
        known = tasks.get(item.id)
        text = item.text or (known.text if known else "")
        tasks[item.id] = msgspec.structs.replace(item, text=text)
    return list(tasks.values())


def shown(items: Sequence[Item]) -> str:
    if not items:
        return "The list is empty."
    done = sum(item.status == "done" for item in items)
    lines = [" ".join(f"{MARKS[item.status]} {item.id}: {item.text}".split()) for item in items]
    return "\n".join([*lines, f"{done} of {len(items)} done"])


def _path(folder: Path, session: str) -> Path:
    return folder / f"{file_name(session)}.json"


def _kept(path: Path | None, wanted: Todo) -> list[Item]:
    """Applies the change, if any, to the list in the file, and returns the list."""
    if wanted.todos is None:
        return _read(path)
    if len({item.id for item in wanted.todos}) < len(wanted.todos):
        raise ToolFailed("Two tasks have the same id. Nothing was changed.")
    items = merged(_read(path) if wanted.merge else [], wanted.todos)
    if nameless := [item.id for item in items if not item.text.strip()]:
        raise ToolFailed(f"These tasks have no text: {', '.join(nameless)}. Nothing was changed.")
    if len(items) > MOST_TASKS:
        raise ToolFailed(
            f"{len(items)} tasks are too many (at most {MOST_TASKS}): drop or merge some."
        )
    if path is not None:
        try:
            write_private(path, msgspec.json.encode(items).decode())
        except OSError as error:
            raise ToolFailed(f"The list can't be stored: {error}.") from error
    return items


def _read(path: Path | None) -> list[Item]:
    if path is None:
        return []
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Item])
    except FileNotFoundError:
        return []
    except msgspec.DecodeError as error:
        raise ToolFailed(f"The list can't be read ({error}): write a complete new list.") from error
