"""Decides which sessions this process may run: those whose files it has."""

from pathlib import Path

from msgspec.structs import replace

from hermes.state.turns import TurnRow
from hermes.types.identity import FolderId
from hermes.types.profile import AgentProfile
from hermes.types.value import Value


class Placement(Value):
    """The folder of this process, in which its agents read and write files."""

    folder: FolderId | None = None
    """The folder's id, which is stored with each session that uses files; None in tests without
    files."""
    checked: bool = False
    """Whether other processes of the store may have other folders."""
    terminal: bool = False
    """Whether this process is a terminal, which runs only its own sessions."""

    def has(self, folder: FolderId | None) -> bool:
        """Returns whether the files of a session are here. `folder` is None if the session has used
        no files."""
        return not self.checked or folder is None or folder == self.folder

    def profile_of(self, row: TurnRow, profile: AgentProfile) -> AgentProfile:
        """Returns the agent with the workspace in which the turn began, if it can be used here."""
        if row.folder is None and self.checked and not self.terminal:
            # The workspace of another node may exist here, but the turn has used no files in it.
            return profile
        # Returns the same object if nothing differs, because prompts are cached by its identity.
        if row.workspace is None or row.workspace == profile.workspace:
            return profile
        # The home may have been moved to another machine since.
        there = Path(row.workspace).is_dir()
        return replace(profile, workspace=row.workspace) if there else profile

    @property
    def limit(self) -> FolderId | None:
        """The only folder whose work this process may take over; None for no limit."""
        return self.folder if self.checked else None
