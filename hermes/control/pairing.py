"""Pairs strangers: with a code that they show to the operator, or with a code from an admin."""

import hashlib
import logging
import re
import secrets
import time
from collections import OrderedDict

from hermes.control.access import Access
from hermes.control.outbox import Outbox
from hermes.control.routing import DEFAULT_AGENT
from hermes.state import access, deliveries, pairing
from hermes.state.access import PairedUser
from hermes.state.pairing import OPERATOR, PairingRequest
from hermes.text.durations import rounded_duration
from hermes.types.commands import CommandContext, CommandReply
from hermes.types.errors import HermesError
from hermes.types.identity import OWNER, Source, Target
from hermes.types.messages import Content, MessageEvent, Said
from hermes.types.people import Role
from hermes.types.store import Store, Work
from hermes.types.value import Value

__all__ = ["PairedUser", "PairingRequest"]

log = logging.getLogger(__name__)

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits that can't be mistaken for each other."""
CODE_CHARS = 8
_CODE = re.compile(f"[{ALPHABET}]{{{CODE_CHARS}}}")
WELCOME = "You are paired now, and I answer your messages."


class WrongCode(HermesError):
    code = "wrong_code"
    status = 404


class PairingLocked(HermesError):
    code = "pairing_locked"
    status = 429


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))


def parse_code(text: str) -> str | None:
    """Returns the code that a person has typed, in capital letters and without spaces or hyphens.
    Returns None if the text is not a code."""
    code = re.sub(r"[\s-]", "", text).upper()
    return code if _CODE.fullmatch(code) else None


def hash_code(account: str, code: str) -> str:
    """Returns the hash under which a code of the account is stored. Computing the hash is slow on
    purpose, so that nobody can try all codes within the hour for which a code is valid."""
    salt = f"hermes pairing\0{account}".encode()
    return hashlib.scrypt(code.encode(), salt=salt, n=256, r=8, p=1, dklen=32).hex()


class CodeChecked(Value):
    """The result of checking a code that the operator has typed."""

    request: PairingRequest | None = None
    """The user who has asked for the code; None if the code is wrong or was not checked."""
    tries_left: int = 0
    """If the code is wrong, the number of further wrong codes that are allowed."""
    locked_until: float | None = None
    """The time until which no code is checked; None if codes are checked now."""


def check_code(digest: str, account: str, now: float) -> Work[CodeChecked]:
    """Finds the user who has asked for the code with this hash. Wrong codes are counted: after too
    many of them, no code of the account is checked for a while."""
    if until := (yield from pairing.locked_until(account, OPERATOR, now)):
        return CodeChecked(locked_until=until)
    request = yield from pairing.requested(digest, account, now)
    if request is not None:
        return CodeChecked(request=request)
    left = yield from pairing.count_wrong(account, OPERATOR, now)
    return CodeChecked(tries_left=left)


def approve(digest: str, account: str, now: float, *, has_owner: bool) -> Work[Role | None]:
    """Pairs the user who has asked for the code with this hash, and sends the user a welcome
    message. Returns the user's role; None if the code is no longer valid.

    The first user who is paired in this way becomes an owner, unless there is an owner already.
    `has_owner` says whether the settings name an owner.
    """
    request = yield from pairing.requested(digest, account, now)
    if request is None:
        return None
    first = not has_owner and not (yield from access.has_owner())
    role = Role.OWNER if first else Role.USER
    yield from access.grant(account, request.user_id, request.user_name, role, OWNER, now)
    yield from pairing.use_up(digest)
    yield from pairing.forget_wrong(account, OPERATOR)
    target = Target(account=account, chat_id=request.chat_id)
    yield from deliveries.owe(target, Content(text=WELCOME), DEFAULT_AGENT, None, now)
    return role


def listed(now: float) -> Work[tuple[list[PairingRequest], list[PairedUser]]]:
    """Returns the users who wait for approval, and the users who are paired."""
    waiting = yield from pairing.requests(now)
    return waiting, (yield from access.paired_users())


def revoke(account: str, user_id: str) -> Work[bool]:
    """Takes the user's access and pairing code away. Returns whether the user had access or a
    code."""
    paired = yield from access.revoke(account, user_id)
    waited = yield from pairing.withdraw(account, user_id)
    return paired or waited


def redeem(digest: str, source: Source, now: float) -> Work[bool]:
    """Pairs a stranger who has sent a code that an admin handed out, and sends the stranger a
    welcome message. Returns whether the code was right. Wrong codes are counted for each stranger,
    so that no stranger can block others."""
    account, user = source.account, source.user_id
    if (yield from pairing.locked_until(account, user, now)):
        return False
    made_by = yield from pairing.offered(digest, account, now)
    if made_by is None:
        yield from pairing.count_wrong(account, user, now)
        return False
    yield from access.grant(account, user, source.user_name, Role.USER, made_by, now)
    yield from pairing.use_up(digest)
    yield from pairing.withdraw(account, user)
    yield from pairing.forget_wrong(account, user)
    target = Target(account=account, chat_id=source.chat_id)
    yield from deliveries.owe(target, Content(text=WELCOME), DEFAULT_AGENT, None, now)
    return True


async def find_request(store: Store, account: str, code: str) -> PairingRequest:
    """Returns the user who has asked for this code. Raises WrongCode if nobody has asked for it,
    and PairingLocked after too many wrong codes."""
    now = time.time()
    checked = await store.run(
        check_code, hash_code(account, parse_code(code) or code), account, now
    )
    if checked.request is not None:
        return checked.request
    if checked.locked_until is not None or not checked.tries_left:
        seconds = (checked.locked_until or now + pairing.LOCKED_SECONDS) - now
        raise PairingLocked(
            f"there were {pairing.MOST_TRIES} wrong codes for {account}: codes are accepted again"
            f" in {rounded_duration(seconds)}"
        )
    raise WrongCode(
        f"nobody on {account} has this code, or it is older than an hour:"
        f" `hermes pairing list` shows who waits ({checked.tries_left} more tries)"
    )


class Pairing:
    """Answers strangers who write in private chats: pairs them, or gives them pairing codes."""

    def __init__(self, store: Store, access: Access, outbox: Outbox) -> None:
        self._store = store
        self._access = access
        self._outbox = outbox
        self._visits: OrderedDict[tuple[str, str], float] = OrderedDict()
        """The time at which the agent accepted a stranger's invitation to a private chat, by the
        stranger."""

    def visits(self, source: Source) -> bool:
        """Returns whether the invitation of a stranger to a private chat is accepted, so that the
        stranger can be paired there. After an accepted invitation, further invitations of the same
        stranger are refused for some time."""
        user, now = (source.account, source.user_id), time.time()
        if not self._access.offers_pairing(source):
            return False
        if self._visits.get(user, 0.0) > now - pairing.REQUEST_SECONDS:
            return False
        self._visits[user] = now
        self._visits.move_to_end(user)
        if len(self._visits) > pairing.MOST_REQUESTS:
            self._visits.popitem(last=False)
        return True

    async def meet(self, event: MessageEvent) -> None:
        """Pairs a stranger who sends a code of an admin. Any other stranger gets a code to show to
        the operator, if the settings allow that. The message itself is not stored."""
        source, target = event.source, event.origin.reply_to
        private = source.chat_kind == "private" and not source.is_bot
        if not private or target is None or not isinstance(event.body, Said):
            return
        try:
            if not await self._redeem(source, target, event.body.text):
                await self._offer(source, target)
        except UnicodeEncodeError as error:
            log.warning("a stranger on %s has an invalid name: %s", source.account, error)

    async def _redeem(self, source: Source, target: Target, text: str) -> bool:
        code, account, user = parse_code(text), source.account, source.user_id
        if code is None:
            return False
        # Hashing is slow, so it is done only for strangers who are not locked out.
        if await self._store.read(pairing.locked_until, account, user, time.time()) is not None:
            return False
        digest = hash_code(source.account, code)
        paired = await self._store.run(redeem, digest, source, time.time())
        if paired:
            log.info("user %s of %s is paired by a code", source.user_id, source.account)
            self._access.learn(await self._store.read(access.load_people))
            self._outbox.wake(target)
        return paired

    async def _offer(self, source: Source, target: Target) -> None:
        code, account, now = new_code(), source.account, time.time()
        if not self._access.offers_pairing(source) or not await self._store.read(
            pairing.may_request, account, source.user_id, now
        ):
            return
        wanted = PairingRequest(
            account=account,
            user_id=source.user_id,
            user_name=source.user_name,
            chat_id=source.chat_id,
            made_at=now,
        )
        if await self._store.run(pairing.request, hash_code(account, code), wanted):
            log.info("user %s of %s asks to be paired", source.user_id, account)
            self._outbox.send_secret(
                target,
                f"I don't know you yet. Your pairing code is **{code}**. Ask the person who runs"
                f" me to enter `hermes pairing approve {account} {code}` within an hour.",
            )


def pair(command: CommandContext) -> Work[CommandReply]:
    """Makes a code that the admin hands out. A stranger who sends the code is paired."""
    yield from ()
    if command.session.kind != "private":
        reply = "Everybody here would see the code: write /pair to me in a private chat."
        return CommandReply(reply=reply, failed=True)
    account = command.argument.strip() or (command.chat.account if command.chat else "")
    if not account:
        reply = "Name the platform on which the code is used, for example /pair telegram."
        return CommandReply(reply=reply, failed=True)
    code = new_code()
    yield from pairing.offer(hash_code(account, code), account, command.person, command.now)
    return CommandReply(
        reply=f"The pairing code is **{code}**. The first person who sends it to me on {account}"
        " within an hour is paired.",
        secret=True,
    )
