"""Loads instruction files such as AGENTS.md from the workspace. A file that the agent wrote is
loaded only if the owner has allowed it."""

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from shlex import quote

import anyio
import anyio.to_thread

from hermes.state.context_trust import ContextTrust, digest, digest_of, read_context_file
from hermes.state.paths import Home
from hermes.types.errors import ConfigError, ToolFailed
from hermes.types.identity import CallId
from hermes.types.turns import PromptPart, Turn
from hermes.types.value import Value

log = logging.getLogger(__name__)

NAMES = (".hermes.md", "HERMES.md", "AGENTS.md", "CLAUDE.md", ".cursorrules")
"""Names of context files, in order of precedence. The workspace is searched first, and then the
folders above it up to the root of the repository."""
HEAD_SHARE = 0.7
"""If a file is too long, this share of the kept text comes from its beginning."""


def context_file(
    workspace: Path, limit: int, trust: ContextTrust | None = None
) -> PromptPart | None:
    """Returns the nearest trusted context file as a part of the prompt, or None if there is
    none."""
    if limit <= 0 or not workspace.name:
        return None
    for path in candidates(workspace):
        try:
            data = read_context_file(path)
        except OSError:
            continue
        text = data.decode(errors="replace").strip()
        if not text:
            continue
        if trust is not None and not trust.is_trusted(path, digest(data)):
            if not trust.is_revoked(path):
                log.warning(
                    "%s was written by the agent, so it is not loaded. To load it:"
                    " hermes context allow %s",
                    path,
                    quote(str(path)),
                )
            continue
        framed = f"Instructions for this workspace, from {path}:\n\n{_shortened(text, limit)}"
        return PromptPart(name=path.name, text=framed)
    return None


def candidates(workspace: Path) -> list[Path]:
    """Returns the paths where a context file may be. The first file that contains text is used."""
    folders = _upwards(workspace)
    root = next((i for i, folder in enumerate(folders) if os.access(folder.git, os.F_OK)), 0)
    return [path for folder in folders[: root + 1] for path in folder.files]


def is_context_file(path: str) -> bool:
    """Returns whether a path has the name of a context file. Upper and lower case count as equal,
    because some file systems do not distinguish them."""
    return PurePosixPath(path).name.casefold() in {name.casefold() for name in NAMES}


def trust_of(turn: Turn) -> ContextTrust | None:
    """Returns the record of two things: the context files that the turn's agent has written, and
    the context files that the owner has allowed. Returns None if the agent has no home folder."""
    return _trust_in(turn.profile.home) if turn.profile.home else None


@lru_cache(maxsize=256)
def _trust_in(home: str) -> ContextTrust:
    return ContextTrust(Home(root=Path(home)).context)


async def prepare_write(path: str, turn: Turn) -> None:
    """Every tool must call this function before it writes a file of the workspace.

    Raises ToolFailed if a turn of a chat platform tries to write a context file. A context file
    that the agent writes for its owner is not loaded until the owner allows it.
    """
    if not is_context_file(path):
        return
    if turn.principal is None:
        raise ToolFailed(
            f"{path!r} holds instructions for every conversation, and can't be written from"
            f" {turn.source.platform}: ask the owner to change it in a terminal."
        )
    trust = trust_of(turn)
    if trust is not None:
        place = Path(turn.profile.workspace) / path
        try:
            await anyio.to_thread.run_sync(trust.mark_written, place)
        except ConfigError as error:
            raise ToolFailed(f"{path!r} was not written: {error}") from error


@asynccontextmanager
async def watched(turn: Turn, command: CallId) -> AsyncIterator[None]:
    """A context manager around a command of the agent. The context files that have changed by the
    end of the block count as written by the agent.

    If the command continues as a background process, the block must call `rename_watched`. The
    files are then checked later: when `end_watching` is called after the process has ended.
    """
    await _begin_watching(turn, command)
    try:
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await end_watching(turn, command)


async def _begin_watching(turn: Turn, command: CallId) -> None:
    trust, workspace = trust_of(turn), Path(turn.profile.workspace)
    if trust is None or not workspace.name:
        return

    def begin() -> None:
        trust.begin(command, {path: digest_of(path) for path in candidates(workspace)})

    await _recorded(begin)


async def end_watching(turn: Turn, *commands: str) -> None:
    """Marks the context files that these commands have changed as written by the agent. The
    commands must have ended."""
    trust, workspace = trust_of(turn), Path(turn.profile.workspace)
    if trust is None or not workspace.name:
        return

    def end() -> None:
        for command in commands:
            trust.end(command, candidates(workspace))

    await _recorded(end)


async def rename_watched(turn: Turn, command: CallId, process: str) -> None:
    """Records that a watched command continues as the background process `process`."""
    trust = trust_of(turn)
    if trust is not None:
        await _recorded(partial(trust.rename, command, process))


async def _recorded(work: Callable[[], None]) -> None:
    try:
        await anyio.to_thread.run_sync(work)
    except ConfigError as error:
        log.error("changes to context files can't be recorded: %s", error)


class _Folder(Value):
    """The paths that the search for context files checks in one folder."""

    git: Path
    """The path of `.git`, which exists only in the root of a repository."""
    files: tuple[Path, ...]
    """The paths of context files, in order of precedence."""


# The paths are cached, because every new session looks for the same paths.
@lru_cache(maxsize=256)
def _upwards(workspace: Path) -> tuple[_Folder, ...]:
    """Returns the workspace and all folders above it."""
    return tuple(
        _Folder(git=folder / ".git", files=tuple(folder / name for name in NAMES))
        for folder in (workspace, *workspace.parents)
    )


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = int(limit * HEAD_SHARE)
    left_out = len(text) - limit
    return f"{text[:head]}\n\n[… {left_out} characters left out …]\n\n{text[head + left_out :]}"
