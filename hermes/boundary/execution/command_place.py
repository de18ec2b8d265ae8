"""Makes sure that a command runs in the place that a person approved: with the same folder,
environment and scripts."""

import hashlib
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hermes.boundary.workspace import Workspace
from hermes.types.errors import ToolFailed
from hermes.types.execution import LARGEST_FILE, CommandPlace, Script
from hermes.types.value import Value

PLACE_CHANGED = (
    "Not run: {} has changed since the approval. Call the tool again to ask for a new one."
)


class VisibleFolder(Value):
    """A folder that commands can change."""

    shown: Path
    """The path at which commands see the folder."""
    real: Path
    """The path of the folder on this machine."""

    def located(self, path: str) -> Path:
        """Returns the path that a file in the folder has on this machine. `path` is the path that
        commands see."""
        return self.real / Path(path).relative_to(self.shown)


class ScriptFiles:
    """Reads scripts at the paths at which commands see them."""

    def __init__(
        self,
        home: str,
        changeable: Sequence[VisibleFolder] = (),
        fixed: Sequence[str] | None = None,
        hidden: Sequence[Path] = (),
    ) -> None:
        """`home` is the home directory of commands. In the `changeable` folders, no symbolic link
        is followed, because a command could have made the link. `fixed` lists the other folders
        that commands can read; None if commands see all files of this machine. `hidden` lists
        folders of this machine that commands can't see."""
        self._home = home
        self._hidden = hidden
        self._changeable = changeable
        self._fixed = fixed

    def find(self, folder: str, script: str) -> tuple[Script, bytes | None]:
        """Returns the script and its content. The content is None if there is no such file.
        `folder` is the folder in which the command begins. Raises ToolFailed if commands can't read
        the file."""
        joined = str(Path(folder, self._expanded(script)))
        path = os.path.normpath(joined)
        above = self.folder_of(path)
        if above is None:
            path, data = self._read_fixed(joined, script)
        elif self._is_hidden(above, above.located(path)):
            raise _not_a_file(script)
        else:
            workspace = Workspace(above.real, None, above.shown)
            data = None if workspace.stat(path) is None else workspace.read(path)
        return Script(path=path, digest=_hash(data)), data

    def folders_of(self, paths: Iterable[str]) -> list[VisibleFolder]:
        """Returns the changeable folders that contain the paths."""
        return list(dict.fromkeys(one for path in paths if (one := self.folder_of(path))))

    def folder_of(self, path: str) -> VisibleFolder | None:
        """Returns the changeable folder that contains the path; None if the path is in no
        changeable folder."""
        found = [one for one in self._changeable if Path(path).is_relative_to(one.shown)]
        return max(found, key=lambda one: len(one.shown.parts), default=None)

    def _is_hidden(self, above: VisibleFolder, path: Path) -> bool:
        """Returns whether commands can't see the path, because it is in a hidden folder below the
        visible folder. A visible folder inside a hidden folder is not hidden: the workspace of a
        sandbox is in the home."""
        hidden = (one for one in self._hidden if one.is_relative_to(above.real))
        return any(path.is_relative_to(one) for one in hidden)

    def _expanded(self, script: str) -> str:
        if script == "~" or script.startswith("~/"):
            return self._home + script[1:]
        return script

    def _read_fixed(self, path: str, script: str) -> tuple[str, bytes | None]:
        real = Path(os.path.realpath(path))
        visible = self._fixed is None or any(real.is_relative_to(one) for one in self._fixed)
        try:
            if visible and not real.exists():
                return str(real), None
            if not visible or not real.is_file() or real.stat().st_size > LARGEST_FILE:
                raise _not_a_file(script)
            return str(real), real.read_bytes()
        except OSError as error:
            raise ToolFailed(f"The script {script!r} can't be read: {error.strerror}.") from error


def _hash(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _not_a_file(script: str) -> ToolFailed:
    return ToolFailed(f"The script {script!r} is not a file that commands can read.")


class PlaceCheck:
    """Finds out where a command would run (its place), and checks whether an approved place is
    unchanged."""

    def __init__(self, backend: str, environment: Mapping[str, str], files: ScriptFiles) -> None:
        self._backend = backend
        self._environment = environment
        self.files = files

    def locate(self, folder: str, scripts: Sequence[str]) -> CommandPlace:
        """Returns the place of a command: the backend, the folder in which the command begins, the
        environment that it sees, and the scripts that it runs."""
        return CommandPlace(
            backend=self._backend,
            folder=folder,
            environment=tuple(
                (name, hashlib.sha256(os.fsencode(value)).hexdigest())
                for name, value in sorted(self._environment.items())
            ),
            scripts=tuple(self.files.find(folder, script)[0] for script in scripts),
        )

    def check(self, place: CommandPlace, folder: str) -> None:
        """Raises ToolFailed if the folder, the environment or a script has changed since a person
        approved the place."""
        now = self.locate(folder, [])
        if now.folder != place.folder:
            raise ToolFailed(PLACE_CHANGED.format("the folder"))
        if now.backend != place.backend or now.environment != place.environment:
            raise ToolFailed(PLACE_CHANGED.format("the environment"))
        for script in place.scripts:
            self.content(script)

    def content(self, script: Script) -> bytes | None:
        """Returns the content of the script; None if there is no such file. Raises ToolFailed if
        the content has changed since the script was approved."""
        found, data = self.files.find("/", script.path)
        if found != script:
            raise ToolFailed(PLACE_CHANGED.format(script.path))
        return data

    def copies(self, place: CommandPlace, folder: Path) -> list[tuple[Path, str]]:
        """Copies scripts to `folder`, a folder of this machine that commands can't see. Only
        scripts that commands could change are copied. Returns each copy, with the path at which the
        command expects the script."""
        found: list[tuple[Path, str]] = []
        for script in place.scripts:
            above = self.files.folder_of(script.path)
            data = self.content(script)
            if above is not None and data is not None:
                original = above.located(script.path)
                executable = original.stat(follow_symlinks=False).st_mode & 0o111
                found.append((_copied(data, folder / script.digest, executable), script.path))
        return found


def _copied(data: bytes, copy: Path, executable: int) -> Path:
    """Writes the copy, unless it exists already. An existing copy is always complete."""
    copy = copy.with_suffix(f".{executable:o}")
    if not copy.exists():
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = copy.with_name(secrets.token_hex(8))
        fresh.write_bytes(data)
        fresh.chmod(0o444 | executable)
        fresh.rename(copy)
    return copy
