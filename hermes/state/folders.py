"""The folders that contain agents' files: the nodes (machines) that have them, and the turns and
messages that need them."""

from collections.abc import Collection

from hermes.state import sessions, turns
from hermes.state.turns import DECIDED, TurnRow
from hermes.types.deployment import NodeFolder
from hermes.types.identity import FolderId, OwnerId
from hermes.types.store import Work
from hermes.types.value import Value


class FolderPlace(Value):
    """The node that used a folder last."""

    node: OwnerId
    host: str
    path: str


class FolderOwner(Value):
    """A registered process (owner), and the folder that it uses."""

    id: OwnerId
    kind: str
    folder: FolderId | None


def record(folder: NodeFolder, node: OwnerId, host: str, now: float) -> Work[None]:
    """Records that the node uses the folder."""
    yield (
        "insert into folders (id, node, host, path, used_at) values (?, ?, ?, ?, ?)"
        " on conflict (id) do update set node = excluded.node, host = excluded.host,"
        " path = excluded.path, used_at = excluded.used_at",
        (folder.id, node, host, folder.path, now),
    )


def place_of(folder: FolderId) -> Work[FolderPlace | None]:
    rows = yield "select node, host, path from folders where id = ?", (folder,)
    if not rows:
        return None
    node, host, path = rows[0]
    return FolderPlace(node=OwnerId(node), host=host, path=path)


def living_owners(dead: Collection[OwnerId]) -> Work[list[FolderOwner]]:
    """Returns the registered processes that are not dead, with their folders."""
    rows = yield "select id, kind, folder from owners", ()
    return [
        FolderOwner(id=OwnerId(id), kind=kind, folder=folder)
        for id, kind, folder in rows
        if id not in dead
    ]


def needed_by_work() -> Work[set[FolderId]]:
    """Returns the folders that open turns and waiting messages need."""
    rows = yield (
        "select folder from turns where state in ('running', 'suspended') and folder is not null"
        " union select coalesce(s.folder, i.folder) from inbox i"
        " left join sessions s on s.key = i.session"
        " where i.state = 'pending' and coalesce(s.folder, i.folder) is not null",
        (),
    )
    return {FolderId(row[0]) for row in rows}


def use(row: TurnRow, folder: FolderId) -> Work[None]:
    """Records that the turn and its conversation use files in the folder."""
    yield "update turns set folder = ? where id = ?", (folder, row.id)
    if not row.transient:
        yield from sessions.use_folder(row.session, row.generation, folder)


def running_with(folder: FolderId) -> Work[list[TurnRow]]:
    """Returns the running turns that need the folder."""
    return turns.open_turns("state = 'running' and folder = ?", folder)


def suspended_with(folder: FolderId) -> Work[list[TurnRow]]:
    """Returns the suspended turns that need the folder and whose questions are all decided. The
    turns of terminals are left out."""
    return turns.open_turns(
        f"folder = ? and {DECIDED}"  # noqa: S608
        " and not exists (select 1 from owners o where o.id = t.owner and o.kind = 'terminal')",
        folder,
    )


def suspended_of(owner: OwnerId, folder: FolderId | None = None) -> Work[list[TurnRow]]:
    """Returns the suspended turns of the process `owner`. If `folder` is given, turns that
    need another folder are left out."""
    needed = "(folder is null or coalesce(?, folder) = folder)"
    return turns.open_turns(f"state = 'suspended' and owner = ? and {needed}", owner, folder)
