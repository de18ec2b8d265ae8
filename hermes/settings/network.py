"""Reads `terminal.network`, the hosts that commands in a sandbox can connect to."""

import re
from urllib.parse import urlsplit

from hermes.settings.terminal import TerminalSettings
from hermes.types.execution import NetworkPolicy

_HOST = re.compile(r"(?:\*\.)?[a-z0-9_][a-z0-9._-]{0,252}|[0-9a-f:.]{2,45}", re.IGNORECASE)
_MODES = ("none", "open")


def network_policy(terminal: TerminalSettings) -> NetworkPolicy:
    """Returns the network policy that the settings describe. Before this call, the caller must
    check with `network_problems` that these settings have no mistakes."""
    match terminal.network:
        case () | ("none",):
            return NetworkPolicy()
        case ("open",):
            return NetworkPolicy(mode="open")
        case hosts:
            return NetworkPolicy(mode="hosts", hosts=tuple(host.lower() for host in hosts))


def network_problems(terminal: TerminalSettings) -> list[str]:
    """Returns the mistakes in `terminal.network`."""
    names = terminal.network
    mixed = [name for name in names if name in _MODES]
    if mixed and len(names) > 1:
        return [f"terminal.network: {mixed[0]!r} can't be in a list: use it alone, or list hosts"]
    return [
        f"terminal.network: {name!r} is not a host name{_suggestion(name)}"
        for name in names
        if not _HOST.fullmatch(name) or _is_place(name)
    ]


def _is_place(name: str) -> bool:
    """Returns whether the name is a host with a port."""
    return name.count(":") == 1


def _suggestion(name: str) -> str:
    try:
        host = urlsplit(name if "//" in name else f"//{name}").hostname
    except ValueError:
        host = None
    return f": write {host!r}" if host and _HOST.fullmatch(host) else ", such as 'example.org'"
