"""The table has the state of each account, and the time at which this state began."""

import anyio

from hermes.control.account_table import AccountTable
from hermes.testing.rows import said
from hermes.types.accounts import AccountState


def table() -> AccountTable:
    return AccountTable(lambda text: text.replace("secret", "***"))


def test_a_state_keeps_its_time_until_another_state_begins() -> None:
    accounts = table()
    accounts.set("chat", "connecting", "cut")
    (before,) = accounts.all()
    accounts.set("chat", "connecting", "cut again")
    (same,) = accounts.all()
    accounts.set("chat", "connected")
    (after,) = accounts.all()
    assert (same.since, same.reason) == (before.since, "cut again")
    assert (after.state, after.reason) == ("connected", "")
    assert after.since > before.since


def test_accounts_that_do_not_receive_messages_are_down() -> None:
    accounts = table()
    accounts.set("a", "connected")
    accounts.set("b", "connecting")
    accounts.set("c", "waiting")
    accounts.set("d", "refused")
    accounts.set("e", "off")
    assert [one.account for one in accounts.all()] == ["a", "b", "c", "d", "e"]
    assert [one.account for one in accounts.down()] == ["b", "d", "e"]


def test_a_reason_contains_no_secret() -> None:
    accounts = table()
    accounts.set("chat", "off", "the token secret is wrong")
    assert accounts.all()[0].reason == "the token *** is wrong"


async def test_a_change_is_announced_and_a_repetition_is_not() -> None:
    accounts, changes = table(), list[str]()

    async def watch() -> None:
        while True:
            await accounts.changed()
            changes.append(accounts.all()[0].state)

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        states: tuple[AccountState, ...] = ("connecting", "connecting", "connected")
        for state in states:
            await anyio.wait_all_tasks_blocked()
            accounts.set("chat", state)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert changes == ["connecting", "connected"]


def test_messages_of_our_own_accounts_are_marked_as_messages_of_bots() -> None:
    accounts, event = table(), said("k")
    assert accounts.marked(event) is event
    accounts.recognize(event.source.platform, event.source.user_id)
    assert accounts.marked(event).source.is_bot
    accounts = table()
    accounts.recognize("elsewhere", event.source.user_id)
    assert accounts.marked(event) is event
