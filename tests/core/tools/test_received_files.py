"""The files of a request are copied into the workspace."""

from collections.abc import AsyncIterator

import pytest

from hermes.core.tools.call import scope_of
from hermes.core.tools.received_files import save_files
from hermes.testing.memory_sandbox import MemoryBackend, MemoryMachine
from hermes.testing.turns import a_turn
from hermes.types.execution import Sandbox
from hermes.types.messages import AssistantMessage, Attachment, UserMessage

CONTENT = {"one": b"first", "two": b"second"}


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with MemoryMachine() as machine:
        yield await MemoryBackend(machine).open(scope_of(a_turn()))


def said(path: str, saved: str) -> UserMessage:
    return UserMessage(text="", attachments=(Attachment(kind="file", path=path, saved=saved),))


async def test_the_files_of_the_last_request_are_saved(sandbox: Sandbox) -> None:
    history = (said("one", "inbox/a"), AssistantMessage(text="ok"), said("two", "inbox/b"))
    assert await save_files(history, sandbox, CONTENT.get)
    assert await sandbox.read("inbox/b") == b"second"
    assert await sandbox.stat("inbox/a") is None


async def test_a_file_that_exists_is_not_written_again(sandbox: Sandbox) -> None:
    await sandbox.write("inbox/a", b"changed")
    assert await save_files([said("one", "inbox/a")], sandbox, CONTENT.get)
    assert await sandbox.read("inbox/a") == b"changed"


async def test_without_files_nothing_is_saved(sandbox: Sandbox) -> None:
    assert not await save_files([said("one", "")], sandbox, CONTENT.get)
    assert not await save_files([], sandbox, CONTENT.get)


async def test_a_file_that_can_not_be_saved_does_not_stop_the_turn(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    await sandbox.write("inbox", b"a file where the folder should be")
    assert await save_files([said("one", "inbox/a")], sandbox, CONTENT.get)
    assert "inbox/a was not saved" in caplog.text


async def test_a_file_that_is_no_longer_stored_is_left_out(sandbox: Sandbox) -> None:
    assert await save_files([said("gone", "inbox/a")], sandbox, CONTENT.get)
    assert await sandbox.stat("inbox/a") is None
