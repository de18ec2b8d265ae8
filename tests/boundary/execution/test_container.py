"""The command line that starts a container, and the folders that it needs."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.boundary.execution.container import (
    CONTAINER_USER,
    ContainerFolders,
    ContainerView,
    name_prefix,
    run_arguments,
)
from hermes.boundary.execution.sandbox_folders import SandboxFolder
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.turns import PRIVATE, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandLimits, Mount, SandboxScope
from hermes.types.execution_clients import ContainerOptions

VIEW = ContainerView(
    name="hermes-1-2",
    labels={"hermes.home": "/h"},
    workspace=Path("/h/2/workspace"),
    shown="/srv/project",
    home=Path("/h/2/home"),
    empty=Path("/h/2/tmp"),
    user=64_200,
    hidden=(Path("/h/2/workspace/secret"), Path("/elsewhere")),
    mounts=(Mount(path="/data"), Mount(path="/out", writable=True)),
    variables={"http_proxy": "http://127.0.0.1:3128"},
    copies=((Path("/h/2/approved/1.0"), "/srv/project/x.sh"),),
    filter=Path("/h/seccomp.json"),
    limits=CommandLimits(
        processes=9, memory=10_000_000, cpu_seconds=7, file_bytes=5, workspace_bytes=3
    ),
    options=ContainerOptions(
        image="image:1",
        cpus=1.5,
        volumes=("/a:/b:ro",),
        arguments=("--dns=1.1.1.1",),
        idle_seconds=60.0,
    ),
)


def folders(root: Path, workspace: Path | None = None) -> ContainerFolders:
    scope = SandboxScope(
        agent=DEFAULT_AGENT, session=a_turn(source=PRIVATE).session, workspace="/srv/project"
    )
    own = SandboxFolder(root / "sandboxes", scope, "session")
    return ContainerFolders(own, workspace or own.workspace)


def test_the_command_line_of_a_container_is_exact() -> None:
    *options, script, name, idle = run_arguments(VIEW, keep_user=False)
    limits = [one for one in options if not one.startswith(("--ulimit=nofile", "--ulimit=nproc"))]
    assert limits == [
        *("run", "--detach", "--rm", "--pull", "never", "--name", "hermes-1-2"),
        "--label=hermes.home=/h",
        *("--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges"),
        *("--security-opt", "seccomp=/h/seccomp.json"),
        *("--network", "none", "--ipc", "private", "--hostname", "sandbox"),
        *("--user", "64200:64200"),
        *("--ulimit=core=0:0", "--ulimit=cpu=7:12", "--ulimit=fsize=5:5", "--pids-limit=9"),
        *("--memory=10000000", "--memory-swap=10000000", "--cpus=1.5"),
        *("--tmpfs", "/tmp:rw,nosuid,nodev,mode=1777,size=512m"),
        *("--tmpfs", "/var/tmp:rw,nosuid,nodev,mode=1777,size=512m"),
        *("--mount", "type=bind,source=/h/2/tmp,target=/sys/devices,readonly"),
        *("--mount", "type=bind,source=/h/2/workspace,target=/srv/project"),
        *("--mount", "type=bind,source=/h/2/home,target=/home/sandbox"),
        *("--mount", "type=bind,source=/data,target=/data,readonly"),
        *("--mount", "type=bind,source=/out,target=/out"),
        *("--volume", "/a:/b:ro"),
        *("--tmpfs", "/srv/project/secret:ro,mode=000,size=4k"),
        *("--mount", "type=bind,source=/h/2/approved/1.0,target=/srv/project/x.sh,readonly"),
        "--env=http_proxy=http://127.0.0.1:3128",
        *("--env", "HOME=/home/sandbox", "--workdir", "/srv/project", "--stop-signal", "KILL"),
        *("--dns=1.1.1.1", "--entrypoint", "sh", "image:1", "-c"),
    ]
    assert "idle" in script
    assert (name, idle) == ("hermes", "60")


def test_a_folder_with_an_approved_script_is_shown_through_an_overlay() -> None:
    view = replace(VIEW, overlays={"/srv/project": Path("/h/2/overlays/1")})
    arguments = run_arguments(view, keep_user=False)
    (overlay,) = (one for one in arguments if "type=overlay" in one)
    assert overlay == (
        "type=volume,target=/srv/project,volume-opt=type=overlay,volume-opt=device=overlay,"
        '"volume-opt=o=lowerdir=/h/2/overlays/1/empty,upperdir=/h/2/workspace,'
        'workdir=/h/2/overlays/1/work"'
    )
    assert arguments.index(overlay) < arguments.index(
        "type=bind,source=/h/2/approved/1.0,target=/srv/project/x.sh,readonly"
    )
    assert not any("source=/h/2/workspace," in one for one in arguments)


def test_a_rootless_podman_keeps_the_user() -> None:
    assert "keep-id" in run_arguments(VIEW, keep_user=True)


def test_a_path_that_the_engine_would_misread_is_refused(tmp_path: Path) -> None:
    misread = tmp_path / "a,readonly"
    copies = ((tmp_path, str(misread)),)
    for view in (replace(VIEW, workspace=misread), replace(VIEW, copies=copies)):
        with pytest.raises(ToolFailed, match="can't be in a container"):
            run_arguments(view, keep_user=False)


def test_homes_have_different_names(tmp_path: Path) -> None:
    assert name_prefix(tmp_path / "a") != name_prefix(tmp_path / "b")
    assert name_prefix(tmp_path / "a").startswith("hermes-")


def test_commands_never_run_as_root(tmp_path: Path) -> None:
    own = folders(tmp_path)
    own.ensure()
    assert own.user() == (os.geteuid() or CONTAINER_USER)
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    if os.geteuid() == 0:
        assert own.new_files_owner() == CONTAINER_USER
        with pytest.raises(ToolFailed, match="belongs to root"):
            folders(tmp_path, chosen).user()
        os.chown(chosen, 1234, 1234)
        assert folders(tmp_path, chosen).user() == 1234
    else:
        assert own.new_files_owner() is None
        assert folders(tmp_path, chosen).user() == os.geteuid()


def test_a_workspace_that_contains_the_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="contains system folders"):
        folders(tmp_path, Path("/")).ensure()
