"""The contract of every execution backend, as a test class to inherit from.

class TestLocal(SandboxContract):
    @asynccontextmanager
    async def machine(self, folder: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        …

The commands use only features that every shell has: `echo cat cd exit ln mkdir pwd read sleep`,
`;`, `&&`, `>`.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.running import until
from hermes.testing.turns import GROUP, PRIVATE, a_turn
from hermes.types.errors import ClaimLost, ToolFailed
from hermes.types.execution import (
    LARGEST_FILE,
    CommandOutcome,
    ExecutionBackend,
    Sandbox,
    SandboxScope,
    SearchHit,
    SearchQuery,
)
from hermes.types.identity import Source

SLOW_PATTERN = "(a+)+$"
"""A pattern for which a search in the line `aaa…ab` practically never ends."""
WRONG_PATHS = ("..", "../f", "a/../../f", "/etc/passwd", "a\0b", "x/" * 3000)


class RecordedCommand:
    """An observer of a command, which records the calls that the sandbox makes to it."""

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        self.handles: list[str] = []
        self.lines: list[str] = []
        self.ran_too_early = False
        self._sandbox = sandbox

    async def started(self, handle: str) -> None:
        self.handles.append(handle)
        if self._sandbox:
            self.ran_too_early = await self._sandbox.stat("ran") is not None

    def progress(self, text: str) -> None:
        self.lines.append(text)


class LostCommand(RecordedCommand):
    """An observer that reports that another process has taken over the turn."""

    async def started(self, handle: str) -> None:
        raise ClaimLost("taken over")


async def run(sandbox: Sandbox, command: str, workdir: str = ".") -> CommandOutcome:
    return await sandbox.run(command, RecordedCommand(), workdir=workdir, seconds=30.0)


class SandboxContract:
    """File operations stay in the workspace, and commands can be ended. File operations and
    commands use the same files."""

    def machine(self, folder: Path) -> AbstractAsyncContextManager[Callable[[], ExecutionBackend]]:
        """Yields a function that creates backends of the same machine. Creating a second backend is
        like restarting the gateway."""
        raise NotImplementedError

    def workspace(self, folder: Path) -> str:
        """Returns the path of a new, empty workspace on the machine."""
        raise NotImplementedError

    def scope(self, folder: Path, source: Source = PRIVATE) -> SandboxScope:
        session = a_turn(source=source).session
        return SandboxScope(agent=DEFAULT_AGENT, session=session, workspace=self.workspace(folder))

    @pytest.fixture
    async def backend(self, tmp_path: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        async with self.machine(tmp_path) as make:
            yield make

    @pytest.fixture
    async def sandbox(self, tmp_path: Path, backend: Callable[[], ExecutionBackend]) -> Sandbox:
        return await backend().open(self.scope(tmp_path))

    async def test_a_file_is_read_as_it_was_written(self, sandbox: Sandbox) -> None:
        assert await sandbox.write("a/b/f", b"\0\xff\r\n") is True
        assert await sandbox.write("a/b/f", b"new") is False
        assert await sandbox.read("a/b/f") == b"new"

    async def test_several_spellings_of_a_path_name_the_same_file(
        self, tmp_path: Path, sandbox: Sandbox
    ) -> None:
        await sandbox.write("a/f", b"x")
        for path in ("./a//f", "a/./f", "a/f/.", f"{self.workspace(tmp_path)}/a/f"):
            assert await sandbox.read(path) == b"x"

    async def test_no_path_leads_outside(self, sandbox: Sandbox) -> None:
        await sandbox.write("a/f", b"x")
        # All paths are tried in the same sandbox, because a new sandbox for each path would be slow
        # on a remote machine.
        for path in WRONG_PATHS:
            with pytest.raises(ToolFailed):
                await sandbox.read(path)
            with pytest.raises(ToolFailed):
                await sandbox.write(path, b"x")
            with pytest.raises(ToolFailed):
                await sandbox.list(path)
            with pytest.raises(ToolFailed):
                await sandbox.stat(path)
            with pytest.raises(ToolFailed):
                await sandbox.remove(path)
            with pytest.raises(ToolFailed):
                await sandbox.search(SearchQuery(pattern="x", path=path))
            with pytest.raises(ToolFailed):
                await sandbox.start("echo x > ran", workdir=path)
        assert [info.name for info in await sandbox.list(".")] == ["a"]

    async def test_a_folder_can_not_be_used_as_a_file_nor_a_file_as_a_folder(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.write("a/f", b"x")
        for path in ("a", ".", "", "missing", "a/f/more"):
            with pytest.raises(ToolFailed):
                await sandbox.read(path)
        for path in ("a", ".", "", "a/f/more"):
            with pytest.raises(ToolFailed):
                await sandbox.write(path, b"x")
        for path in ("a/f", "missing"):
            with pytest.raises(ToolFailed):
                await sandbox.list(path)

    async def test_a_file_is_replaced_only_if_it_has_the_expected_content(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.write("f", b"old")
        assert await sandbox.write("f", b"new", expected=b"old") is False
        for path in ("f", "missing", "missing/f"):
            with pytest.raises(ToolFailed):
                await sandbox.write(path, b"newer", expected=b"old")
        assert await sandbox.read("f") == b"new"
        assert [info.name for info in await sandbox.list(".")] == ["f"]

    async def test_a_reader_sees_one_version_and_never_a_part(self, sandbox: Sandbox) -> None:
        versions = [bytes([letter]) * 300_000 for letter in b"ab"]
        await sandbox.write("f", versions[0])
        seen: set[bytes] = set()

        async def write() -> None:
            for number in range(20):
                await sandbox.write("f", versions[number % 2])

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            for _ in range(20):
                seen.add(await sandbox.read("f"))
        assert seen <= set(versions)

    async def test_a_file_that_is_too_large_is_refused(self, sandbox: Sandbox) -> None:
        with pytest.raises(ToolFailed):
            await sandbox.write("f", b"x" * (LARGEST_FILE + 1))
        assert await sandbox.stat("f") is None

    async def test_folders_are_listed_and_their_entries_described(self, sandbox: Sandbox) -> None:
        await sandbox.write("b/inner/f", b"four")
        await sandbox.write("a", b"")
        assert [(info.name, info.kind) for info in await sandbox.list(".")] == [
            ("a", "file"),
            ("b", "folder"),
        ]
        file = await sandbox.stat("b/inner/f")
        assert file
        assert (file.name, file.kind, file.size) == ("f", "file", 4)
        assert list(await sandbox.list("b/inner")) == [file]
        folder = await sandbox.stat("b")
        assert folder
        assert folder.kind == "folder"
        assert await sandbox.stat("missing") is None
        assert await sandbox.stat("b/missing/f") is None

    async def test_files_and_empty_folders_are_removed(self, sandbox: Sandbox) -> None:
        await sandbox.write("a/f", b"x")
        for path in ("a", ".", "missing"):
            with pytest.raises(ToolFailed):
                await sandbox.remove(path)
        await sandbox.remove("a/f")
        await sandbox.remove("a")
        assert list(await sandbox.list(".")) == []

    async def test_links_are_not_followed(self, sandbox: Sandbox) -> None:
        await sandbox.write("a/f", b"needle")
        assert (await run(sandbox, "ln -s a/f file; ln -s a folder")).code == 0
        for path in ("file", "folder/f"):
            with pytest.raises(ToolFailed):
                await sandbox.read(path)
            with pytest.raises(ToolFailed):
                await sandbox.write(path, b"x")
        with pytest.raises(ToolFailed):
            await sandbox.list("folder")
        assert {info.kind for info in await sandbox.list(".") if info.name != "a"} == {"link"}
        found = await sandbox.search(SearchQuery(pattern="needle"))
        assert [hit.path for hit in found.hits] == ["a/f"]
        await sandbox.remove("file")
        assert await sandbox.read("a/f") == b"needle"

    async def test_a_search_finds_lines_and_paths(self, sandbox: Sandbox) -> None:
        await sandbox.write("src/a.py", b"import os\r\nprint(1)\r\n")
        await sandbox.write("src/deep/b.py", "print('zwölf')".encode())
        await sandbox.write("notes.md", b"print\n")
        await sandbox.write("binary", b"\0print")
        query = SearchQuery(pattern=r"print\(", path=".")
        first = SearchHit(path="src/a.py", line=2, text="print(1)")
        second = SearchHit(path="src/deep/b.py", line=1, text="print('zwölf')")
        found = await sandbox.search(query)
        assert (found.hits, found.remarks) == ((first, second), ())
        for path in ("src/deep", "src/deep/b.py"):
            found = await sandbox.search(SearchQuery(pattern=r"print\(", path=path))
            assert found.hits == (second,)
        found = await sandbox.search(SearchQuery(pattern="", names=True, glob="*.py"))
        assert [hit.path for hit in found.hits] == ["src/a.py", "src/deep/b.py"]
        found = await sandbox.search(SearchQuery(pattern="print", limit=1))
        assert len(found.hits) == len(found.remarks) == 1

    async def test_a_failed_search_is_reported(self, sandbox: Sandbox) -> None:
        with pytest.raises(ToolFailed, match="not a regular expression"):
            await sandbox.search(SearchQuery(pattern="*.py"))
        with pytest.raises(ToolFailed):
            await sandbox.search(SearchQuery(pattern="x", path="missing"))

    async def test_a_search_ends_in_time(self, sandbox: Sandbox) -> None:
        await sandbox.write("f", b"a" * 60 + b"b\n")
        with anyio.fail_after(20):
            found = await sandbox.search(SearchQuery(pattern=SLOW_PATTERN, seconds=0.5))
        assert found.hits == ()
        assert len(found.remarks) == 1

    async def test_output_and_errors_are_returned_in_the_order_in_which_they_were_written(
        self, sandbox: Sandbox
    ) -> None:
        ended = await run(sandbox, "echo one; echo two >&2; echo three; exit 3")
        assert ended.text == "one\ntwo\nthree\n"
        assert (ended.code, ended.timed_out, ended.left) == (3, False, 0)

    async def test_commands_see_the_files_that_file_operations_write(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.write("a/f", b"written\n")
        ended = await run(sandbox, "cat a/f && cd a && echo printed > g")
        assert (ended.text, ended.code) == ("written\n", 0)
        assert await sandbox.read("a/g") == b"printed\n"

    async def test_a_command_begins_in_its_folder(self, tmp_path: Path, sandbox: Sandbox) -> None:
        root = self.workspace(tmp_path)
        await sandbox.write("a/f", b"x")
        assert (await run(sandbox, "pwd")).text == f"{root}\n"
        assert (await run(sandbox, "pwd", "a")).text == f"{root}/a\n"
        for wrong in ("..", "/", "missing", "a/f"):
            with pytest.raises(ToolFailed):
                await run(sandbox, "echo x > ran", wrong)
        assert [info.name for info in await sandbox.list(".")] == ["a"]

    async def test_a_command_has_no_input(self, sandbox: Sandbox) -> None:
        assert (await run(sandbox, "cat; echo over")).text == "over\n"

    async def test_a_command_that_takes_too_long_is_ended(self, sandbox: Sandbox) -> None:
        observer = RecordedCommand()
        with anyio.fail_after(20):
            ended = await sandbox.run("echo so far; sleep 600", observer, seconds=1.0)
        assert (ended.timed_out, ended.text) == (True, "so far\n")
        assert ended.code != 0

    async def test_the_handle_is_known_before_the_command_begins(self, sandbox: Sandbox) -> None:
        observer = RecordedCommand(sandbox)
        await sandbox.run("echo x > ran", observer, seconds=30.0)
        assert await sandbox.stat("ran")
        assert len(observer.handles) == 1
        assert observer.handles[0]
        assert not observer.ran_too_early

    async def test_a_handle_that_can_not_be_stored_starts_nothing(self, sandbox: Sandbox) -> None:
        with pytest.raises(ClaimLost):
            await sandbox.run("echo x > ran", LostCommand(), seconds=30.0)
        assert await sandbox.stat("ran") is None

    async def test_a_command_ends_when_its_turn_is_stopped(
        self, sandbox: Sandbox, backend: Callable[[], ExecutionBackend]
    ) -> None:
        observer = RecordedCommand()

        async def sleep() -> None:
            await sandbox.run("sleep 600", observer, seconds=600.0)

        async with anyio.create_task_group() as group:
            group.start_soon(sleep)
            await until(lambda: observer.handles)
            group.cancel_scope.cancel()
        assert not await backend().end(observer.handles[0])

    async def test_a_later_gateway_ends_a_command_by_its_handle(
        self, sandbox: Sandbox, backend: Callable[[], ExecutionBackend]
    ) -> None:
        observer, ended = RecordedCommand(), list[CommandOutcome]()

        async def sleep() -> None:
            command = "echo half; sleep 600; echo x > late"
            ended.append(await sandbox.run(command, observer, seconds=600.0))

        async with anyio.create_task_group() as group:
            group.start_soon(sleep)
            await until(lambda: observer.lines == ["half"])
            assert await backend().end(observer.handles[0])
            await until(lambda: ended)
        assert ended[0].code < 0
        assert not ended[0].timed_out
        assert await sandbox.stat("late") is None

    async def test_an_invalid_handle_ends_nothing(
        self, backend: Callable[[], ExecutionBackend]
    ) -> None:
        opened = backend()
        for handle in ("", "x", "nowhere:1:2:3:4", "local:::", "memory:"):
            assert not await opened.end(handle)

    async def test_a_command_with_a_nul_character_is_refused(self, sandbox: Sandbox) -> None:
        with pytest.raises(ToolFailed):
            await run(sandbox, "echo x > ran; \0")
        with pytest.raises(ToolFailed):
            await sandbox.start("echo x > ran; \0")
        assert await sandbox.stat("ran") is None

    async def test_a_background_process_is_followed_to_its_end(self, sandbox: Sandbox) -> None:
        await sandbox.write("a/f", b"")
        command = "read word; echo heard $word > made; cat made; exit 3"
        process = await sandbox.start(command, workdir="a")
        assert (await process.wait(0.05)).running
        (status,) = await sandbox.processes()
        assert (status.id, status.command) == (process.id, command)
        assert (status.running, status.code) == (True, None)
        await process.write("zwölf\n".encode())
        ended = await process.wait(20.0)
        assert (ended.running, ended.code) == (False, 3)
        assert await process.status() == ended
        output = await process.output()
        assert (output.data.decode(), output.whole) == ("heard zwölf\n", True)
        assert (await sandbox.read("a/made")).decode() == "heard zwölf\n"
        with pytest.raises(ToolFailed):
            await process.write(b"more\n")

    async def test_a_background_process_can_be_killed(self, sandbox: Sandbox) -> None:
        process = await sandbox.start("sleep 600")
        killed = await process.kill()
        assert not killed.running
        assert killed.code is not None
        assert killed.code < 0
        assert await process.kill() == killed

    async def test_a_background_process_outlives_its_gateway(
        self, tmp_path: Path, sandbox: Sandbox, backend: Callable[[], ExecutionBackend]
    ) -> None:
        process = await sandbox.start("read word; echo heard $word")
        later = await backend().open(self.scope(tmp_path))
        assert [status.running for status in await later.processes()] == [True]
        found = await later.process(process.id)
        await found.write(b"it\n")
        assert (await found.wait(20.0)).code == 0
        assert (await process.output()).data == b"heard it\n"

    async def test_a_session_sees_its_own_processes_only(
        self, tmp_path: Path, sandbox: Sandbox, backend: Callable[[], ExecutionBackend]
    ) -> None:
        process = await sandbox.start("sleep 600")
        other = await backend().open(self.scope(tmp_path, GROUP))
        assert list(await other.processes()) == []
        for stranger, id in ((other, process.id), (sandbox, ""), (sandbox, f"../{process.id}")):
            with pytest.raises(ToolFailed):
                await stranger.process(id)
        assert (await process.status()).running

    async def test_an_approved_command_runs_only_in_its_place(self, sandbox: Sandbox) -> None:
        await sandbox.write("a/x.sh", b"one")
        place = await sandbox.locate("a", ["x.sh"])
        assert [script.digest for script in place.scripts] == [
            "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
        ]
        outcome = await sandbox.run(
            "cat x.sh", RecordedCommand(), workdir="a", seconds=30.0, place=place
        )
        assert outcome.text.rstrip() == "one"
        with pytest.raises(ToolFailed, match="changed"):
            await sandbox.run("cat a/x.sh", RecordedCommand(), seconds=30.0, place=place)
        with pytest.raises(ToolFailed, match="changed"):
            await sandbox.start("echo > ran", place=place)

    async def test_a_script_that_was_changed_after_the_approval_does_not_run(
        self, sandbox: Sandbox
    ) -> None:
        await sandbox.write("x.sh", b"one")
        place = await sandbox.locate(".", ["x.sh"])
        await sandbox.write("x.sh", b"two")
        for call in (
            lambda: sandbox.run("echo > ran", RecordedCommand(), seconds=30.0, place=place),
            lambda: sandbox.start("echo > ran", place=place),
        ):
            with pytest.raises(ToolFailed, match="changed"):
                await call()
        assert await sandbox.stat("ran") is None

    async def test_a_script_that_was_missing_at_the_approval_must_stay_missing(
        self, sandbox: Sandbox
    ) -> None:
        place = await sandbox.locate(".", ["x.sh"])
        assert [script.digest for script in place.scripts] == [""]
        await sandbox.run("echo > ran", RecordedCommand(), seconds=30.0, place=place)
        await sandbox.write("x.sh", b"one")
        with pytest.raises(ToolFailed, match="changed"):
            await sandbox.run("cat x.sh", RecordedCommand(), seconds=30.0, place=place)
