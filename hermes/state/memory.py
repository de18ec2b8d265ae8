"""The memory of an agent: MEMORY.md and USER.md, separate for each audience (the people who may
read it)."""

import hashlib
import logging
import stat
import string
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import anyio.to_thread

from hermes.state.audience import Person, Room, audience_of
from hermes.state.entries import BETWEEN, EntryEdit, edited, entries_of, listed, within
from hermes.state.locks import FileLock
from hermes.state.paths import Home, write_private
from hermes.types.errors import ToolFailed
from hermes.types.identity import OWNER
from hermes.types.turns import Turn
from hermes.types.value import Value

log = logging.getLogger(__name__)

Topic = Literal["memory", "user"]
FILES: dict[Topic, str] = {"memory": "MEMORY.md", "user": "USER.md"}
LARGEST_NOTES = 65_536
"""Maximum number of bytes that are read from a memory file. A larger file is never changed, because
its end was not read."""
SETTLED = 2.0
"""A file that was modified less than this many seconds ago is not read from the cache. Some file
systems store modification times in whole seconds, so a further change in the same second would not
be noticed."""
CACHED = 1024

_SAFE = frozenset(string.ascii_lowercase + string.digits + "-_")
_LONGEST_NAME = 120


class NoteLimits(Value):
    """The limits for the length of each memory file, in characters."""

    memory: int = 2200
    user: int = 1375


class Remembered(Value):
    """The content of the memory files. Each text is cut at its limit."""

    memory: str = ""
    user: str = ""


class ChangedNotes(Value):
    """The size of a memory file after a change."""

    file: str
    entries: int
    used: int
    limit: int


class _File(Value):
    entries: tuple[str, ...] = ()
    trouble: str = ""
    """The reason why the file must not be written; empty if it may be written."""


class Memory:
    """Reads and changes the memory files. Unchanged files are read from a cache. A change is made
    completely or not at all, under a lock."""

    def __init__(self, limits: NoteLimits | None = None, *, patience: float = 5.0) -> None:
        limits = limits or NoteLimits()
        self._limits: dict[Topic, int] = {"memory": limits.memory, "user": limits.user}
        self._patience = patience

    def read(self, turn: Turn) -> Remembered:
        """Returns the memory for the audience of the turn."""
        folder = folder_of(turn)
        if folder is None:
            return Remembered()
        shared = turn.source.chat_kind != "private"
        return Remembered(
            memory=self._shown(folder, "memory"),
            user="" if shared else self._shown(folder, "user"),
        )

    async def change(self, turn: Turn, topic: Topic, edits: Sequence[EntryEdit]) -> ChangedNotes:
        """Makes all edits or none. An edit that has already been made changes nothing."""
        folder = folder_of(turn)
        if folder is None:
            raise ToolFailed("Nothing can be stored here, because the person is unknown.")
        if topic == "user" and turn.source.chat_kind != "private":
            raise ToolFailed(
                "This chat is shared, so nothing is stored about single people. Use 'memory' for"
                " facts that everybody in this chat may know."
            )
        return await anyio.to_thread.run_sync(
            _change, folder / FILES[topic], self._limits[topic], edits, self._patience
        )

    def _shown(self, folder: Path, topic: Topic) -> str:
        path, limit = folder / FILES[topic], self._limits[topic]
        try:
            status = path.stat()
        except OSError:
            return ""
        if time.time() - status.st_mtime < SETTLED:
            return _read(path, limit)
        return _unchanged(path, limit, (status.st_mtime_ns, status.st_size, status.st_ino))


def folder_of(turn: Turn) -> Path | None:
    """Returns the folder with the memory of the turn's audience; None if nothing may be stored."""
    audience = audience_of(turn)
    if audience is None or not turn.profile.home:
        return None
    return _folder(turn.profile.home, audience)


# The path is cached, because every new session reads the memory.
@lru_cache(maxsize=CACHED)
def _folder(home: str, audience: Person | Room) -> Path:
    root = Home(root=Path(home)).memories
    if isinstance(audience, Person):
        own = audience.person == OWNER
        return root if own else root / "people" / folder_name(audience.person)
    return root / "chats" / folder_name(audience.account) / folder_name(audience.chat)


@lru_cache(maxsize=CACHED)
def folder_name(text: str) -> str:
    """Returns a folder name that is unique to the text, even on a disk that ignores case."""
    data = text.encode("utf-8", "surrogatepass")
    name = "".join(chr(byte) if chr(byte) in _SAFE else f"%{byte:02x}" for byte in data)
    if 0 < len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:40]}~{hashlib.sha256(data).hexdigest()}"


def _read(path: Path, limit: int) -> str:
    return within(_load(path).entries, path.name, limit)


@lru_cache(maxsize=CACHED)
def _unchanged(path: Path, limit: int, stamp: tuple[int, ...]) -> str:
    return _read(path, limit)


def _load(path: Path) -> _File:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return _File(trouble="is not a file")
        with path.open("rb") as file:
            data = file.read(LARGEST_NOTES + 1)
    except FileNotFoundError:
        return _File()
    except OSError as error:
        return _File(trouble=f"can't be read ({error.strerror})")
    trouble = f"is larger than {LARGEST_NOTES} bytes" if len(data) > LARGEST_NOTES else ""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("utf-8-sig", "ignore")
        trouble = trouble or "is not text in UTF-8"
    if "\0" in text:
        trouble = trouble or "is not text"
    return _File(entries=entries_of(text), trouble=trouble)


def _change(path: Path, limit: int, edits: Sequence[EntryEdit], patience: float) -> ChangedNotes:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(path.parent / ".lock") as lock:
            if not lock.acquire_within(patience):
                raise ToolFailed("Another process is writing the memory. Try again.")
            return _rewrite(path, limit, edits)
    except OSError as error:
        log.error("can't write %s: %s", path, error)
        raise ToolFailed(f"{path.name} can't be written: {error.strerror}.") from error


def _rewrite(path: Path, limit: int, edits: Sequence[EntryEdit]) -> ChangedNotes:
    before = _load(path)
    if before.trouble:
        log.error("%s %s: fix it by hand", path, before.trouble)
        raise ToolFailed(
            f"{path.name} {before.trouble}. Nothing was changed: tell the person, who can repair"
            " the file by hand."
        )
    after = edited(before.entries, edits)
    text, old = BETWEEN.join(after), BETWEEN.join(before.entries)
    # A person may have made the file longer than the limit. An edit is then allowed if the file
    # does not grow.
    if len(text) > max(limit, len(old)):
        raise ToolFailed(
            f"{path.name} would have {len(text)} characters, and the limit is {limit}; now it has"
            f" {len(old)}. Nothing was changed. Shorten, join or remove entries in the same call."
            f" {listed(before.entries)}"
        )
    if after != before.entries:
        write_private(path, f"{text}\n")
    return ChangedNotes(file=path.name, entries=len(after), used=len(text), limit=limit)
