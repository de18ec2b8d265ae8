"""Finds the command in a message, and the command that was meant."""

import re
from collections.abc import Collection, Mapping

from hermes.text.spelling import nearest
from hermes.types.value import Value

_COMMAND = re.compile(r"([^\W\d_][\w-]*)(?:@(\w+))?(?:\s+(.*))?", re.DOTALL)


class Command(Value):
    name: str
    """In lower case, without the prefix."""
    argument: str = ""
    """All that follows, line breaks included."""
    bot: str = ""
    """Whom a group's command is for, as in `/new@our_bot`; empty for anybody."""


class Unknown(Value, tag=True):
    nearest: str | None = None
    """What may have been meant."""


class Ambiguous(Value, tag=True):
    candidates: tuple[str, ...]


def parse_command(text: str, prefix: str = "/") -> Command | None:
    """The command a message is; None for words, for a path, and for a doubled prefix."""
    text = text.strip()
    if not text.startswith(prefix):
        return None
    found = _COMMAND.fullmatch(text, len(prefix))
    if not found:
        return None
    name, bot, argument = found.groups(default="")
    return Command(name=name.lower(), argument=argument, bot=bot)


def unescaped(text: str, prefix: str = "/") -> str:
    """The words meant by a message that doubles the prefix so as not to be a command."""
    start = text.lstrip()
    return start.removeprefix(prefix) if start.startswith(prefix * 2) else text


def resolve(name: str, names: Mapping[str, Collection[str]]) -> str | Unknown | Ambiguous:
    """The command meant by a name, an alias, or the beginning of just one command's."""
    owners = {alias: owner for owner, aliases in names.items() for alias in aliases}
    owners |= {owner: owner for owner in names}
    name = name.lower()
    if name in owners:
        return owners[name]
    begun = sorted({owner for word, owner in owners.items() if name and word.startswith(name)})
    match begun:
        case []:
            near = nearest(name, owners)
            return Unknown(nearest=owners[near] if near else None)
        case [only]:
            return only
        case _:
            return Ambiguous(candidates=tuple(begun))
