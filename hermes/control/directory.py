"""Finds the chats that people or the agent name with a target such as `telegram:#Family`."""

from collections.abc import Sequence

from hermes.control.targets import (
    NAME_MARK,
    BadTarget,
    ChatTarget,
    HomeTarget,
    NamedTarget,
    OriginTarget,
    TargetGrammar,
    TargetPlatform,
    TargetSpec,
)
from hermes.state import chats
from hermes.state.chats import KnownChat
from hermes.text.spelling import did_you_mean
from hermes.types.identity import ChatRef, Target
from hermes.types.store import Store, Work
from hermes.types.value import Value


class ListedChat(Value):
    """A chat in the list of possible targets."""

    target: str
    """The target (a text such as `telegram:#Family`) with which a person can name the chat."""
    name: str = ""
    kind: str = ""
    home: bool = False
    """Whether this is the home chat of its account. A target with only the name of the account
    names the home chat."""
    gone: str = ""
    """The reason why nothing can be sent to the chat; empty if messages can be sent."""


class FoundTarget(Value):
    """A chat that a target names."""

    target: Target
    text: str
    """The target in its standard form, such as `telegram:-1001234567890`."""
    known: bool
    """Whether the chat is the origin (the chat that the request came from), a home chat, or a chat
    from which a message has come."""


class Directory:
    """Finds the chats for targets such as `telegram:#Family`. The text after the colon is compared
    first with the ids of the known chats, then with their names, then with the beginnings of their
    names."""

    def __init__(self, store: Store, platforms: Sequence[TargetPlatform]) -> None:
        self._store = store
        self.grammar = TargetGrammar(platforms)

    async def resolve(self, text: str, origin: Target | None = None) -> list[FoundTarget]:
        """Returns the chats that a list of targets names, without duplicates. Raises BadTarget if a
        target names no chat or more than one chat."""
        specs = self.grammar.parse(text)
        seen, homes = await self._store.read(_read)
        found = {
            one.target: one for spec in specs for one in [self._find(spec, seen, homes, origin)]
        }
        return list(found.values())

    async def listed(self) -> list[ListedChat]:
        """Returns the home chats and the chats of the configured accounts, the most recently used
        first."""
        seen, stored = await self._store.read(_read)
        homes = {
            account: home
            for account in self.grammar.accounts
            if (home := self._home(account, seen, stored)) is not None
        }
        own = [chat for chat in seen if chat.account in self.grammar.accounts]
        listed = [
            ListedChat(
                target=self._text(chat.account, ChatRef(chat_id=chat.chat_id)),
                name=chat.name or "",
                kind=chat.kind,
                home=homes.get(chat.account) == ChatRef(chat_id=chat.chat_id),
                gone=chat.gone or "",
            )
            for chat in own
        ]
        texts = {one.target for one in listed}
        others = [
            ListedChat(target=text, home=True)
            for account, home in homes.items()
            if (text := self._text(account, home)) not in texts
        ]
        return [*others, *listed]

    def text_of(self, target: Target) -> str:
        """Returns the text of the target that names the chat."""
        chat = ChatRef(chat_id=target.chat_id, thread_id=target.thread_id)
        return self._text(target.account, chat)

    def _find(
        self,
        spec: TargetSpec,
        seen: Sequence[KnownChat],
        homes: dict[str, ChatRef],
        origin: Target | None,
    ) -> FoundTarget:
        match spec:
            case OriginTarget():
                if origin is None:
                    raise BadTarget(
                        "'origin' names no chat here, because the request did not come from a chat:"
                        " name the platform and the chat."
                    )
                return FoundTarget(target=origin, text=self._safe_text(origin), known=True)
            case HomeTarget(account=account):
                home = self._home(account, seen, homes)
                if home is None:
                    raise BadTarget(self._no_home(account))
                return self._found(account, home, known=True)
            case ChatTarget(account=account, chat=chat):
                ids = {one.chat_id for one in seen if one.account == account}
                home = self._home(account, seen, homes)
                known = chat.chat_id in ids or (home is not None and home.chat_id == chat.chat_id)
                same = origin is not None and (account, chat.chat_id) == (
                    origin.account,
                    origin.chat_id,
                )
                return self._found(account, chat, known=known or same)
            case NamedTarget(account=account, name=name):
                chat = ChatRef(chat_id=self._named(account, name, seen))
                return self._found(account, chat, known=True)

    def _found(self, account: str, chat: ChatRef, *, known: bool) -> FoundTarget:
        target = Target(account=account, chat_id=chat.chat_id, thread_id=chat.thread_id)
        return FoundTarget(target=target, text=self._text(account, chat), known=known)

    def _text(self, account: str, chat: ChatRef) -> str:
        return self.grammar.format(ChatTarget(account=account, chat=chat))

    def _safe_text(self, target: Target) -> str:
        # The account of the chat that the request came from may no longer be in the settings.
        if target.account not in self.grammar.accounts:
            return f"{target.account}:{target.chat_id}"
        return self.text_of(target)

    def _home(
        self, account: str, seen: Sequence[KnownChat], homes: dict[str, ChatRef]
    ) -> ChatRef | None:
        """Returns the home chat of the account: the chat that was chosen with /sethome, or
        otherwise the chat in the settings."""
        if account in homes:
            return homes[account]
        platform = self.grammar.platform_of(account)
        if not platform.home or account != platform.name:
            return None
        if chat := platform.refs.parse(platform.home):
            return chat
        return ChatRef(chat_id=self._named(account, platform.home, seen))

    def _named(self, account: str, name: str, seen: Sequence[KnownChat]) -> str:
        """Returns the id of the chat whose id or name is `name`."""
        own = [one for one in seen if one.account == account]
        if any(one.chat_id == name for one in own):
            return name
        wanted = name.casefold()
        named = [(one.name or "", one.chat_id) for one in own if one.name]
        exact = [id for known, id in named if known.casefold() == wanted]
        begun = [id for known, id in named if known.casefold().startswith(wanted)]
        for ids in (exact, begun):
            if len(ids) == 1:
                return ids[0]
            if ids:
                texts = (self._text(account, ChatRef(chat_id=id)) for id in ids)
                raise BadTarget(
                    f"{len(ids)} chats of {account} are named {name!r}: write one of"
                    f" {', '.join(texts)}."
                )
        near = did_you_mean(name, [known for known, _ in named])
        raise BadTarget(f"{account} has no chat named {name!r}{near or self._how(account)}")

    def _how(self, account: str) -> str:
        example = self.grammar.platform_of(account).refs.example
        form = f"write its id, as in {account}:{example}, or " if example else ""
        return (
            f": {form}write to the bot in that chat once, so that its name is known."
            " `hermes send --list` shows the known chats."
        )

    def _no_home(self, account: str) -> str:
        platform = self.grammar.platform_of(account)
        setting = ""
        if account == platform.name:
            variable = f"{platform.name.upper()}_HOME_CHANNEL"
            setting = f", or set platforms.{platform.name}.home_channel ({variable})"
        return (
            f"{account} has no home chat: write /sethome in a chat{setting}, or name a chat, as in"
            f" {account}:{platform.refs.example or f'{NAME_MARK}NAME'}."
        )


def _read() -> Work[tuple[list[KnownChat], dict[str, ChatRef]]]:
    seen = yield from chats.known()
    homes = yield from chats.homes()
    return seen, homes
