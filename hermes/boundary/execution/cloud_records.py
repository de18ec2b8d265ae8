"""The records of remote sandboxes, by which a restarted gateway finds them again."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from hermes.boundary.execution.sandbox_folders import (
    SANDBOX_RECORD,
    delete_sandbox,
    known_sandboxes,
)
from hermes.types.execution import SandboxInfo
from hermes.types.identity import AgentId, new_id
from hermes.types.value import Value

HOME_ID = "home.json"


class CloudRecord(Value):
    """A remote sandbox and its owner. The modification time of the record's file is the time at
    which the sandbox was last used."""

    agent: AgentId
    session: str
    workspace: str
    """The path of the workspace in the sandbox."""
    person: str = ""
    name: str = ""
    """The name of the sandbox at its provider; empty before the record is stored."""


class CloudRecords:
    """The records of one provider. Each record has a folder that is named for the id of the
    sandbox."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, id: str) -> CloudRecord | None:
        """Returns the record with this id; None if no record has it."""
        if not id.isalnum():
            return None
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
            return msgspec.json.decode(self._path(id).read_bytes(), type=CloudRecord)
        return None

    def ensure(self, id: str, record: CloudRecord) -> CloudRecord:
        """Records that the sandbox is used now. Returns the stored record, which contains the name
        of the remote sandbox. The record is on disk before the sandbox is created, so no crash
        leaves a sandbox without a record.
        """
        known = self.find(id)
        if known is not None and known.session == record.session:
            self._path(id).touch()
            return known
        name = known.name if known else f"{self.prefix()}-{new_id()}"
        workspace = known.workspace if known else record.workspace
        record = replace(record, name=name, workspace=workspace)
        _write(self._path(id), msgspec.json.encode(record))
        return record

    def listed(self) -> Sequence[SandboxInfo]:
        return list(known_sandboxes(self._root))

    def names(self) -> set[str]:
        """Returns the names of all sandboxes that have a record."""
        ids = [path.parent.name for path in self._root.glob(f"*/{SANDBOX_RECORD}")]
        return {record.name for id in ids if (record := self.find(id))}

    def delete(self, id: str) -> bool:
        return delete_sandbox(self._root, id)

    def prefix(self) -> str:
        """Returns the text with which the names of this home's sandboxes begin. The home is the
        data folder of Hermes. Several homes can use the same account, so each home has a prefix of
        its own."""
        path = self._root / HOME_ID
        if not path.exists():
            fresh = path.with_name(f"{HOME_ID}.{new_id()}")
            _write(fresh, msgspec.json.encode(f"hermes-{new_id()}"))
            # Another process may have written the file meanwhile.
            with contextlib.suppress(FileExistsError):
                os.link(fresh, path)
            fresh.unlink()
        return msgspec.json.decode(path.read_bytes(), type=str)

    def _path(self, id: str) -> Path:
        return self._root / id / SANDBOX_RECORD


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
