"""A session that uses files is bound to the folder of the process that runs it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.placement import Placement
from hermes.state.folder_ids import FOLDER_ID
from hermes.testing.platforms import ChatServer, PlainAdapter, Update, to_event
from hermes.testing.rows import turn_row
from hermes.testing.running import QUIET, rows, running, until
from hermes.testing.scripted import Answer, ScriptedModel, calls, says
from hermes.testing.tools import Slow, append
from hermes.types.identity import AgentId, FolderId
from hermes.types.messages import Attachment, Said
from hermes.types.profile import AgentProfile
from hermes.types.tools import Tool, ToolContext

HERE, THERE = FolderId("here"), FolderId("there")


async def _look(context: ToolContext, arguments: Slow) -> str:
    return "x" * int(arguments.seconds)


look = Tool(name="look", description="Look.", arguments=Slow, handler=_look, uses_files=False)
CONDITIONS = replace(QUIET, tools=(append, look))


def test_only_a_process_whose_store_has_several_folders_checks_them() -> None:
    checked = Placement(folder=HERE, checked=True)
    assert [checked.has(folder) for folder in (None, HERE, THERE)] == [True, True, False]
    assert checked.limit == HERE
    alone = Placement(folder=HERE)
    assert [alone.has(folder) for folder in (None, HERE, THERE)] == [True, True, True]
    assert alone.limit is None


def test_a_turn_that_has_used_no_files_gets_the_workspace_of_this_node(tmp_path: Path) -> None:
    profile = AgentProfile(id=AgentId("main"), workspace="/own")
    begun = replace(turn_row("t"), workspace=str(tmp_path))
    checked = Placement(folder=HERE, checked=True)
    assert checked.profile_of(begun, profile) is profile
    for placement, row in (
        (checked, replace(begun, folder=HERE)),
        (replace(checked, terminal=True), begun),
        (Placement(folder=HERE), begun),
    ):
        assert placement.profile_of(row, profile).workspace == str(tmp_path)
    gone = replace(begun, folder=HERE, workspace=str(tmp_path / "gone"))
    assert checked.profile_of(gone, profile) is profile


@pytest.mark.parametrize(
    ("first", "bound"),
    [
        (calls(("append", {"token": "x"})), True),
        (calls(("look", {"seconds": 5})), False),
        (calls(("look", {"seconds": 30_000})), True),
        (calls(("unknown", {})), False),
    ],
    ids=["a tool that uses files", "one that uses none", "a long result", "no tool"],
)
async def test_a_session_is_bound_when_a_tool_uses_files(
    tmp_path: Path, first: Answer, bound: bool
) -> None:
    server, model = ChatServer(), ScriptedModel([first, says("done"), says("again")])
    async with running(tmp_path, [PlainAdapter(server)], model, CONDITIONS) as gateway:
        server.says("go")
        await until(lambda: server.texts() == ["done"])
        id = (tmp_path / FOLDER_ID).read_text().strip() if bound else None
        assert await rows(gateway._store, "select folder from sessions") == [(id,)]
        server.says("and then")
        await until(lambda: len(server.texts()) == 2)
        assert await rows(gateway._store, "select folder from turns") == [(id,), (id,)]


async def test_a_session_is_bound_when_it_gets_an_attachment(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([says("seen")])
    picture = Attachment(kind="image", path="sessions/" + "0" * 64, media_type="image/png")
    event = to_event(Update(id=1, chat="2", user="8", text="look"), "plain")
    async with running(tmp_path, [PlainAdapter(server)], model, CONDITIONS) as gateway:
        await gateway.accept(replace(event, body=Said(text="look", attachments=(picture,))))
        await until(lambda: server.texts("2") == ["seen"])
        id = (tmp_path / FOLDER_ID).read_text().strip()
        assert await rows(gateway._store, "select folder from sessions") == [(id,)]
        assert await rows(gateway._store, "select folder from turns") == [(id,)]


@pytest.mark.sqlite
async def test_on_sqlite_a_session_runs_although_the_home_has_got_another_id(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    write = calls(("append", {"token": "x"}))
    for number in range(2):
        model = ScriptedModel([write, says(f"done {number}")])
        async with running(tmp_path, [PlainAdapter(server)], model, CONDITIONS) as gateway:
            server.says("go")
            await until(lambda number=number: f"done {number}" in server.texts())  # type: ignore[misc]
            id = (tmp_path / FOLDER_ID).read_text().strip()
            assert await rows(gateway._store, "select folder from sessions") == [(id,)]
        (tmp_path / FOLDER_ID).unlink()
