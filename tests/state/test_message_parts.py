"""Albums and long texts arrive in several parts, which are joined into one message. The tests run
on both databases."""

from pathlib import Path

from msgspec.structs import replace

from hermes.state import inbox, message_parts
from hermes.state.message_parts import CUT, FirstPart, awaited
from hermes.testing.rows import NOW, US, said, session
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store
from hermes.types.identity import FolderId
from hermes.types.store import Store

KEY = str(session())


async def put(store: Store, id: str, awaits: str = "", until: float = 0.0) -> None:
    await store.run(inbox.insert, id, said(id), session(), None, US)
    if awaits:
        await store.run(message_parts.wait, id, awaits, until)


def test_albums_and_cut_texts_wait_for_further_parts() -> None:
    assert awaited(said("k")) is None
    assert awaited(replace(said("k"), cut_with="")) == CUT
    assert awaited(replace(said("k"), album="7")) == "album:7"


async def test_a_cut_text_is_continued_only_by_the_next_message_and_only_for_a_while(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        await put(store, "a", CUT, NOW + 1)
        found = await store.run(message_parts.first_part, KEY, said("b"), NOW)
        assert found == FirstPart(id="a", awaits=CUT)
        assert await store.run(message_parts.first_part, KEY, said("b"), NOW + 1) is None
        assert await store.run(message_parts.next_due, NOW) == NOW + 1
        assert await store.run(message_parts.next_due, NOW + 1) is None
        await put(store, "c")
        assert await store.run(message_parts.first_part, KEY, said("b"), NOW) is None


async def test_an_album_is_found_behind_other_messages_and_after_its_time(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await put(store, "a", "album:7", NOW + 1)
        await put(store, "b")
        piece = replace(said("c"), album="7")
        found = await store.run(message_parts.first_part, KEY, piece, NOW + 9)
        assert found == FirstPart(id="a", awaits="album:7")
        other = replace(said("c"), album="8")
        assert await store.run(message_parts.first_part, KEY, other, NOW) is None


async def test_parts_are_read_in_order_and_a_damaged_part_is_left_out(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        for id in ("a", "c", "b"):
            await put(store, id)
        for id in ("b", "c"):
            await store.run(inbox.bind, id, "a")
        found = await store.run(message_parts.parts_of, "a")
        assert [id for id, _ in found] == ["a", "c", "b"]
        await rows(store, "update inbox set crc = 1 where id = 'c' returning id")
        found = await store.run(message_parts.parts_of, "a")
        assert [id for id, _ in found] == ["a", "b"]


async def test_the_folder_of_a_part_belongs_to_the_whole_message(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await put(store, "a")
        await store.run(message_parts.use_folder, "a", FolderId("one"))
        await store.run(message_parts.use_folder, "a", FolderId("two"))
        assert await rows(store, "select folder from inbox") == [("one",)]
