"""Tests the program that works on files of another machine. In the tests, the program is a child
process on this machine."""

import json
import sys
from pathlib import Path

import anyio
import pytest

from hermes.boundary.execution.file_program import LOADER
from hermes.boundary.execution.ssh_file_server import FileServers, ServerAnswer, ServerLost
from hermes.testing.commands import new_children

LINE = (sys.executable, "-I", "-S", "-c", LOADER)


def listed(root: Path) -> bytes:
    fields = {"operation": "list", "root": str(root), "shown": "/w", "path": ".", "length": 0}
    return json.dumps(fields).encode() + b"\n"


async def test_one_program_answers_many_requests(tmp_path: Path) -> None:
    servers = FileServers()
    for _ in range(3):
        answer = await servers.call(LINE, {}, listed(tmp_path))
        assert answer.fields["result"] == []
    assert len(new_children()) == 1
    await servers.aclose()
    assert new_children() == []


async def test_requests_at_the_same_time_have_programs_of_their_own(tmp_path: Path) -> None:
    servers = FileServers()
    answers: list[ServerAnswer] = []

    async def call() -> None:
        answers.append(await servers.call(LINE, {}, listed(tmp_path)))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(call)
    assert [one.fields["result"] for one in answers] == [[], [], []]
    await servers.aclose()


async def test_a_program_that_ends_is_reported() -> None:
    line = ("/bin/sh", "-c", "echo no such machine >&2; exit 255")
    with pytest.raises(ServerLost, match="no such machine"):
        await FileServers().call(line, {}, b"{}\n")
    assert new_children() == []
