"""Describes the chat accounts of a gateway, for `hermes gateway status`."""

from collections.abc import Sequence

from hermes.entry.cli.sessions import when
from hermes.types.accounts import AccountStatus


def account_lines(accounts: Sequence[AccountStatus]) -> list[str]:
    """Returns a line for each account: its name, its state, and the reason for the state."""
    width = max((len(one.account) for one in accounts), default=0)
    return [
        f"  {one.account:<{width}}  {one.state} since {when(one.since)}"
        + (f": {one.reason}" if one.reason else "")
        for one in accounts
    ]
