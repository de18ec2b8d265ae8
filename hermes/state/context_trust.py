"""Records which context files (such as AGENTS.md) the agent has written, and which of them the
owner has allowed.

A context file that the agent has not written is trusted. A file that the agent has written is
trusted only while the owner has allowed the hash of its content (digest). The content before the
agent's first write counts as allowed.
"""

import hashlib
import logging
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from hermes.state.locks import FileLock
from hermes.state.paths import create_private_folder, file_name, write_private
from hermes.types.context_files import RecordedFile
from hermes.types.errors import ConfigError
from hermes.types.value import Value

log = logging.getLogger(__name__)

LARGEST_CONTEXT_FILE = 1_000_000
"""Maximum number of bytes that are read from a context file. The rest of a larger file is
ignored."""
WATCHED_SECONDS = 30 * 86_400.0
"""Seconds after which the record of a command expires. If the command changes context files after
this time, the changes are not noticed. If the command is recorded again, the time starts again."""
RECORDS_LOCK_SECONDS = 5.0
REVOKED = "revoked"
"""An entry among the digests of a file that no content has: the owner has blocked the file."""


class TrustRecords(Value):
    """Lists the files that the agent has written, and the commands that may still change files."""

    written: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Maps the path of each file that the agent has written to the digests of the contents with
    which the file may be loaded. If the owner has blocked the file, `REVOKED` is among them."""
    commands: tuple[dict[str, str], ...] = ()
    """One mapping for each command that may still run. It maps the path of each context file to the
    digest that the file had before the command began. The digest of a missing file is empty."""


class ContextTrust:
    """The trust records of one home. Processes that share the home see each other's changes."""

    def __init__(self, folder: Path) -> None:
        self._written = folder / "written.json"
        self._commands = folder / "commands"

    def is_trusted(self, path: Path, digest: str) -> bool:
        """Returns whether a context file with this digest may be passed to a model as
        instructions."""
        try:
            return _trusted(self._read(), _key(path), digest)
        except ConfigError as error:
            log.error("context files are not loaded: %s", error)
            return False

    def is_revoked(self, path: Path) -> bool:
        """Returns whether the owner has blocked the file with `revoke`."""
        try:
            records = self._read()
        except ConfigError:
            return False
        same = _same_files(records, _key(path))
        return any(REVOKED in records.written[one] for one in same)

    def mark_written(self, path: Path) -> None:
        """Records the file as written by the agent. Call this before the agent writes it."""
        self._change(lambda records: _marked(records, {_key(path): digest_of(path)}))

    def begin(self, command: str, digests: Mapping[Path, str]) -> None:
        """Records a command of the agent, and the digests that the context files had before the
        command. The record survives a kill of this process. It may be lost in a power failure,
        which also ends the command."""
        named = {_key(path): digest for path, digest in digests.items()}
        with _explained(self._commands):
            create_private_folder(self._commands)
            self._command(command).write_bytes(msgspec.json.encode(named))

    def end(self, command: str, paths: Iterable[Path]) -> None:
        """Finds the context files that have changed since the command began, and marks them as
        written by the agent. Does nothing if the command is not recorded."""
        with _explained(self._commands):
            before = _digests(self._command(command))
            if before is None:
                return
            now = {_key(path): digest_of(path) for path in paths}
            changed = {
                path: before.get(path, "")
                for path, digest in now.items()
                if digest and digest != before.get(path, "")
            }
            if changed:
                # The files are marked before the record is deleted. In the other order, a kill in
                # between would leave the command's changes trusted.
                self._change(lambda records: _marked(records, changed))
            self._command(command).unlink(missing_ok=True)

    def rename(self, command: str, new: str) -> None:
        """Renames the record of a command, if there is one."""
        with _explained(self._commands), suppress(FileNotFoundError):
            self._command(command).rename(self._command(new))

    def allow(self, path: Path) -> bool:
        """Allows the present content of the file. Returns False if the file was already trusted."""
        key, digest = _key(path), digest_of(path)
        if not digest:
            raise ConfigError(
                f"{str(path)!r} can't be read or is not a regular file: name another file"
            )
        if _trusted(self._read(), key, digest):
            return False
        self._change(lambda records: {key: (*_allowed(records, key), digest)})
        return True

    def revoke(self, path: Path) -> None:
        """Removes all allowed digests of the file, and marks it as written by the agent."""
        key = _key(path)
        self._change(lambda records: dict.fromkeys({key, *_same_files(records, key)}, (REVOKED,)))

    def recorded(self) -> list[RecordedFile]:
        """Returns the files that the agent has written itself or changed with a command, sorted by
        path."""
        records = self._read()
        watched = {path for digests in records.commands for path in digests}
        found = []
        for path in sorted({*records.written, *watched}):
            digest = digest_of(Path(path))
            trusted = _trusted(records, path, digest)
            if path in records.written or (digest and not trusted):
                state: Literal["allowed", "blocked", "missing"]
                state = "missing" if not digest else "allowed" if trusted else "blocked"
                found.append(RecordedFile(path=path, state=state))
        return found

    def _command(self, name: str) -> Path:
        return self._commands / file_name(name)

    def _read(self) -> TrustRecords:
        with _explained(self._written):
            known: list[dict[str, str] | None] = []
            with suppress(FileNotFoundError):
                known = [_digests(path) for path in self._commands.iterdir()]
            commands = tuple(digests for digests in known if digests)
            try:
                data = self._written.read_bytes()
            except FileNotFoundError:
                return TrustRecords(commands=commands)
            return TrustRecords(written=msgspec.json.decode(data, type=_WRITTEN), commands=commands)

    def _change(self, make: Callable[[TrustRecords], Mapping[str, tuple[str, ...]]]) -> None:
        """Calls `make` with the current records, and adds the returned entries to the records of
        written files. A lock excludes other processes meanwhile."""
        with _explained(self._written):
            create_private_folder(self._commands)
            with FileLock(self._written.with_suffix(".lock")) as lock:
                if not lock.acquire_within(RECORDS_LOCK_SECONDS):
                    raise ConfigError(f"{lock.path} is locked by another process: try again")
                records = self._read()
                after = {**records.written, **make(records)}
                if after != records.written:
                    write_private(self._written, msgspec.json.encode(after).decode())


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{path} can't be used: {error}") from error


_WRITTEN = dict[str, tuple[str, ...]]


def _digests(path: Path) -> dict[str, str] | None:
    """Returns the digests that the context files had before a command, from the record at this
    path. Returns None if the record is missing, expired or damaged by a power failure."""
    try:
        if path.stat().st_mtime < time.time() - WATCHED_SECONDS:
            return None
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def read_context_file(path: Path) -> bytes:
    """Reads the beginning of a regular file. Raises OSError for any other kind of file, such as
    a link or a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST_CONTEXT_FILE)
    finally:
        os.close(descriptor)


def digest_of(path: Path) -> str:
    """Returns the digest of the file's first `LARGEST_CONTEXT_FILE` bytes; an empty text if the
    file can't be read."""
    try:
        return digest(read_context_file(path))
    except OSError:
        return ""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _key(path: Path) -> str:
    """Returns the path with all symbolic links in its folder resolved. If the file itself is a
    link, that link is not resolved."""
    return str(path.absolute().parent.resolve() / path.name)


def _trusted(records: TrustRecords, path: str, digest: str) -> bool:
    if same := _same_files(records, path):
        return any(digest in records.written[one] for one in same)
    return all(digests.get(path, digest) == digest for digests in records.commands)


def _allowed(records: TrustRecords, path: str) -> list[str]:
    return [one for one in records.written.get(path, ()) if one != REVOKED]


def _same_files(records: TrustRecords, path: str) -> list[str]:
    """Returns all recorded paths that name the same file as `path`. On a disk that ignores case,
    `agents.md` and `AGENTS.md` are the same file."""
    folded = path.casefold()
    alike = [one for one in records.written if one.casefold() == folded]
    return [one for one in alike if one == path or _is_same_file(one, path)]


def _is_same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


def _marked(records: TrustRecords, before: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Returns a new entry of `written` for each file in `before` that has no entry yet. If the file
    was trusted with its digest in `before`, the new entry allows that digest."""
    return {
        path: (digest,) if digest and _trusted(records, path, digest) else ()
        for path, digest in before.items()
        if path not in records.written
    }
