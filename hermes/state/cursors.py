"""The cursor of each account: the position up to which Hermes has read the messages of the
account."""

from hermes.types.errors import ClaimLost
from hermes.types.identity import OwnerId
from hermes.types.store import Work


def load(account: str) -> Work[str | None]:
    rows = yield "select value from cursors where account = ?", (account,)
    return rows[0][0] if rows else None


def save(account: str, value: str, lease: tuple[OwnerId, int]) -> Work[None]:
    """Stores the cursor. Raises ClaimLost and stores nothing if another process now holds the
    account's lease (the right to serve the account)."""
    owner, epoch = lease
    saved = yield (
        "insert into cursors (account, value)"
        " select ?, ? from leases where name = ? and owner = ? and epoch = ?"
        " on conflict (account) do update set value = excluded.value returning account",
        (account, value, f"account:{account}", owner, epoch),
    )
    if not saved:
        raise ClaimLost(f"account {account} is now served by another process")
