"""The execution backend that runs commands in containers, with podman."""

import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.boundary.execution.client_commands import METER_SECONDS
from hermes.boundary.execution.docker import DockerBackend
from hermes.boundary.execution.sandbox_folders import sandbox_id
from hermes.testing.containers import LIMITS, WORKSPACE_INSIDE, ContainerStage
from hermes.testing.loop_delays import measured_delays, read_delays
from hermes.testing.machine_contract import (
    check_killed_gateway,
    check_pinned_script,
    check_race,
    check_swapped_script,
    output_of,
    private_scope,
)
from hermes.testing.network_checks import (
    LISTED_HOSTS,
    OPEN_NETWORK,
    check_own_machine,
    check_refused_host,
)
from hermes.testing.resource_attacks import RESOURCE_ATTACKS, ResourceAttack
from hermes.testing.running import until
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.tool_contract import SandboxToolsContract
from hermes.types.errors import ToolFailed
from hermes.types.execution import ExecutionBackend


class TestPodman(SandboxToolsContract):
    @pytest.fixture(autouse=True)
    def stage(self, containers: ContainerStage) -> None:
        self.containers = containers

    @asynccontextmanager
    async def machine(self, folder: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        with self.containers.empty(folder):
            yield lambda: self.containers.backend(folder)

    def workspace(self, folder: Path) -> str:
        return WORKSPACE_INSIDE


@pytest.fixture
def empty(containers: ContainerStage, tmp_path: Path) -> Iterator[ContainerStage]:
    with containers.empty(tmp_path):
        yield containers


async def test_a_killed_gateway_leaves_no_command_running(
    empty: ContainerStage, tmp_path: Path
) -> None:
    backend = empty.backend(tmp_path)
    await check_killed_gateway(empty.options(tmp_path), backend, WORKSPACE_INSIDE)


@pytest.fixture
def work(empty: ContainerStage) -> Path:
    """Returns the folder of this machine that is the workspace of the sandbox for
    `private_scope`."""
    id = sandbox_id(private_scope(WORKSPACE_INSIDE), "session")
    return empty.sandboxes / "docker" / id / "workspace"


async def test_a_replaced_script_never_runs(
    empty: ContainerStage, tmp_path: Path, work: Path
) -> None:
    sandbox = await empty.backend(tmp_path).open(private_scope(WORKSPACE_INSIDE))
    await sandbox.write("f", b"x")
    await check_swapped_script(sandbox, work, 2)
    assert not any(only_for_one_command(name) for name in empty.names())


async def test_an_approved_script_is_a_copy_that_nobody_can_change(
    empty: ContainerStage, tmp_path: Path, work: Path
) -> None:
    sandbox = await empty.backend(tmp_path).open(private_scope(WORKSPACE_INSIDE))
    await sandbox.write("f", b"x")
    recorded = await check_pinned_script(sandbox, work, work.with_name("home"))
    assert only_for_one_command(recorded.handles[0].split(":")[1])
    assert not any(only_for_one_command(name) for name in empty.names())
    assert empty.volumes() == []


async def test_a_container_starts_without_an_overlay_if_the_engine_can_not_make_it(
    empty: ContainerStage, tmp_path: Path, work: Path
) -> None:
    backend = empty.backend(tmp_path)
    sandbox = await backend.open(private_scope(WORKSPACE_INSIDE))
    await sandbox.write("x.sh", b"echo approved")
    # The work folder of an overlay can't be inside the workspace.
    shutil.rmtree(work.with_name("overlays"), ignore_errors=True)
    work.with_name("overlays").symlink_to(work)
    place = await sandbox.locate(".", ["x.sh"])
    outcome = await sandbox.run("sh x.sh", RecordedCommand(), seconds=30.0, place=place)
    work.with_name("overlays").unlink()
    assert outcome.text == "approved\n"
    assert empty.volumes() == []


def only_for_one_command(name: str) -> bool:
    """Returns whether the container with this name is for one command only."""
    return name.count("-") == 3


async def test_the_container_of_one_command_is_removed_after_a_crash(
    empty: ContainerStage, tmp_path: Path, work: Path
) -> None:
    backend = empty.backend(tmp_path)
    sandbox = await backend.open(private_scope(WORKSPACE_INSIDE))
    await sandbox.write("x.sh", b"sleep 600")
    await check_killed_gateway(empty.options(tmp_path), backend, WORKSPACE_INSIDE, "x.sh")
    assert not any(only_for_one_command(name) for name in empty.names())
    place = await sandbox.locate(".", ["x.sh"])
    process = await sandbox.start("sh x.sh", place=place)
    (only,) = filter(only_for_one_command, empty.names())
    assert await backend.close_idle(0.0) == 0
    assert not (await process.kill()).running
    assert await backend.close_idle(0.0) >= 1
    assert only not in empty.names()


async def test_commands_reach_allowed_hosts_only_and_never_this_machine(
    empty: ContainerStage, tmp_path: Path
) -> None:
    for policy, check in ((LISTED_HOSTS, check_refused_host), (OPEN_NETWORK, check_own_machine)):
        backend = DockerBackend(replace(empty.options(tmp_path), network=policy))
        assert [one.level for one in await backend.check()] == ["ok", "ok"]
        assert "through the proxy" in backend.isolation
        await check(await backend.open(private_scope(WORKSPACE_INSIDE)))
        await backend.aclose()


async def test_file_tools_win_the_race_against_links(empty: ContainerStage, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    sandbox = await empty.backend(tmp_path).open(private_scope(WORKSPACE_INSIDE))
    await check_race(sandbox, anyio.Path(tmp_path / "secret"), 500)


async def test_secrets_are_in_no_command_line_and_in_no_log(
    empty: ContainerStage, tmp_path: Path
) -> None:
    sandbox = await empty.backend(tmp_path).open(private_scope(WORKSPACE_INSIDE))
    process = await sandbox.start("echo token $GITHUB_TOKEN; read word; exit 5")
    await until(lambda: log_of(tmp_path))
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(empty.secret.encode() in line for line in lines)
    await process.write(b"on\n")
    assert (await process.wait(20.0)).code == 5
    assert (await process.output()).data == b"token [redacted]\n"


def log_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("processes/*/output.*"))


async def test_a_process_that_hides_from_its_supervisor_is_ended(
    empty: ContainerStage, tmp_path: Path
) -> None:
    sandbox = await empty.backend(tmp_path).open(private_scope(WORKSPACE_INSIDE))
    hiding = "(env -i setsid sleep 4321 >/dev/null 2>&1 &) ; exit 0"
    outcome = await sandbox.run(hiding, RecordedCommand(), seconds=30.0)
    assert (outcome.code, outcome.left) == (0, 1)
    assert "4321" not in await output_of(sandbox, "cat /proc/[0-9]*/cmdline")


@pytest.mark.parametrize(
    "attack", [attack(LIMITS) for attack in RESOURCE_ATTACKS], ids=lambda one: one.limit
)
async def test_an_attack_is_ended_within_a_second_after_it_has_exceeded_its_limit(
    empty: ContainerStage, tmp_path: Path, work: Path, attack: ResourceAttack
) -> None:
    backend, observer, delays = empty.backend(tmp_path), RecordedCommand(), tmp_path / "delays"
    sandbox = await backend.open(private_scope(WORKSPACE_INSIDE))
    async with measured_delays(delays):
        ended = await sandbox.run(attack.command, observer, seconds=60.0)
        ended_at = time.time()
    assert (ended.exceeded, ended.timed_out) == (attack.limit, False)
    # A busy machine delays the check of the limit, and delays a task of this process by about the
    # same time. So the test measures the delay of the task, and gives the check more time.
    late = max(delay for _, delay in read_delays(delays))
    assert ended_at - attack.exceeded_at(work) < 1.0 + late / METER_SECONDS
    assert not await backend.end(observer.handles[0])
    assert await output_of(sandbox, "echo works") == "works\n"


async def test_a_container_is_restricted_and_keeps_its_files(
    empty: ContainerStage, tmp_path: Path
) -> None:
    backend = empty.backend(tmp_path)
    sandbox = await backend.open(private_scope(WORKSPACE_INSIDE))
    told = await output_of(
        sandbox,
        "id -u; echo x > /f; echo x > ~/f && echo x > /tmp/f && echo x > f; "
        "grep -E 'CapEff|NoNewPrivs' /proc/self/status; ls /sys/class/net",
    )
    assert "Read-only file system" in told
    assert "CapEff:\t0000000000000000\nNoNewPrivs:\t1\n" in told
    assert not told.startswith("0\n")
    assert "eth0" not in told
    assert await backend.close_idle(3600.0) == 0
    assert empty.names()
    assert await backend.close_idle(0.0) >= 1
    assert empty.names() == []
    assert await output_of(sandbox, "cat f ~/f; cat /tmp/f 2>/dev/null") == "x\nx\n"


async def test_a_container_with_a_background_process_is_not_idle(
    empty: ContainerStage, tmp_path: Path
) -> None:
    backend = empty.backend(tmp_path)
    sandbox = await backend.open(private_scope(WORKSPACE_INSIDE))
    process = await sandbox.start("sleep 600")
    assert await backend.close_idle(0.0) == 0
    assert (await process.status()).running
    await process.kill()


async def test_sandboxes_are_listed_and_reset(empty: ContainerStage, tmp_path: Path) -> None:
    backend = empty.backend(tmp_path)
    scope = private_scope(WORKSPACE_INSIDE)
    sandbox = await backend.open(scope)
    await sandbox.write("f", b"x")
    process = await sandbox.start("sleep 600")
    (known,) = await backend.sandboxes()
    assert known.session == str(scope.session)
    *_, name, _, _, command = await sandbox.shell()
    assert name.endswith(known.id)
    assert "exec sh" in command
    assert not await backend.reset("../x")
    assert await backend.reset(known.id)
    assert not (await process.status()).running
    assert (await backend.sandboxes(), empty.names()) == ([], [])
    await (await backend.open(scope)).write("f", b"x")
    await backend.discard(scope)
    assert await backend.sandboxes() == []


async def test_the_backend_reports_what_is_missing(empty: ContainerStage, tmp_path: Path) -> None:
    (works,) = await empty.backend(tmp_path).check()
    assert works.level == "ok"
    options = empty.options(tmp_path)
    no_image = replace(options.clients.containers, image="localhost/missing:1")
    no_engine = replace(no_image, program="/missing/podman")
    for containers, told in ((no_image, "does not have the image"), (no_engine, "not installed")):
        clients = replace(options.clients, containers=containers)
        backend = DockerBackend(replace(options, clients=clients))
        (found,) = await backend.check()
        assert found.level == "error"
        assert told in found.text
        assert found.hint
        sandbox = await backend.open(private_scope("/srv/other"))
        with pytest.raises(ToolFailed):
            await sandbox.run("echo > ran", RecordedCommand(), seconds=30.0)
        assert await sandbox.stat("ran") is None
    assert await backend.close_idle(0.0) == 0
