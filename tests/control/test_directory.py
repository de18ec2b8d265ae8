"""A target is the id or the name of a chat, the home chat of an account, or the origin: the chat
that a message came from. An ambiguous name is an error."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.directory import Directory
from hermes.control.targets import BadTarget
from hermes.state import chats
from hermes.testing.platforms import fake_targets
from hermes.testing.rows import NOW, SOURCE
from hermes.testing.stores import open_test_store
from hermes.types.identity import Target

ORIGIN = Target(account="chat", chat_id="5", thread_id="9")


@asynccontextmanager
async def directory(folder: Path, *names: str, home: str = "") -> AsyncIterator[Directory]:
    """Yields a directory in which account `chat` knows groups with these names and the ids 1, 2, …

    `home` is the home chat of `chat` in the settings. The home chat of account `chat.b` is 8.
    """
    async with open_test_store(folder) as store:
        for number, name in enumerate(names, 1):
            source = replace(
                SOURCE,
                platform="chat",
                account="chat",
                chat_kind="group",
                chat_id=str(number),
                chat_name=name,
            )
            await store.run(chats.see, source, NOW + number)
        await store.run(chats.set_home, Target(account="chat.b", chat_id="8"), NOW)
        yield Directory(store, fake_targets("chat", "chat.b", home=home))


async def ids(found: Directory, text: str) -> list[str]:
    return [one.target.chat_id for one in await found.resolve(text, ORIGIN)]


async def test_a_chat_is_found_by_its_id_its_name_or_the_beginning_of_its_name(
    tmp_path: Path,
) -> None:
    async with directory(tmp_path, "Family", "Family trip", "Work") as found:
        assert await ids(found, "chat:Family, chat:wo, chat:#family T, chat:44") == [
            *("1", "3", "2", "44")
        ]
        assert await ids(found, "chat:work,chat:3,chat:Wo") == ["3"]


async def test_a_name_that_several_chats_have_is_not_guessed(tmp_path: Path) -> None:
    async with directory(tmp_path, "Family", "family", "Fam") as found:
        with pytest.raises(BadTarget, match=r"2 chats of chat are named 'FAMILY': write one of"):
            await found.resolve("chat:FAMILY")
        with pytest.raises(BadTarget, match="3 chats"):
            await found.resolve("chat:F")


async def test_an_unknown_name_suggests_a_similar_one(tmp_path: Path) -> None:
    async with directory(tmp_path, "Family") as found:
        with pytest.raises(BadTarget, match="did you mean 'Family'"):
            await found.resolve("chat:Famly")
        with pytest.raises(BadTarget, match="write its id, as in chat:12, or write to the bot"):
            await found.resolve("chat:Zebra")


async def test_a_number_is_an_id_even_if_a_chat_has_that_name(tmp_path: Path) -> None:
    async with directory(tmp_path, "44") as found:
        assert await ids(found, "chat:44") == ["44"]
        assert await ids(found, "chat:#44") == ["1"]


async def test_only_the_origin_home_chats_and_chats_with_messages_count_as_known(
    tmp_path: Path,
) -> None:
    async with directory(tmp_path, "Family", home="6") as found:
        resolved = await found.resolve("origin,chat,chat.b,chat:1,chat:5,chat:6:2,chat:7", ORIGIN)
    assert [(one.text, one.known) for one in resolved] == [
        ("chat:5:9", True),
        ("chat:6", True),
        ("chat.b:8", True),
        ("chat:1", True),
        ("chat:5", True),
        ("chat:6:2", True),
        ("chat:7", False),
    ]


async def test_a_home_in_the_settings_may_be_a_name(tmp_path: Path) -> None:
    async with directory(tmp_path, "Family", home="family") as found:
        assert await ids(found, "chat") == ["1"]


async def test_a_missing_home_or_origin_says_how_to_name_a_chat(tmp_path: Path) -> None:
    async with directory(tmp_path) as found:
        with pytest.raises(BadTarget, match=r"write /sethome in a chat, or set platforms\.chat"):
            await found.resolve("chat")
        with pytest.raises(BadTarget, match="'origin' names no chat here"):
            await found.resolve("origin")


async def test_the_list_contains_home_chats_and_known_chats_of_configured_accounts(
    tmp_path: Path,
) -> None:
    async with directory(tmp_path, "Family", "Work", home="1") as found:
        await found._store.run(chats.mark_gone, "chat", "2", "kicked", NOW)
        await found._store.run(chats.see, replace(SOURCE, account="other"), NOW)
        listed = await found.listed()
    assert [(one.target, one.name, one.home, one.gone) for one in listed] == [
        ("chat.b:8", "", True, ""),
        ("chat:2", "Work", False, "kicked"),
        ("chat:1", "Family", True, ""),
    ]


async def test_an_origin_of_an_account_that_is_not_configured_any_more_is_found(
    tmp_path: Path,
) -> None:
    async with directory(tmp_path) as found:
        gone = Target(account="old", chat_id="1")
        (one,) = await found.resolve("origin", gone)
    assert (one.target, one.text) == (gone, "old:1")
