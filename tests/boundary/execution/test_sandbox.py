"""The execution backend that isolates commands, at each level that this machine offers."""

import re
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.boundary.execution.handles import CALL_MARK
from hermes.boundary.execution.levels import DESCRIPTIONS, Level
from hermes.boundary.execution.sandbox import SANDBOX_BACKEND, SandboxBackend
from hermes.boundary.execution.sandbox_folders import sandbox_id
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.commands import EMPTY_ENVIRONMENT, sandbox_backend
from hermes.testing.running import until
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.tool_contract import SandboxToolsContract
from hermes.testing.turns import GROUP, PRIVATE, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import BackendOptions, ExecutionBackend, Sandbox, SandboxScope
from hermes.types.identity import PersonId, Source


class LevelContract(SandboxToolsContract):
    level: Level

    @asynccontextmanager
    async def machine(self, folder: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        (folder / "work").mkdir()
        made: list[SandboxBackend] = []
        options = BackendOptions(
            processes=folder / "processes",
            environment=EMPTY_ENVIRONMENT,
            sandboxes=folder / "sandboxes",
        )

        def make() -> SandboxBackend:
            made.append(SandboxBackend(options, self.level))
            return made[-1]

        with sandbox_backend(folder, self.level):
            yield make
            for backend in made:
                backend.close()

    def workspace(self, folder: Path) -> str:
        return str(folder / "work")


class TestBubblewrap(LevelContract):
    level = "bubblewrap"


class TestLandlock(LevelContract):
    level = "landlock"


@pytest.fixture
def options(tmp_path: Path) -> BackendOptions:
    return BackendOptions(
        processes=tmp_path / "processes",
        environment={**EMPTY_ENVIRONMENT, "HOME": "/root", "LANG": "C"},
        secrets={"GITHUB_TOKEN": "opensesame"},
        sandboxes=tmp_path / "sandboxes",
        own_workspaces=True,
    )


def scope(folder: Path, source: Source = PRIVATE, person: str = "ann") -> SandboxScope:
    return SandboxScope(
        agent=DEFAULT_AGENT,
        session=a_turn(source=source).session,
        workspace=str(folder / "workspace"),
        home=str(folder),
        person=PersonId(person),
    )


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
async def test_sessions_share_nothing(
    tmp_path: Path, options: BackendOptions, level: Level
) -> None:
    with sandbox_backend(tmp_path, level, options) as backend:
        ours = await backend.open(scope(tmp_path))
        theirs = await backend.open(scope(tmp_path, GROUP))
        await ours.write("a/file", b"ours")
        await ours.start("sleep 600 & echo x > $TMPDIR/x; echo x > ~/x; sleep 600")
        looking = "ls -A . $TMPDIR ~; ps ax | grep -c '[s]leep 600'; cat a/file"
        told = (await theirs.run(looking, RecordedCommand(), seconds=30.0)).text
        assert "ours" not in told
        assert "x\n" not in told
        assert "No such file" in told
        seen = (await ours.run("cat a/file", RecordedCommand(), workdir="a/..", seconds=30.0)).text
        assert seen == "ours"


SESSIONS = 100
LOOK = """
own=own-$1-; mkfifo ready looked; export PLANTED=$own
for folder in . $TMPDIR ~ /dev/shm; do echo > $folder/$own; done
sleep 600 $own & read < ready
ls -A . $TMPDIR ~ /dev/shm; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' ' '
for kind in net pid ipc uts mnt; do echo; readlink /proc/self/ns/$kind; done; echo $HERMES_CALL
read < looked
"""


async def test_a_hundred_sessions_at_the_same_time_share_nothing(
    tmp_path: Path, options: BackendOptions
) -> None:
    seen: dict[int, list[str]] = {}
    places: list[Path] = []

    async def look(sandbox: Sandbox, number: int) -> None:
        command = f"set -- {number}; {LOOK}"
        outcome = await sandbox.run(command, RecordedCommand(), seconds=120.0)
        assert set(re.findall(r"own-\d+-", outcome.text)) == {f"own-{number}-"}
        *_, net, pid, ipc, uts, mnt, mark = outcome.text.split()
        seen[number] = [net, pid, ipc, uts, mnt, mark]

    with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
        async with anyio.create_task_group() as group:
            for number in range(SESSIONS):
                own = scope(tmp_path, replace(PRIVATE, chat_id=str(number)))
                sandbox = await backend.open(own)
                await sandbox.write("begun", b"")
                id = sandbox_id(own, "session")
                places.append(tmp_path / "sandboxes" / "sandbox" / id / "workspace")
                group.start_soon(look, sandbox, number)
            # Each command lists what it can see only after all commands have started. Each command
            # ends only after all commands have made their lists.
            for gate in ("ready", "looked"):
                gates = [one / gate for one in places]
                for one in gates:
                    await until(one.exists, 60.0)
                for opened in [await anyio.open_file(one, "w") for one in gates]:
                    await opened.aclose()
    assert len(seen) == SESSIONS
    for kind in zip(*seen.values(), strict=True):
        assert len(set(kind)) == SESSIONS


async def test_a_session_finds_its_files_again(tmp_path: Path, options: BackendOptions) -> None:
    command = "echo 1 >> f; echo 1 >> $TMPDIR/f; echo 1 >> ~/f; wc -c < f; pwd; echo $HOME $TMPDIR"
    for size in (2, 4):
        with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
            sandbox = await backend.open(scope(tmp_path))
            told = (await sandbox.run(command, RecordedCommand(), seconds=30.0)).text
        workspace = tmp_path / "workspace"
        assert told == f"{size}\n{workspace}\n/home/sandbox /tmp\n"
        assert await sandbox.read(f"{workspace}/f") == b"1\n" * (size // 2)
    assert not (tmp_path / "workspace").exists()


async def test_commands_see_listed_variables_only(tmp_path: Path, options: BackendOptions) -> None:
    with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
        sandbox = await backend.open(scope(tmp_path))
        told = (await sandbox.run("env", RecordedCommand(), seconds=30.0)).text
    names = {line.partition("=")[0] for line in told.splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        *("HOME", "LANG", "PATH", "TMPDIR", "GITHUB_TOKEN", CALL_MARK)
    }


async def test_secrets_are_redacted_in_the_output_of_background_commands(
    tmp_path: Path, options: BackendOptions
) -> None:
    with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
        sandbox = await backend.open(scope(tmp_path))
        process = await sandbox.start(
            "echo token $GITHUB_TOKEN; printf opense; sleep 0.1; echo same"
        )
        await process.wait(30.0)
        output = await process.output()
    assert output.data == b"token [redacted]\n[redacted]\n"


async def test_without_a_level_commands_are_refused_and_files_can_be_used(
    tmp_path: Path, options: BackendOptions
) -> None:
    backend = SandboxBackend(options, None)
    sandbox = await backend.open(scope(tmp_path))
    await sandbox.write("f", b"x")
    with pytest.raises(ToolFailed, match=r"no sandbox works\. Install bubblewrap"):
        await sandbox.run("touch ran", RecordedCommand(), seconds=30.0)
    with pytest.raises(ToolFailed, match="no sandbox works"):
        await sandbox.start("touch ran")
    assert [info.name for info in await sandbox.list(".")] == ["f"]
    (finding,) = await backend.check()
    assert finding.level == "error"
    assert "refused" in backend.isolation


async def test_each_level_says_how_it_isolates(options: BackendOptions) -> None:
    (best,) = await SandboxBackend(options, "bubblewrap").check()
    (second,) = await SandboxBackend(options, "landlock").check()
    assert (best.level, second.level) == ("ok", "warning")
    assert "read-only system" in SandboxBackend(options, "bubblewrap").isolation


async def test_a_workspace_that_contains_the_system_is_refused(options: BackendOptions) -> None:
    shared = replace(options, own_workspaces=False)
    root = replace(scope(Path("/")), workspace="/")
    sandbox = await SandboxBackend(shared, "bubblewrap").open(root)
    with pytest.raises(ToolFailed, match="contains system folders"):
        await sandbox.run("true", RecordedCommand(), seconds=30.0)


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
async def test_the_home_of_the_agent_is_hidden_in_the_workspace(
    tmp_path: Path, options: BackendOptions, level: Level
) -> None:
    home = tmp_path / "project" / ".hermes"
    home.mkdir(parents=True)
    (home / ".env").write_text("KEY=opensesame")
    shared = replace(
        options, own_workspaces=False, sandboxes=home / "sandboxes", hidden=(home, tmp_path / "no")
    )
    own = replace(scope(tmp_path), workspace=str(tmp_path / "project"), home="")
    with sandbox_backend(tmp_path, level, shared) as backend:
        sandbox = await backend.open(own)
        if level == "landlock":
            with pytest.raises(ToolFailed, match="contains the home of Hermes"):
                await sandbox.run("cat .hermes/.env", RecordedCommand(), seconds=30.0)
            return
        told = await sandbox.run("cat .hermes/.env; touch made", RecordedCommand(), seconds=30.0)
    assert "No such file" in told.text
    assert (tmp_path / "project" / "made").exists()


async def test_a_sandbox_is_listed_and_reset(tmp_path: Path, options: BackendOptions) -> None:
    with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
        sandbox = await backend.open(scope(tmp_path))
        await sandbox.write("f", b"x" * 10_000)
        process = await sandbox.start("sleep 600")
        (known,) = await backend.sandboxes()
        assert known.session == str(scope(tmp_path).session)
        assert known.bytes >= 10_000
        assert not await backend.reset("unknown")
        assert await backend.reset(known.id)
        assert not (await process.status()).running
        assert await backend.sandboxes() == []
        assert await backend.close_idle(0.0) == 0


async def test_a_person_enters_the_sandbox(tmp_path: Path, options: BackendOptions) -> None:
    with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
        sandbox = await backend.open(scope(tmp_path))
        command = await sandbox.shell()
        done = subprocess.run(
            command, input=b"pwd; hostname\n", capture_output=True, timeout=60, check=False
        )
    assert done.stdout.decode() == f"{tmp_path}/workspace\nsandbox\n"
    assert "opensesame" not in " ".join(command)


async def test_a_command_can_clean_up_when_it_is_terminated(
    tmp_path: Path, options: BackendOptions
) -> None:
    with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
        sandbox = await backend.open(scope(tmp_path))
        command = "trap 'echo cleaned; exit 3' TERM; echo ready; while :; do sleep 0.02; done"
        process = await sandbox.start(command)
        with anyio.fail_after(30):
            while not (await process.output()).data:
                await process.wait(0.05)
        ended = await process.kill()
        assert ended.code == 3
        assert (await process.output()).data.endswith(b"cleaned\n")


def test_the_backend_is_created_at_the_best_level(options: BackendOptions) -> None:
    made = SANDBOX_BACKEND.make(options)
    assert SANDBOX_BACKEND.name == "sandbox"
    assert made.isolation == f"{DESCRIPTIONS['bubblewrap']}; no network"


async def test_a_sandbox_is_created_on_first_use_and_discarded(
    tmp_path: Path, options: BackendOptions
) -> None:
    folder = tmp_path / "sandboxes" / "sandbox"
    with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
        sandbox = await backend.open(scope(tmp_path))
        assert list(await sandbox.processes()) == []
        await backend.discard(scope(tmp_path))
        assert not folder.exists()
        await sandbox.write("f", b"x")
        other = await backend.open(scope(tmp_path, GROUP))
        await other.write("f", b"x")
        await backend.discard(scope(tmp_path))
        assert [one.name for one in folder.iterdir()] == [
            sandbox_id(scope(tmp_path, GROUP), "session")
        ]
    shared = SandboxBackend(replace(options, sharing="person"), "bubblewrap")
    await (await shared.open(scope(tmp_path))).write("f", b"x")
    await shared.discard(scope(tmp_path))
    assert len(list(folder.iterdir())) == 2
