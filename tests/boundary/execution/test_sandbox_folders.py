"""Each sandbox has a folder on this machine, which records the owner and the last use of the
sandbox."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.boundary.execution.sandbox_folders import (
    SandboxFolder,
    delete_sandbox,
    delete_session_sandbox,
    known_sandboxes,
    sandbox_id,
)
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.turns import GROUP, a_turn
from hermes.types.execution import SandboxScope
from hermes.types.identity import AgentId, PersonId

OURS = SandboxScope(
    agent=DEFAULT_AGENT, session=a_turn().session, workspace="/w", person=PersonId("ann")
)
THEIRS = replace(OURS, session=a_turn(source=GROUP).session)


def test_the_setting_decides_who_shares_a_sandbox() -> None:
    bob = replace(THEIRS, person=PersonId("bob"))
    unknown = replace(OURS, person=None)
    other = replace(OURS, agent=AgentId("other"))
    assert sandbox_id(OURS, "session") != sandbox_id(THEIRS, "session")
    assert sandbox_id(OURS, "person") == sandbox_id(THEIRS, "person") != sandbox_id(bob, "person")
    assert sandbox_id(unknown, "person") == sandbox_id(unknown, "session")
    assert sandbox_id(OURS, "agent") == sandbox_id(bob, "agent") != sandbox_id(other, "agent")


def test_a_sandbox_remembers_its_owner_and_its_last_use(tmp_path: Path) -> None:
    folder = SandboxFolder(tmp_path, OURS, "person")
    folder.ensure()
    record = tmp_path / folder.id / "sandbox.json"
    os.utime(record, (1, 1))
    assert [one.used_at for one in known_sandboxes(tmp_path)] == [1.0]
    folder.ensure()
    (known,) = known_sandboxes(tmp_path)
    assert (known.id, known.person, known.session) == (folder.id, "ann", str(OURS.session))
    assert known.used_at > 1
    SandboxFolder(tmp_path, THEIRS, "person").ensure()
    (known,) = known_sandboxes(tmp_path)
    assert known.session == str(THEIRS.session)


def test_a_damaged_record_hides_no_other_sandbox(tmp_path: Path) -> None:
    SandboxFolder(tmp_path, OURS, "session").ensure()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "sandbox.json").write_text("{")
    assert len(list(known_sandboxes(tmp_path))) == 1


def test_a_sandbox_is_deleted_whatever_its_permissions_are(tmp_path: Path) -> None:
    folder = SandboxFolder(tmp_path / "sandbox", OURS, "session")
    folder.ensure()
    locked = folder.workspace / "locked"
    locked.mkdir()
    (locked / "f").touch()
    locked.chmod(0o500)
    (folder.workspace / "link").symlink_to(tmp_path)
    delete_session_sandbox(tmp_path, OURS.session)
    assert list((tmp_path / "sandbox").iterdir()) == []
    assert tmp_path.exists()


@pytest.mark.parametrize("id", ["", ".", "..", "../x", "missing"])
def test_only_sandboxes_are_deleted(tmp_path: Path, id: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "inner").mkdir()
    assert not delete_sandbox(tmp_path / "inner", id)
    assert (tmp_path / "x").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_if_the_gateway_runs_as_root_a_sandbox_has_its_own_devices(tmp_path: Path) -> None:
    folder = SandboxFolder(tmp_path, OURS, "session")
    folder.ensure()
    if folder.devices:
        null = folder.devices / "null"
        assert null.stat().st_ino != Path("/dev/null").stat().st_ino
        assert null.stat().st_rdev == Path("/dev/null").stat().st_rdev
