"""Tests the execution backend for Apptainer. A small program stands in for Apptainer."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.boundary.execution.singularity import SingularityBackend
from hermes.testing.machine_contract import private_scope
from hermes.testing.network_checks import LISTED_HOSTS, OPEN_NETWORK
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.types.errors import ToolFailed
from hermes.types.execution import BackendOptions, Mount, NetworkPolicy
from hermes.types.execution_clients import ClientOptions, ContainerOptions

# This script stands in for singularity. It prints its arguments and the variables that singularity
# would pass on to the container, and ends with the exit code of a failed command.
PROGRAM = '#!/bin/sh\nprintf "%s\\n" "$@"\nenv | grep ENV_ | sort\nexit 3\n'
CHOSEN = ["--security", "uid:64200", "--security", "gid:64200"] if os.geteuid() == 0 else []


def options(folder: Path, name: str = "apptainer") -> BackendOptions:
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    path = f"{program.parent}:/usr/bin:/bin"
    return BackendOptions(
        processes=folder / "processes",
        environment={"LANG": "C", "PATH": "/host/bin"},
        secrets={"TOKEN": "opensesame"},
        sandboxes=folder / "sandboxes",
        own_workspaces=True,
        mounts=(Mount(path="/data"), Mount(path="/out", writable=True)),
        clients=ClientOptions(
            environment={"PATH": path},
            containers=ContainerOptions(singularity_image="docker://image:1"),
        ),
    )


async def test_the_command_line_is_exact(tmp_path: Path) -> None:
    backend = SingularityBackend(options(tmp_path))
    sandbox = await backend.open(private_scope("/srv/project"))
    await sandbox.write("a/f", b"x")
    outcome = await sandbox.run("echo $TOKEN", RecordedCommand(), workdir="a", seconds=30.0)
    (known,) = await backend.sandboxes()
    own = tmp_path / "sandboxes" / "singularity" / known.id
    lines = outcome.text.splitlines()
    assert lines[: lines.index("sh")] == [
        *("--silent", "exec", "--containall", "--cleanenv", "--no-privs"),
        *("--net", "--network", "none", "--hostname", "sandbox", *CHOSEN),
        *("--home", f"{own}/home:/home/sandbox"),
        *("--bind", f"{own}/workspace:/srv/project:rw", "--bind", f"{own}/tmp:/tmp:rw"),
        *("--bind", "/data:/data:ro", "--bind", "/out:/out:rw"),
        *("--pwd", "/srv/project/a", "docker://image:1"),
    ]
    assert lines[-5:] == [
        *("sh", "-c", "echo $TOKEN"),
        *("APPTAINERENV_LANG=C", "APPTAINERENV_TOKEN=opensesame"),
    ]
    assert outcome.code == 3
    await backend.aclose()


async def test_singularity_gets_the_variables_under_names_that_it_understands(
    tmp_path: Path,
) -> None:
    backend = SingularityBackend(options(tmp_path, "singularity"))
    sandbox = await backend.open(private_scope("/srv/project"))
    outcome = await sandbox.run("true", RecordedCommand(), seconds=30.0)
    assert "SINGULARITYENV_TOKEN=opensesame" in outcome.text
    shell = await sandbox.shell()
    assert "SINGULARITYENV_LANG=C" in shell
    assert "opensesame" not in " ".join(shell)
    assert shell[-2:] == ("sh", "-i")
    await backend.aclose()


async def test_a_command_runs_only_in_its_place(tmp_path: Path) -> None:
    backend = SingularityBackend(options(tmp_path))
    sandbox = await backend.open(private_scope("/srv/project"))
    await sandbox.write("x.sh", b"one")
    place = await sandbox.locate(".", ["x.sh"])
    assert (await sandbox.run("x", RecordedCommand(), seconds=30.0, place=place)).code == 3
    await sandbox.write("x.sh", b"two")
    with pytest.raises(ToolFailed, match="changed"):
        await sandbox.run("x", RecordedCommand(), seconds=30.0, place=place)
    await backend.aclose()


async def test_without_the_program_commands_are_refused(tmp_path: Path) -> None:
    given = options(tmp_path)
    missing = replace(given, clients=ClientOptions(environment={"PATH": "/missing"}))
    backend = SingularityBackend(missing)
    (found,) = await backend.check()
    assert (found.level, "not installed" in found.text) == ("error", True)
    sandbox = await backend.open(private_scope("/srv/project"))
    with pytest.raises(ToolFailed, match="Install Apptainer"):
        await sandbox.run("true", RecordedCommand(), seconds=30.0)
    await sandbox.write("f", b"files can be used")


async def test_the_backend_reports_whether_the_image_exists(tmp_path: Path) -> None:
    given = options(tmp_path)
    assert [one.level for one in await SingularityBackend(given).check()] == ["ok"]
    no_image = ContainerOptions(singularity_image="/missing.sif")
    clients = replace(given.clients, containers=no_image)
    backend = SingularityBackend(replace(given, clients=clients))
    assert [one.level for one in await backend.check()] == ["error"]


async def test_sandboxes_are_listed_and_reset(tmp_path: Path) -> None:
    backend = SingularityBackend(options(tmp_path))
    scope = private_scope("/srv/project")
    await (await backend.open(scope)).write("f", b"x")
    (known,) = await backend.sandboxes()
    assert await backend.reset(known.id)
    await (await backend.open(scope)).write("f", b"x")
    await backend.discard(scope)
    assert await backend.sandboxes() == []
    assert await backend.close_idle(0.0) == 0
    assert not await backend.end("local:::")


@pytest.mark.parametrize("policy", [LISTED_HOSTS, OPEN_NETWORK])
async def test_with_a_network_commands_are_refused(tmp_path: Path, policy: NetworkPolicy) -> None:
    backend = SingularityBackend(replace(options(tmp_path), network=policy))
    (found,) = await backend.check()
    assert (found.level, "Set terminal.network to none" in found.hint) == ("error", True)
    sandbox = await backend.open(private_scope("/srv/project"))
    with pytest.raises(ToolFailed, match=r"Set terminal\.network to none"):
        await sandbox.run("true", RecordedCommand(), seconds=30.0)
