"""The records of remote sandboxes survive a restart, and two homes never give their sandboxes the
same name."""

from pathlib import Path

from msgspec.structs import replace

from hermes.boundary.execution.cloud_records import CloudRecord, CloudRecords
from hermes.types.identity import AgentId

RECORD = CloudRecord(agent=AgentId("main"), session="agent:main:p:private:1", workspace="/work")


def test_a_record_keeps_its_name_and_workspace(tmp_path: Path) -> None:
    first = CloudRecords(tmp_path).ensure("a1", RECORD)
    assert first.name.startswith(CloudRecords(tmp_path).prefix())
    later = CloudRecords(tmp_path)
    moved = replace(RECORD, session="agent:main:p:private:2", workspace="/elsewhere")
    assert later.ensure("a1", RECORD) == first
    assert later.ensure("a1", moved) == replace(first, session=moved.session)
    assert later.find("a1") == replace(first, session=moved.session)
    assert later.names() == {first.name}
    assert [one.id for one in later.listed()] == ["a1"]


def test_two_homes_have_different_names(tmp_path: Path) -> None:
    one, other = CloudRecords(tmp_path / "one"), CloudRecords(tmp_path / "other")
    assert one.prefix() != other.prefix()
    assert one.prefix() == CloudRecords(tmp_path / "one").prefix()


def test_a_deleted_sandbox_gets_another_name(tmp_path: Path) -> None:
    records = CloudRecords(tmp_path)
    first = records.ensure("a1", RECORD)
    assert records.delete("a1")
    assert not records.delete("a1")
    assert records.find("a1") is None
    assert records.ensure("a1", RECORD).name != first.name


def test_a_damaged_record_or_a_wrong_id_finds_nothing(tmp_path: Path) -> None:
    records = CloudRecords(tmp_path)
    records.ensure("a1", RECORD)
    (tmp_path / "a1/sandbox.json").write_text("{")
    assert records.find("a1") is None
    assert records.find("../a1") is None
