"""Pairing codes: only their hashes are stored, and wrong codes are counted."""

from hermes.state.storable import storable
from hermes.types.store import Work
from hermes.types.value import Value

CODE_SECONDS = 3600.0
"""Seconds for which a code is valid."""
REQUEST_SECONDS = 600.0
"""Seconds after which a user who has asked for a code can get another one."""
MOST_REQUESTS = 10_000
"""Maximum number of users of one account who wait for approval. Later users get no code. The
earlier requests stay valid, and an admin can still hand out codes."""
MOST_NAME_CHARS = 100
"""Maximum length of a user's name."""
MOST_TRIES = 5
"""After a user has entered this number of wrong codes, every code from this user is refused for
`LOCKED_SECONDS`."""
LOCKED_SECONDS = 3600.0

OPERATOR = ""
"""Wrong codes that the operator enters on the command line are counted under this user id."""


class PairingRequest(Value):
    """A user who has asked for a code and waits for approval."""

    account: str
    user_id: str
    user_name: str | None
    chat_id: str
    """The private chat in which the user has asked."""
    made_at: float

    @property
    def described(self) -> str:
        """The user's id and name. The id comes first, because users choose their names."""
        id = f"user {self.user_id} of {self.account}"
        return f"{id}, named “{self.user_name}”" if self.user_name else id


def may_request(account: str, user_id: str, now: float) -> Work[bool]:
    """Returns whether the user can get a code. A user gets no code if they got one less than
    `REQUEST_SECONDS` ago, or if `MOST_REQUESTS` users wait for approval."""
    known = yield (
        "select made_at from pairing_codes where account = ? and user_id = ?",
        (account, user_id),
    )
    if known:
        made_at: float = known[0][0]
        return made_at <= now - REQUEST_SECONDS
    waiting = yield (
        "select count(*) from pairing_codes where account = ? and user_id is not null"
        " and made_at > ?",
        (account, now - CODE_SECONDS),
    )
    return bool(waiting[0][0] < MOST_REQUESTS)


def request(digest: str, wanted: PairingRequest) -> Work[bool]:
    """Stores the hash of a new code for the user, instead of the user's earlier code. Returns False
    if the user can't get a code now."""
    account, user, now = wanted.account, wanted.user_id, wanted.made_at
    if not (yield from may_request(account, user, now)):
        return False
    yield "delete from pairing_codes where made_at <= ?", (now - CODE_SECONDS,)
    yield "delete from pairing_codes where account = ? and user_id = ?", (account, user)
    name = None if wanted.user_name is None else storable(wanted.user_name)[:MOST_NAME_CHARS]
    yield (
        "insert into pairing_codes (hash, account, user_id, user_name, chat_id, made_by, made_at)"
        " values (?, ?, ?, ?, ?, ?, ?)",
        (digest, account, user, name, wanted.chat_id, user, now),
    )
    return True


def offer(digest: str, account: str, made_by: str, now: float) -> Work[None]:
    """Stores the hash of a code that an admin hands out."""
    yield "delete from pairing_codes where made_at <= ?", (now - CODE_SECONDS,)
    yield (
        "insert into pairing_codes (hash, account, made_by, made_at) values (?, ?, ?, ?)",
        (digest, account, made_by, now),
    )


def requests(now: float) -> Work[list[PairingRequest]]:
    """Returns the users who wait for approval, the oldest request first."""
    rows = yield (
        "select account, user_id, user_name, chat_id, made_at from pairing_codes"
        " where user_id is not null and made_at > ? order by made_at, account, user_id",
        (now - CODE_SECONDS,),
    )
    fields = PairingRequest.__struct_fields__
    return [PairingRequest(**dict(zip(fields, row, strict=True))) for row in rows]


def requested(digest: str, account: str, now: float) -> Work[PairingRequest | None]:
    """Returns the request whose code has this hash; None if no request has a valid code with this
    hash."""
    rows = yield (
        "select account, user_id, user_name, chat_id, made_at from pairing_codes"
        " where hash = ? and account = ? and user_id is not null and made_at > ?",
        (digest, account, now - CODE_SECONDS),
    )
    fields = PairingRequest.__struct_fields__
    return PairingRequest(**dict(zip(fields, rows[0], strict=True))) if rows else None


def offered(digest: str, account: str, now: float) -> Work[str | None]:
    """Returns the admin who has made the code with this hash; None if no admin has made a valid
    code with this hash."""
    rows = yield (
        "select made_by from pairing_codes"
        " where hash = ? and account = ? and user_id is null and made_at > ?",
        (digest, account, now - CODE_SECONDS),
    )
    return rows[0][0] if rows else None


def use_up(digest: str) -> Work[None]:
    """Deletes the code with this hash, because a code admits one user only."""
    yield "delete from pairing_codes where hash = ?", (digest,)


def withdraw(account: str, user_id: str) -> Work[bool]:
    """Deletes the user's request for a code. Returns whether there was a request."""
    rows = yield (
        "delete from pairing_codes where account = ? and user_id = ? returning user_id",
        (account, user_id),
    )
    return bool(rows)


def locked_until(account: str, user_id: str, now: float) -> Work[float | None]:
    """Returns the time until which every code from the user is refused; None if the user is not
    locked out."""
    rows = yield (
        "select since from wrong_codes where account = ? and user_id = ? and tries >= ?",
        (account, user_id, MOST_TRIES),
    )
    until = rows[0][0] + LOCKED_SECONDS if rows else now
    return until if until > now else None


def count_wrong(account: str, user_id: str, now: float) -> Work[int]:
    """Counts a wrong code that the user has entered. Returns how many more wrong codes the user can
    enter before the user is locked out."""
    yield "delete from wrong_codes where since <= ?", (now - LOCKED_SECONDS,)
    # `since` is the time of the first wrong code. When the maximum number is reached, `since` is
    # set to the time of the last wrong code, because the user is locked out from that time on.
    rows = yield (
        "insert into wrong_codes (account, user_id, tries, since) values (?, ?, 1, ?)"
        " on conflict (account, user_id) do update set tries = wrong_codes.tries + 1,"
        " since = case when wrong_codes.tries + 1 >= ? then excluded.since"
        " else wrong_codes.since end returning tries",
        (account, user_id, now, MOST_TRIES),
    )
    left: int = MOST_TRIES - rows[0][0]
    return left


def forget_wrong(account: str, user_id: str) -> Work[None]:
    """Forgets the wrong codes of a user who has now entered a valid code."""
    yield "delete from wrong_codes where account = ? and user_id = ?", (account, user_id)
