"""The grammar of targets: the text with which people and tools name the chats to send to.

A list of targets is separated by commas. Each target is one of these:

    origin                  the chat that the request came from
    telegram                the home chat of the platform
    telegram.support        the home chat of another account
    telegram:-100123:17     a chat, and a thread in it, in the form of the platform
    telegram:#Family        a chat by its name, with or without the `#`

A comma or a backslash inside a target is written with a backslash before it.
"""

import re
from collections.abc import Iterator, Sequence

from hermes.text.spelling import did_you_mean
from hermes.types.errors import Rejected
from hermes.types.identity import ChatRef
from hermes.types.platforms import ChatRefs
from hermes.types.value import Value

ORIGIN = "origin"
NAME_MARK = "#"
_ITEM = re.compile(r"(?:[^,\\]|\\.|\\$)*", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"([,\\])")


class BadTarget(Rejected):
    """Raised if the text of a target names no chat that a message can be sent to. The message says
    what to write instead."""

    code = "bad_target"


class TargetPlatform(Value):
    """An installed platform: its accounts, and the text form of its chats."""

    name: str
    accounts: tuple[str, ...]
    """The configured accounts. Empty if the platform is not configured."""
    refs: ChatRefs = ChatRefs()
    home: str = ""
    """The home chat of the default account, as the settings name it; empty if they name none."""


class OriginTarget(Value, tag=True):
    """The chat that the request came from."""


class HomeTarget(Value, tag=True):
    """The home chat of an account: the chat that the operator has chosen for messages whose target
    names only the account."""

    account: str


class ChatTarget(Value, tag=True):
    """A chat that is named by its id."""

    account: str
    chat: ChatRef


class NamedTarget(Value, tag=True):
    """A chat that is given by its name, or by an id in a form that its platform can't parse."""

    account: str
    name: str


TargetSpec = OriginTarget | HomeTarget | ChatTarget | NamedTarget


class TargetGrammar:
    """Converts texts to targets, and targets to texts. If `parse` gets the text that `format`
    returned for a target, it returns the same target."""

    def __init__(self, platforms: Sequence[TargetPlatform]) -> None:
        self.platforms = {platform.name: platform for platform in platforms}
        self._accounts = {
            account: platform for platform in platforms for account in platform.accounts
        }

    @property
    def accounts(self) -> tuple[str, ...]:
        """All configured accounts."""
        return tuple(self._accounts)

    def platform_of(self, account: str) -> TargetPlatform:
        return self._accounts[account]

    def parse(self, text: str) -> list[TargetSpec]:
        """Reads a list of targets. If a target is wrong, raises a BadTarget that says how to
        correct it."""
        items = [item.strip() for item in _items(text)]
        if not any(items):
            raise BadTarget(f"No target is named. {self._advice()}")
        return [self._parse_one(item) for item in items if item]

    def format(self, spec: TargetSpec) -> str:
        match spec:
            case OriginTarget():
                return ORIGIN
            case HomeTarget(account=account):
                return _escaped(account)
            case ChatTarget(account=account, chat=chat):
                return _escaped(f"{account}:{self._accounts[account].refs.format(chat)}")
            case NamedTarget(account=account, name=name):
                return _escaped(f"{account}:{NAME_MARK}{name}")

    def _parse_one(self, item: str) -> TargetSpec:
        if item.casefold() == ORIGIN:
            return OriginTarget()
        head, colon, ref = (part.strip() for part in item.partition(":"))
        account = self._account(head)
        if not colon:
            return HomeTarget(account=account)
        if ref.startswith(NAME_MARK) and (name := ref.removeprefix(NAME_MARK).strip()):
            return NamedTarget(account=account, name=name)
        if chat := self._accounts[account].refs.parse(ref):
            return ChatTarget(account=account, chat=chat)
        if not ref:
            raise BadTarget(f"The target {item!r} names no chat. {self._advice(account)}")
        return NamedTarget(account=account, name=ref)

    def _account(self, name: str) -> str:
        """Returns the account that the first part of a target names. This part is the name of an
        account or of a platform."""
        named = {account.casefold(): account for account in self._accounts}
        if account := named.get(name.casefold()):
            return account
        platform = self.platforms.get(name.casefold())
        if platform is None:
            known = (ORIGIN, *self._accounts, *self.platforms)
            near = did_you_mean(name, known)
            raise BadTarget(f"{name!r} is no platform{near or f'. {self._advice()}'}")
        if not platform.accounts:
            raise BadTarget(f"{name} is not configured: set its credentials, and try again.")
        if len(platform.accounts) > 1:
            raise BadTarget(
                f"{name} has no default account: name one of {', '.join(platform.accounts)}."
            )
        return platform.accounts[0]

    def _advice(self, account: str | None = None) -> str:
        account = account or next(iter(self._accounts), None)
        if account is None:
            return "No chat platform is configured."
        example = self._accounts[account].refs.example or "NAME"
        return f"Write {account} for its home chat, or {account}:{example} for another chat."


def _items(text: str) -> Iterator[str]:
    """Yields the targets of a list, without the backslashes before special characters."""
    start = 0
    while start <= len(text):
        found = _ITEM.match(text, start)
        assert found is not None, "the pattern matches the empty text"
        yield _ESCAPED.sub(r"\1", found[0])
        start = found.end() + 1


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
