"""/approve, /deny and /approvals name an approval by the end of its id. They need no id if only one
approval is open in the conversation."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.testing.approvals import DANGEROUS, make_folders, runs
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, running, until
from hermes.testing.scripted import ScriptedModel, says


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ChatServer]:
    """A chat in which the agent waits for the approval of two commands."""
    server = ChatServer()
    make_folders(tmp_path / "workspace", "a", "b")
    model = ScriptedModel([runs("rm -rf a", "rm -rf b"), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], model, DANGEROUS) as gateway:
        server.says("clean up")
        await until(server.texts)
        await until(lambda: not gateway.busy)
        yield server


async def replied(server: ChatServer, text: str) -> str:
    """Sends a message, and returns the next message of the gateway."""
    before = len(server.texts())
    server.says(text)
    await until(lambda: len(server.texts()) > before)
    return server.texts()[before]


async def ids(server: ChatServer) -> list[str]:
    lines = (await replied(server, "/approvals")).splitlines()[1:]
    return [line.split()[1] for line in lines]


async def test_open_approvals_are_listed_with_their_ids(server: ChatServer) -> None:
    listed = (await replied(server, "/approvals")).splitlines()
    assert listed[0] == "These actions wait for your decision:"
    first, second = await ids(server)
    assert listed[1:] == [
        f"/approve {first} or /deny {first}: rm -rf a",
        f"/approve {second} or /deny {second}: rm -rf b",
    ]


async def test_a_group_does_not_see_what_waits_in_a_private_chat(server: ChatServer) -> None:
    server.says("/approvals", chat="2", kind="group")
    await until(lambda: server.texts("2"))
    assert server.texts("2") == ["Nothing waits for your approval."]


async def test_an_id_is_needed_if_several_wait(server: ChatServer) -> None:
    for command in ("/approve", "/approve session", "/deny", "/deny because"):
        told = await replied(server, command)
        assert told.startswith("Several actions wait for your decision. Name one by its id:")


@pytest.mark.parametrize("id", ["000", "fffffff", "123456789"])
async def test_an_id_that_names_nothing_decides_nothing(server: ChatServer, id: str) -> None:
    told = await replied(server, f"/approve {id}")
    assert told == f"No action with the id {id!r} waits for your decision. /approvals lists them."
    assert len(await ids(server)) == 2


async def test_the_end_of_an_id_is_enough(tmp_path: Path, server: ChatServer) -> None:
    first, second = await ids(server)
    assert await replied(server, f"/deny {second[-5:]} keep it") == "Noted. Still open: rm -rf a"
    assert await ids(server) == [first]
    server.says("/approve once")
    await until(lambda: "done" in server.texts())
    assert not (tmp_path / "workspace" / "a").exists()
    assert (tmp_path / "workspace" / "b").exists()


async def test_without_approvals_the_commands_say_so(tmp_path: Path) -> None:
    server = ChatServer()
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([]), QUIET):
        assert await replied(server, "/approve") == "Nothing here waits for your approval."
        assert await replied(server, "/deny") == "Nothing here waits for your approval."
        assert await replied(server, "/approvals") == "Nothing waits for your approval."
