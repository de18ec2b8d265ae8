"""The tool `todo` keeps a list of tasks for each conversation."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.core.tools.todo import MOST_TASKS, Item, delete_todos, merged, todo_tool
from hermes.testing.turns import GROUP, a_turn, use
from hermes.types.errors import ToolFailed

FIRST = [
    {"id": "1", "text": "look", "status": "done"},
    {"id": "2", "text": "write\nit", "status": "doing"},
    {"id": "3", "text": "test"},
]
LIST = "[x] 1: look\n[>] 2: write it\n[ ] 3: test\n1 of 3 done"


async def todo(folder: Path, **arguments: object) -> str:
    return await use(todo_tool(folder), a_turn(), arguments)


async def test_a_list_is_kept_for_the_conversation(tmp_path: Path) -> None:
    folder = tmp_path / "todos"
    assert await todo(folder) == "The list is empty."
    assert await todo(folder, todos=FIRST) == LIST
    assert await todo(folder) == LIST
    assert await use(todo_tool(folder), a_turn(source=GROUP), {}) == "The list is empty."
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


async def test_tasks_are_changed_and_added_by_id(tmp_path: Path) -> None:
    await todo(tmp_path, todos=FIRST)
    changes = [{"id": "3", "status": "dropped"}, {"id": "4", "text": "tell"}]
    for _ in range(2):
        assert await todo(tmp_path, todos=changes, merge=True) == (
            "[x] 1: look\n[>] 2: write it\n[-] 3: test\n[ ] 4: tell\n1 of 4 done"
        )


async def test_a_new_list_replaces_the_old_one(tmp_path: Path) -> None:
    await todo(tmp_path, todos=FIRST)
    assert await todo(tmp_path, todos=[{"id": "a", "text": "b"}]) == "[ ] a: b\n0 of 1 done"
    assert await todo(tmp_path, todos=[]) == "The list is empty."


@pytest.mark.parametrize(
    ("todos", "why"),
    [
        ([{"id": "9", "status": "done"}], "no text: 9"),
        ([{"id": "1", "text": "a"}, {"id": "1", "text": "b"}], "the same id"),
        ([{"id": str(n), "text": "x"} for n in range(MOST_TASKS + 1)], "too many"),
    ],
)
async def test_an_invalid_list_is_refused_and_nothing_changes(
    tmp_path: Path, todos: list[dict[str, str]], why: str
) -> None:
    await todo(tmp_path, todos=FIRST)
    for merge in (True, False):
        with pytest.raises(ToolFailed, match=why):
            await todo(tmp_path, todos=todos, merge=merge)
    assert await todo(tmp_path) == LIST


async def test_a_damaged_file_can_be_replaced(tmp_path: Path) -> None:
    await todo(tmp_path, todos=FIRST)
    (path,) = tmp_path.iterdir()
    path.write_text('[{"id": 1}]')
    with pytest.raises(ToolFailed, match="write a complete new list"):
        await todo(tmp_path)
    assert await todo(tmp_path, todos=FIRST) == LIST


async def test_a_list_that_can_not_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "todos").write_text("in the way")
    with pytest.raises(ToolFailed, match="can't be stored"):
        await todo(tmp_path / "todos", todos=FIRST)


items = st.lists(
    st.builds(Item, id=st.sampled_from("abc"), text=st.text(min_size=1, max_size=3)),
    unique_by=lambda item: item.id,
)


@given(items, items)
def test_a_repeated_merge_changes_nothing(old: list[Item], new: list[Item]) -> None:
    once = merged(old, new)
    assert merged(once, new) == once
    assert {item.id for item in once} == {item.id for item in (*old, *new)}
    assert all(item in once for item in new)


async def test_a_list_is_deleted_with_its_conversation_but_a_later_list_is_kept(
    tmp_path: Path,
) -> None:
    session = str(a_turn().session)
    await todo(tmp_path, todos=FIRST)
    delete_todos(tmp_path, session, before=time.time() - 60)
    assert await todo(tmp_path) == LIST
    delete_todos(tmp_path, session, before=time.time() + 60)
    assert await todo(tmp_path) == "The list is empty."
    delete_todos(tmp_path, session, before=time.time() + 60)


async def test_the_list_of_a_stateless_request_is_not_stored(tmp_path: Path) -> None:
    turn = replace(a_turn(), stateless=True)
    assert await use(todo_tool(tmp_path), turn, {"todos": FIRST}) == LIST
    assert await use(todo_tool(tmp_path), turn, {}) == "The list is empty."
    assert list(tmp_path.iterdir()) == []
