"""What the operator wrote for agents into the workspace: AGENTS.md and its like."""

import os
import stat
from pathlib import Path, PurePosixPath

from hermes.types.errors import ToolFailed
from hermes.types.turns import PromptPart, Turn

NAMES = (".hermes.md", "HERMES.md", "AGENTS.md", "CLAUDE.md", ".cursorrules")
"""The first that is there counts, here or in a folder above, up to the root of the repository."""
LARGEST_CONTEXT_FILE = 1_000_000
"""Characters of a file that are looked at."""
HEAD_SHARE = 0.7
"""The part of a file that is too long which is kept of its beginning; the rest is its end."""


def context_file(workspace: Path, limit: int) -> PromptPart | None:
    """The nearest context file, framed; None when there is none."""
    if limit <= 0 or not workspace.name:
        return None
    for folder in _upwards(workspace):
        for name in NAMES:
            path = folder / name
            try:
                text = _read(path).strip()
            except OSError:
                continue
            if text:
                shown = _shortened(text, limit)
                framed = f"Instructions for this workspace, from {path}:\n\n{shown}"
                return PromptPart(name=name, text=framed)
    return None


def check_writable(path: str, turn: Turn) -> None:
    """Raises ToolFailed if a chat tries to write a file of instructions for every conversation."""
    name = PurePosixPath(path).name.casefold()
    if turn.principal is None and name in {one.casefold() for one in NAMES}:
        raise ToolFailed(
            f"{path!r} holds instructions for every conversation, and can't be written from"
            f" {turn.source.platform}: ask the owner to do it in a terminal."
        )


def _read(path: Path) -> str:
    """The text of a regular file; OSError for anything else, which could lead or wait anywhere."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        with os.fdopen(descriptor, encoding="utf-8", errors="replace", closefd=False) as file:
            return file.read(LARGEST_CONTEXT_FILE)
    finally:
        os.close(descriptor)


def _upwards(workspace: Path) -> list[Path]:
    """The workspace, and the folders above it inside the same repository."""
    folders = [workspace, *workspace.parents]
    root = next((i for i, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return folders[: root + 1]


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = int(limit * HEAD_SHARE)
    left_out = len(text) - limit
    return f"{text[:head]}\n\n[… {left_out} characters left out …]\n\n{text[head + left_out :]}"
