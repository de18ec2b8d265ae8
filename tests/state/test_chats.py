"""The store keeps the names of chats, the chats that are gone, and the home chats."""

from pathlib import Path

from msgspec.structs import replace

from hermes.state import chats
from hermes.state.chats import KnownChat
from hermes.testing.rows import CHAT, NOW, SOURCE
from hermes.testing.stores import open_test_store
from hermes.types.identity import ChatRef, Target


async def test_a_chat_keeps_its_last_name(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        group = replace(SOURCE, chat_kind="group", chat_id="-1", chat_name="Old", user_name="Ann")
        for source in (group, replace(group, chat_name="New\0"), replace(group, chat_name=None)):
            await store.run(chats.see, source, NOW)
        await store.run(chats.see, replace(SOURCE, user_name="Ann"), NOW + 1)
        assert await store.run(chats.known) == [
            KnownChat(
                account="telegram",
                chat_id="7",
                kind="private",
                name="Ann",
                seen_at=NOW + 1,
                gone=None,
            ),
            KnownChat(
                account="telegram",
                chat_id="-1",
                kind="group",
                name="New\ufffd",
                seen_at=NOW,
                gone=None,
            ),
        ]


async def test_a_message_from_a_chat_shows_that_the_chat_is_not_gone(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(chats.mark_gone, CHAT.account, CHAT.chat_id, "blocked", NOW)
        await store.run(chats.mark_gone, CHAT.account, CHAT.chat_id, "kicked", NOW)
        assert await store.run(chats.gone_reason, CHAT.account, CHAT.chat_id) == "kicked"
        await store.run(chats.see, SOURCE, NOW)
        assert await store.run(chats.gone_reason, CHAT.account, CHAT.chat_id) is None


async def test_the_last_home_of_an_account_is_kept(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(chats.set_home, CHAT, NOW)
        await store.run(chats.set_home, Target(account="telegram", chat_id="8", thread_id="2"), NOW)
        await store.run(chats.set_home, Target(account="matrix", chat_id="!a:b"), NOW)
        assert await store.run(chats.homes) == {
            "telegram": ChatRef(chat_id="8", thread_id="2"),
            "matrix": ChatRef(chat_id="!a:b"),
        }
