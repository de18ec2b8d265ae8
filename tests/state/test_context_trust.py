"""A context file that the agent has written is recorded, and is loaded only after a person has
allowed it."""

import os
from pathlib import Path

import pytest

from hermes.state.context_trust import (
    LARGEST_CONTEXT_FILE,
    WATCHED_SECONDS,
    ContextTrust,
    digest_of,
    read_context_file,
)
from hermes.types.context_files import RecordedFile
from hermes.types.errors import ConfigError


@pytest.fixture
def trust(tmp_path: Path) -> ContextTrust:
    return ContextTrust(tmp_path / "home" / "context")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "AGENTS.md"
    path.write_text("of the owner")
    return path


def trusted(trust: ContextTrust, file: Path) -> bool:
    return trust.is_trusted(file, digest_of(file))


def states(trust: ContextTrust) -> list[str]:
    return [one.state for one in trust.recorded()]


def test_a_file_that_the_agent_did_not_write_is_trusted(trust: ContextTrust, file: Path) -> None:
    assert trusted(trust, file)
    assert trust.recorded() == []
    assert not trust.allow(file)
    assert trust.recorded() == []


def test_a_permission_is_for_one_content_of_the_file(trust: ContextTrust, file: Path) -> None:
    trust.mark_written(file)
    assert states(trust) == ["allowed"]
    file.write_text("of the agent")
    assert trust.recorded() == [RecordedFile(path=str(file), state="blocked")]
    assert trust.allow(file)
    assert trusted(trust, file)
    file.write_text("of the agent, again")
    assert not trusted(trust, file)
    trust.mark_written(file)
    assert not trusted(trust, file)
    file.unlink()
    assert states(trust) == ["missing"]


def test_a_revoked_file_is_not_loaded_even_if_a_person_wrote_it(
    trust: ContextTrust, file: Path
) -> None:
    trust.revoke(file)
    assert not trusted(trust, file)
    assert trust.is_revoked(file)
    assert trust.allow(file)
    assert trusted(trust, file)
    assert not trust.is_revoked(file)


def test_the_first_record_creates_a_private_home(tmp_path: Path, file: Path) -> None:
    ContextTrust(tmp_path / "new" / "context").revoke(file)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_another_process_sees_the_records(trust: ContextTrust, file: Path, tmp_path: Path) -> None:
    trust.revoke(file)
    assert not trusted(ContextTrust(tmp_path / "home" / "context"), file)


def test_a_file_is_recognised_by_every_path_to_its_folder(
    trust: ContextTrust, file: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    trust.revoke(tmp_path / "link" / "AGENTS.md")
    assert not trusted(trust, file)


def test_on_a_disk_that_ignores_case_a_file_is_recognised_by_every_spelling(
    trust: ContextTrust, file: Path
) -> None:
    spelling = file.with_name("agents.md")
    file.unlink()
    trust.mark_written(spelling)
    spelling.write_text("of the agent")
    # The hard link gives the file both spellings of its name, as on a disk that ignores case.
    file.hardlink_to(spelling)
    assert not trusted(trust, file)
    assert trust.allow(file)
    assert trusted(trust, file)
    trust.revoke(file)
    assert not trusted(trust, file)


def test_on_other_disks_another_spelling_is_another_file(trust: ContextTrust, file: Path) -> None:
    spelling = file.with_name("agents.md")
    trust.mark_written(spelling)
    spelling.write_text("of the agent")
    assert trusted(trust, file)


def test_a_command_that_was_killed_with_the_gateway_still_counts_as_running(
    trust: ContextTrust, file: Path, tmp_path: Path
) -> None:
    trust.begin("call", {file: digest_of(file)})
    assert trusted(trust, file)
    assert trust.recorded() == []
    file.write_text("of the agent")
    after_restart = ContextTrust(tmp_path / "home" / "context")
    assert not trusted(after_restart, file)
    assert states(after_restart) == ["blocked"]
    assert after_restart.allow(file)
    assert trusted(trust, file)


def test_a_command_stops_counting_as_running_after_a_time(
    trust: ContextTrust, file: Path, tmp_path: Path
) -> None:
    trust.begin("call", {file: digest_of(file)})
    (record,) = (tmp_path / "home" / "context" / "commands").iterdir()
    file.write_text("of the owner, later")
    assert not trusted(trust, file)
    os.utime(record, (0, record.stat().st_mtime - WATCHED_SECONDS))
    assert trusted(trust, file)


def test_a_deleted_file_is_not_loaded(trust: ContextTrust, file: Path) -> None:
    trust.begin("call", {file: digest_of(file)})
    file.unlink()
    trust.end("call", [file])
    assert trust.recorded() == []


def test_a_record_that_a_power_failure_damaged_is_ignored(
    trust: ContextTrust, file: Path, tmp_path: Path
) -> None:
    trust.begin("call", {file: digest_of(file)})
    (record,) = (tmp_path / "home" / "context" / "commands").iterdir()
    record.write_bytes(b"")
    assert trusted(trust, file)
    trust.end("call", [file])
    trust.rename("unknown", "other")


def test_no_file_is_trusted_if_the_records_can_not_be_read(
    trust: ContextTrust, file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trust.mark_written(file)
    (tmp_path / "home" / "context" / "written.json").write_text("{")
    assert not trusted(trust, file)
    assert "context files are not loaded" in caplog.text
    with pytest.raises(ConfigError, match=r"written.json can't be used"):
        trust.allow(file)


def test_only_a_file_can_be_allowed(trust: ContextTrust, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not a regular file"):
        trust.allow(tmp_path)


def test_the_records_are_private(trust: ContextTrust, file: Path, tmp_path: Path) -> None:
    trust.mark_written(file)
    folder = tmp_path / "home" / "context"
    assert (folder / "written.json").stat().st_mode & 0o777 == 0o600
    assert (folder / "commands").stat().st_mode & 0o777 == 0o700


def test_a_huge_file_is_read_up_to_a_limit(file: Path) -> None:
    file.write_bytes(b"x" * LARGEST_CONTEXT_FILE + b"unseen")
    assert read_context_file(file) == b"x" * LARGEST_CONTEXT_FILE
