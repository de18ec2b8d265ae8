"""Deliveries record their content and the messages that were placed on the platform."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.state import deliveries, owners, turns
from hermes.testing.rows import CHAT, NOW, THEM, US, hold_account, turn_row
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store
from hermes.testing.tables import DeliveriesContract
from hermes.types.delivery import Delivery, Placed
from hermes.types.identity import Target, TurnId
from hermes.types.messages import Attachment, Choices, Content, MessageRef
from hermes.types.store import OwnerKind, Store, Work

CONTENT = Content(
    text="**bold**",
    attachments=(Attachment(kind="file", path="/tmp/a.txt", name="a.txt"),),
    choices=(Choices(question="q1", prompt="Tea?", labels=("yes", "no"), text="Tea? yes, no"),),
)
PLACED = (Placed(ref=MessageRef(id="m1"), text="bold", final=True),)


class TestDeliveries(DeliveriesContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)


async def test_a_delivery_is_read_back_unchanged(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        epoch = await store.run(owners.claim_lease, f"account:{CHAT.account}", US, set(), NOW)
        assert epoch is not None
        target = Target(account=CHAT.account, chat_id=CHAT.chat_id, thread_id="9")
        id = await store.run(deliveries.owe, target, CONTENT, "main", None, NOW)
        where = (CHAT.account, CHAT.chat_id, (US, epoch), NOW)
        taken = await store.run(deliveries.take_next, *where)
        assert taken == Delivery(id=id, target=target, state="sending", content=CONTENT, attempts=1)


async def test_a_failed_attempt_keeps_the_messages_that_it_has_placed(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        epoch = await store.run(owners.claim_lease, f"account:{CHAT.account}", US, set(), NOW)
        assert epoch is not None
        where = (CHAT.account, CHAT.chat_id, (US, epoch), NOW)
        id = await store.run(deliveries.owe, CHAT, CONTENT, "main", None, NOW)
        await store.run(deliveries.take_next, *where)
        await store.run(deliveries.put_back, id, 1, PLACED, NOW, doubtful=False)
        again = await store.run(deliveries.take_next, *where)
        assert again is not None
        assert (again.placed, again.doubtful, again.attempts) == (PLACED, False, 2)


async def test_an_older_delivery_of_the_chat_comes_first(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        first = await store.run(deliveries.owe, CHAT, CONTENT, "main", None, NOW)
        second = await store.run(deliveries.owe, CHAT, CONTENT, "main", None, NOW)
        assert not await store.run(deliveries.owed_before, first)
        assert await store.run(deliveries.owed_before, second)
        lease = await hold_account(store)
        await store.run(deliveries.take_next, CHAT.account, CHAT.chat_id, lease, NOW)
        await store.run(deliveries.mark_delivered, first, 1, PLACED, NOW)
        assert not await store.run(deliveries.owed_before, second)


async def test_a_pause_can_only_be_extended(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        for until in (NOW + 5, NOW + 9, NOW + 7):
            await store.run(deliveries.freeze, "chat", "1", until)
        assert await store.run(deliveries.freezes, "chat", NOW) == {"1": NOW + 9}
        assert await store.run(deliveries.freezes, "chat", NOW + 9) == {}


async def test_a_late_write_of_an_earlier_attempt_has_no_effect(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        lease = await hold_account(store)
        where = (CHAT.account, CHAT.chat_id, lease, NOW)
        id = await store.run(deliveries.owe, CHAT, CONTENT, "main", None, NOW)
        await store.run(deliveries.take_next, *where)
        # From here on, the test acts as another process that takes over the account and sends the
        # delivery again.
        await store.run(deliveries.doubt_sending, CHAT.account)
        again = await store.run(deliveries.take_next, *where)
        # The first attempt may have sent the message, so the second attempt must mark its message
        # as a possible repeat.
        assert again is not None
        assert again.doubtful
        late: list[Callable[[], Work[object]]] = [
            lambda: deliveries.put_back(id, 1, (), 0, doubtful=True),
            lambda: deliveries.mark_placed(id, 1, PLACED),
            lambda: deliveries.mark_delivered(id, 1, PLACED, NOW + 1),
            lambda: deliveries.mark_dead(id, 1, "late", NOW + 1),
        ]
        before = await rows(store, "select * from deliveries")
        for write in late:
            await store.run(write)
            assert await rows(store, "select * from deliveries") == before


async def test_the_old_preview_of_a_turn_that_was_taken_over_has_no_effect(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(turns.insert, turn_row("t1"), "main", "7")
        id = await store.run(deliveries.owe, CHAT, None, "main", TurnId("t1"), NOW)
        await store.run(deliveries.mark_previewed, id, 1, PLACED)
        await store.run(turns.claim, TurnId("t1"), 1, THEM)
        await store.run(deliveries.mark_previewed, id, 1, ())
        found = await store.read(deliveries.open_of, TurnId("t1"))
        assert found is not None
        assert found.placed == PLACED


async def test_a_message_is_stored_once_for_each_key(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        first = await store.run(deliveries.send_once, "k", CHAT, CONTENT, "main", "s", NOW)
        again = await store.run(deliveries.send_once, "k", CHAT, CONTENT, "main", None, NOW)
        other = await store.run(deliveries.send_once, "k2", CHAT, CONTENT, "main", None, NOW)
        assert first == again != other
        assert await rows(
            store, "select send_key, session, state from deliveries order by seq"
        ) == [
            ("k", "s", "ready"),
            ("k2", None, "ready"),
        ]
        assert (await store.run(deliveries.receipt, first)).state == "ready"
        assert (await store.run(deliveries.receipt, "deleted long ago")).state == "delivered"


async def test_a_chat_that_is_gone_has_only_dead_deliveries(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        waiting = await store.run(deliveries.owe, CHAT, CONTENT, "main", None, NOW)
        elsewhere = Target(account=CHAT.account, chat_id="8")
        other = await store.run(deliveries.owe, elsewhere, CONTENT, "main", None, NOW)
        where = (CHAT.account, CHAT.chat_id)
        await store.run(deliveries.give_up_chat, *where, "kicked", NOW)
        new = await store.run(deliveries.send_once, "k", CHAT, CONTENT, "main", None, NOW)
        for id in (waiting, new):
            found = await store.run(deliveries.receipt, id)
            assert (found.state, found.error) == ("dead", "kicked")
        assert (await store.run(deliveries.receipt, other)).state == "ready"


async def test_only_the_present_attempt_can_refuse_a_file(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        epoch = await store.run(owners.claim_lease, f"account:{CHAT.account}", US, set(), NOW)
        assert epoch is not None
        await store.run(deliveries.owe, CHAT, CONTENT, "main", None, NOW)
        where = (CHAT.account, CHAT.chat_id, (US, epoch), NOW)
        old = await store.run(deliveries.take_next, *where)
        present = await store.run(deliveries.take_next, *where)
        assert old is not None
        assert present is not None
        notice = Content(text="(a.txt could not be sent)")
        for delivery, count in ((old, 1), (present, 2), (present, 2)):
            await store.run(deliveries.refuse_file, delivery, "too large", notice, NOW)
            assert len(await rows(store, "select 1 from deliveries")) == count
        assert (await store.run(deliveries.receipt, present.id)).error == "too large"
