"""What the operator wrote for agents into the workspace: AGENTS.md and its like."""

from pathlib import Path

from hermes.types.turns import PromptPart

NAMES = (".hermes.md", "HERMES.md", "AGENTS.md", "CLAUDE.md", ".cursorrules")
"""The first that is there counts, here or in a folder above, up to the root of the repository."""
HEAD = 0.7
"""The part of a file that is too long which is kept of its beginning; the rest is its end."""


def context_file(workspace: Path, limit: int) -> PromptPart | None:
    """The nearest context file, framed; None when there is none."""
    if limit <= 0 or not workspace.name:
        return None
    for folder in _upwards(workspace):
        for name in NAMES:
            path = folder / name
            try:
                text = path.read_text("utf-8", errors="replace").strip()
            except OSError:
                continue
            if text:
                shown = _shortened(text, limit)
                framed = f"Instructions for this workspace, from {path}:\n\n{shown}"
                return PromptPart(name=name, text=framed)
    return None


def _upwards(workspace: Path) -> list[Path]:
    """The workspace, and the folders above it inside the same repository."""
    folders = [workspace, *workspace.parents]
    root = next((i for i, folder in enumerate(folders) if (folder / ".git").exists()), 0)
    return folders[: root + 1]


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = int(limit * HEAD)
    left_out = len(text) - limit
    return f"{text[:head]}\n\n[… {left_out} characters left out …]\n\n{text[head + left_out :]}"
