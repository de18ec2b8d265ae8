"""`hermes gateway status` has a line about each chat account."""

from hermes.entry.cli.account_lines import account_lines
from hermes.entry.cli.sessions import when
from hermes.types.accounts import AccountStatus


def test_each_account_has_a_line_with_its_state_and_the_reason() -> None:
    assert account_lines([]) == []
    lines = account_lines(
        [
            AccountStatus(account="telegram", state="connected", since=0.0),
            AccountStatus(account="telegram.b", state="off", since=60.0, reason="bad token"),
        ]
    )
    assert lines == [
        f"  telegram    connected since {when(0.0)}",
        f"  telegram.b  off since {when(60.0)}: bad token",
    ]
