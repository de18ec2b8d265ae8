"""Parses slash commands in messages, and resolves their names."""

import re
from collections.abc import Collection, Mapping

from hermes.text.spelling import nearest
from hermes.types.value import Value

_COMMAND = re.compile(r"([^\W\d_][\w-]*)(?:@(\w+))?(?:\s+(.*))?", re.DOTALL)


class Command(Value):
    name: str
    """The name in lower case, without the prefix."""
    argument: str = ""
    """The text after the name, with its line breaks."""
    bot: str = ""
    """The bot that a command in a group addresses, as in `/new@our_bot`; empty if the command names
    no bot."""


class Unknown(Value, tag=True):
    nearest: str | None = None
    """The known command with the most similar name; None if no name is similar."""


class Ambiguous(Value, tag=True):
    candidates: tuple[str, ...]


def parse_command(text: str, prefix: str = "/") -> Command | None:
    """Parses a message. Returns None if it is not a command, but plain text, a path such as
    `/tmp/file`, or a text that begins with two prefixes."""
    text = text.strip()
    if not text.startswith(prefix):
        return None
    found = _COMMAND.fullmatch(text, len(prefix))
    if not found:
        return None
    name, bot, argument = found.groups(default="")
    return Command(name=name.lower(), argument=argument, bot=bot)


def unescaped(text: str, prefix: str = "/") -> str:
    """If a message begins with two prefixes, which mark it as plain text, removes one of them."""
    start = text.lstrip()
    return start.removeprefix(prefix) if start.startswith(prefix * 2) else text


def as_slash_command(text: str, prefix: str) -> str:
    """If the text is a command with this prefix, returns it as a slash command. Returns any other
    text unchanged."""
    is_command = parse_command(text, prefix) is not None
    return "/" + text.strip().removeprefix(prefix) if is_command else text


def resolve(name: str, names: Mapping[str, Collection[str]]) -> str | Unknown | Ambiguous:
    """Returns the command with this name or alias. `name` may also be the beginning of a name or
    alias. Returns Ambiguous if the names or aliases of several commands begin with `name`, and
    Unknown if none begins with it."""
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
