"""The contract of the backends for remote sandboxes, as a test class to inherit from."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import ClassVar, Protocol

import pytest

from hermes.boundary.execution.cloud import CloudBackend
from hermes.boundary.execution.sandbox_folders import SANDBOX_RECORD
from hermes.testing.commands import lives
from hermes.testing.running import until
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.turns import GROUP, PRIVATE, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import (
    BackendOptions,
    CloudAccount,
    CommandLimits,
    NetworkPolicy,
    SandboxScope,
    Sharing,
)
from hermes.types.identity import Source


class FakeCloud(Protocol):
    """A fake of the SDK of a provider, as the contract uses it."""

    failure: str
    """The name of the error that the next calls of the SDK raise; empty if they raise none."""
    lost_answer: str
    """The name of the error that the SDK raises after it has run the next program, instead of
    returning the program's output; empty if the SDK raises no error."""

    @property
    def running(self) -> Sequence[str]:
        """The names of the sandboxes that are running."""
        ...

    @property
    def kept(self) -> Sequence[str]:
        """The names of the sandboxes whose files are kept."""
        ...

    def stop_all(self) -> None: ...


class LosingObserver(RecordedCommand):
    """Cuts the connection after the command was started."""

    def __init__(self, cloud: FakeCloud, failure: str) -> None:
        super().__init__()
        self._cloud = cloud
        self._failure = failure

    async def started(self, handle: str) -> None:
        await super().started(handle)
        self._cloud.lost_answer = self._failure


class CloudContract:
    """Sandboxes are created once, found again, stopped, restored and deleted. Errors say what to
    do."""

    unreachable: str
    """The name of the provider's error for a lost connection."""
    failures: ClassVar[Mapping[str, str]]
    """The provider's errors, each with a text that the message to the user must contain."""
    networks: Sequence[tuple[NetworkPolicy, object]]
    """Network policies, each with the arguments that the provider must get for a sandbox with 2 GiB
    of memory and 3 GiB of disk."""

    def cloud(self, folder: Path) -> AbstractAsyncContextManager[FakeCloud]:
        raise NotImplementedError

    def backend(self, cloud: FakeCloud, options: BackendOptions) -> CloudBackend:
        raise NotImplementedError

    def unusable(
        self, cloud: FakeCloud, options: BackendOptions
    ) -> Sequence[tuple[CloudBackend, str]]:
        """Returns backends that lack the SDK's package or the key. Each backend has the text with
        which `hermes doctor` must report what is missing."""
        raise NotImplementedError

    def created(self, cloud: FakeCloud) -> object:
        """Returns the network and the size of the sandbox that was created last, in the form in
        which the fake has received them."""
        raise NotImplementedError

    def options(
        self,
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        sharing: Sharing = "session",
        limits: CommandLimits | None = None,
        network: NetworkPolicy | None = None,
    ) -> BackendOptions:
        return BackendOptions(
            processes=folder / "processes",
            environment=environment or {},
            secrets=secrets or {},
            sandboxes=folder / "sandboxes",
            sharing=sharing,
            limits=limits or CommandLimits(),
            network=network or NetworkPolicy(),
            modal=CloudAccount(image="python:3.12-slim", key_id="ak-1", key="as-1"),
            daytona=CloudAccount(
                image="python:3.12-slim", key="dtn_1", url="https://daytona.test/api"
            ),
        )

    def scope(self, folder: Path, source: Source = PRIVATE) -> SandboxScope:
        turn = a_turn(source=source)
        return SandboxScope(
            agent=turn.session.agent, session=turn.session, workspace=str(folder / "work")
        )

    async def test_a_sandbox_is_created_when_it_is_first_used(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            backend = self.backend(cloud, self.options(tmp_path))
            sandbox = await backend.open(self.scope(tmp_path))
            assert list(await sandbox.processes()) == []
            with pytest.raises(ToolFailed, match="There is no process"):
                await sandbox.process("x")
            assert list(cloud.kept) == []
            await sandbox.write("f", b"x")
            assert len(cloud.running) == 1
            (info,) = await backend.sandboxes()
            assert info.session == str(self.scope(tmp_path).session)

    async def test_a_later_gateway_finds_the_sandbox(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            options, scope = self.options(tmp_path), self.scope(tmp_path)
            await (await self.backend(cloud, options).open(scope)).write("f", b"kept")
            later = await self.backend(cloud, options).open(scope)
            assert await later.read("f") == b"kept"
            assert len(cloud.running) == 1

    async def test_a_stopped_sandbox_is_restored_with_its_files(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            sandbox = await self.backend(cloud, self.options(tmp_path)).open(self.scope(tmp_path))
            await sandbox.write("f", b"kept")
            cloud.stop_all()
            assert list(cloud.running) == []
            assert await sandbox.read("f") == b"kept"
            outcome = await sandbox.run("cat f", RecordedCommand(), seconds=30.0)
            assert outcome.text == "kept"
            assert len(cloud.running) == 1

    async def test_only_idle_sandboxes_are_stopped(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            backend = self.backend(cloud, self.options(tmp_path))
            sandbox = await backend.open(self.scope(tmp_path))
            process = await sandbox.start("read word")
            assert await backend.close_idle(0.0) == 0
            assert len(cloud.running) == 1
            await process.kill()
            assert await backend.close_idle(3600.0) == 0
            assert await backend.close_idle(0.0) == 1
            assert list(cloud.running) == []
            assert len(cloud.kept) == 1
            assert await backend.close_idle(0.0) == 0
            assert list(await sandbox.processes()) == []

    async def test_a_reset_deletes_the_sandbox(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            backend = self.backend(cloud, self.options(tmp_path))
            sandbox = await backend.open(self.scope(tmp_path))
            await sandbox.start("sleep 600")
            (info,) = await backend.sandboxes()
            assert await backend.reset(info.id)
            assert (list(cloud.running), list(cloud.kept)) == ([], [])
            assert not await backend.reset(info.id)
            assert not await backend.reset("../x")
            assert list(await backend.sandboxes()) == []

    async def test_the_sandbox_of_a_stateless_request_is_deleted(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            backend, scope = self.backend(cloud, self.options(tmp_path)), self.scope(tmp_path)
            await (await backend.open(scope)).write("f", b"x")
            await backend.discard(scope)
            assert list(cloud.kept) == []

    async def test_the_sandbox_of_a_deleted_session_is_deleted(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            options = self.options(tmp_path)
            backend = self.backend(cloud, options)
            await (await backend.open(self.scope(tmp_path))).write("f", b"x")
            # Another home uses the same account.
            elsewhere = self.options(tmp_path / "other")
            other = self.backend(cloud, elsewhere)
            await (await other.open(self.scope(tmp_path / "other"))).write("f", b"x")
            assert options.sandboxes
            (record,) = options.sandboxes.glob(f"*/*/{SANDBOX_RECORD}")
            record.unlink()
            await backend.close_idle(3600.0)
            assert len(cloud.kept) == 1
            (left,) = await other.sandboxes()
            assert await other.reset(left.id)

    async def test_a_crash_while_a_sandbox_is_created_leaves_one_sandbox(
        self, tmp_path: Path
    ) -> None:
        async with self.cloud(tmp_path) as cloud:
            backend, scope = self.backend(cloud, self.options(tmp_path)), self.scope(tmp_path)
            cloud.failure = self.unreachable
            with pytest.raises(ToolFailed):
                await (await backend.open(scope)).write("f", b"x")
            cloud.failure = ""
            later = self.backend(cloud, self.options(tmp_path))
            await (await later.open(scope)).write("f", b"x")
            assert len(cloud.kept) == 1

    async def test_people_who_share_a_sandbox_have_processes_of_their_own(
        self, tmp_path: Path
    ) -> None:
        async with self.cloud(tmp_path) as cloud:
            backend = self.backend(cloud, self.options(tmp_path, sharing="agent"))
            one = await backend.open(self.scope(tmp_path))
            other = await backend.open(self.scope(tmp_path, GROUP))
            process = await one.start("read word")
            await one.write("f", b"shared")
            assert await other.read("f") == b"shared"
            assert list(await other.processes()) == []
            assert len(cloud.running) == 1
            await process.kill()

    async def test_secrets_are_redacted_and_variables_of_this_machine_stay_here(
        self, tmp_path: Path
    ) -> None:
        async with self.cloud(tmp_path) as cloud:
            options = self.options(
                tmp_path,
                environment={"PATH": "/nowhere", "LEVEL": "21"},
                secrets={"TOKEN": "opensesame"},
            )
            sandbox = await self.backend(cloud, options).open(self.scope(tmp_path))
            command = "echo $TOKEN | cut -c 1-4; echo $TOKEN $LEVEL; echo $PATH"
            told = (await sandbox.run(command, RecordedCommand(), seconds=30.0)).text
            assert told.startswith("open\n[redacted] 21\n")
            assert "/nowhere" not in told

    async def test_an_approved_command_does_not_run_with_other_variables(
        self, tmp_path: Path
    ) -> None:
        async with self.cloud(tmp_path) as cloud:
            scope, secrets = self.scope(tmp_path), {"TOKEN": "opensesame"}
            approved = await self.backend(cloud, self.options(tmp_path)).open(scope)
            place = await approved.locate(".", [])
            other = await self.backend(cloud, self.options(tmp_path, secrets=secrets)).open(scope)
            with pytest.raises(ToolFailed, match="the environment has changed"):
                await other.run("echo > ran", RecordedCommand(), seconds=30.0, place=place)

    async def test_errors_say_what_to_do(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            backend = self.backend(cloud, self.options(tmp_path))
            assert [one.level for one in await backend.check()] == ["ok"]
            sandbox = await backend.open(self.scope(tmp_path))
            await sandbox.write("f", b"x")
            for failure, text in self.failures.items():
                cloud.failure = failure
                with pytest.raises(ToolFailed, match=text):
                    await sandbox.read("f")
                with pytest.raises(ToolFailed, match=text):
                    await sandbox.run("echo x > ran", RecordedCommand(), seconds=30.0)
                assert await backend.close_idle(0.0) == 0
                (finding,) = await backend.check()
                assert finding.level == "error"
                assert finding.hint
            cloud.failure = ""
            assert await sandbox.stat("ran") is None

    async def test_a_command_survives_a_short_loss_of_the_connection(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            backend = self.backend(cloud, self.options(tmp_path))
            sandbox = await backend.open(self.scope(tmp_path))
            await sandbox.write("f", b"x")
            observer = LosingObserver(cloud, self.unreachable)
            ended = await sandbox.run("echo once >> count; echo done", observer, seconds=30.0)
            assert (ended.code, ended.text) == (0, "done\n")
            assert await sandbox.read("count") == b"once\n"

    async def test_a_command_that_kills_its_supervisor_is_ended(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            backend = self.backend(cloud, self.options(tmp_path))
            sandbox, observer = await backend.open(self.scope(tmp_path)), RecordedCommand()
            command = "echo $$ > pid; kill -9 $PPID; exec sleep 600"
            with pytest.raises(ToolFailed, match="supervisor of the command was killed"):
                await sandbox.run(command, observer, seconds=30.0)
            pid = int(await sandbox.read("pid"))
            await until(lambda: not lives(pid))
            assert not await backend.end(observer.handles[0])

    async def test_a_missing_package_or_key_is_a_finding(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            for backend, text in self.unusable(cloud, self.options(tmp_path)):
                (finding,) = await backend.check()
                assert (finding.level, finding.text) == ("error", text)
                assert finding.hint
                sandbox = await backend.open(self.scope(tmp_path))
                with pytest.raises(ToolFailed, match=text):
                    await sandbox.run("echo x", RecordedCommand(), seconds=30.0)
                await backend.aclose()

    async def test_the_network_and_the_size_are_those_of_the_settings(self, tmp_path: Path) -> None:
        async with self.cloud(tmp_path) as cloud:
            for number, (policy, expected) in enumerate(self.networks):
                folder = tmp_path / str(number)
                limits = CommandLimits(memory=2 << 30, workspace_bytes=3 << 30)
                options = self.options(folder, network=policy, limits=limits)
                await (await self.backend(cloud, options).open(self.scope(folder))).write("f", b"")
                assert self.created(cloud) == expected
