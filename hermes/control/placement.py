"""Decides which sessions this process may run: the sessions whose files are in its folder."""

from pathlib import Path

from msgspec.structs import replace

from hermes.state.turns import TurnRow
from hermes.types.identity import FolderId
from hermes.types.profile import AgentProfile
from hermes.types.value import Value


class Placement(Value):
    """The folder in which the agents of this process read and write files."""

    folder: FolderId | None = None
    """The folder's id, which is stored with each session that uses files; None in tests without
    files."""
    checked: bool = False
    """Whether sessions run only in processes that have their folder. If False, all processes have
    the same folder, and every session runs here."""
    terminal: bool = False
    """Whether this process is a terminal, which runs only its own sessions."""

    def has(self, folder: FolderId | None) -> bool:
        """Returns whether this process has the files of a session. `folder` is the session's
        folder, or None if the session has used no files."""
        return not self.checked or folder is None or folder == self.folder

    def profile_of(self, row: TurnRow, profile: AgentProfile) -> AgentProfile:
        """Returns the agent's profile for a turn. If the workspace in which the turn began exists
        here, the profile names that workspace."""
        if row.folder is None and self.checked and not self.terminal:
            # The turn has used no files yet, so it gets the workspace of this node. The path of
            # another node's workspace may exist here, but only by chance.
            return profile
        # If the workspace is the same, `profile` itself is returned and not a copy, because prompts
        # are cached by the identity of the profile.
        if row.workspace is None or row.workspace == profile.workspace:
            return profile
        # The path is missing if, for example, the home was moved to another machine.
        there = Path(row.workspace).is_dir()
        return replace(profile, workspace=row.workspace) if there else profile

    @property
    def limit(self) -> FolderId | None:
        """The folder of this process, if it must not take over work that needs another folder. None
        if this process can take over all work."""
        return self.folder if self.checked else None
