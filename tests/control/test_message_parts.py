"""The parts of a message are joined in the order of their arrival."""

from msgspec.structs import replace

from hermes.control.message_parts import MOST_ALBUMS, AddressedAlbums, joined
from hermes.testing.rows import said
from hermes.types.messages import Attachment, MessageEvent, Said


def part(text: str, file: str = "", cut_with: str | None = None) -> MessageEvent:
    files = (Attachment(kind="image", path=file),) if file else ()
    return replace(said("k"), body=Said(text=text, attachments=files), cut_with=cut_with)


def test_texts_are_joined_where_they_were_cut_and_files_keep_their_places() -> None:
    whole = joined([part("one tw", cut_with=""), part("o", "a", cut_with="\n"), part("three", "b")])
    assert isinstance(whole.body, Said)
    assert whole.body.text == "one two\nthree"
    assert [(file.path, file.at) for file in whole.body.attachments] == [("a", 6), ("b", 8)]


def test_the_captions_of_an_album_are_paragraphs() -> None:
    whole = joined([part("", "a"), part("one", "b"), part("", "c"), part("two", "d")])
    assert isinstance(whole.body, Said)
    assert whole.body.text == "one\n\ntwo"
    assert len(whole.body.attachments) == 4


def test_the_newest_albums_are_remembered_with_their_sender() -> None:
    albums = AddressedAlbums()
    first = replace(said("k"), album="first")
    albums.note(said("k"))
    assert said("k") not in albums
    albums.note(first)
    assert first in albums
    assert replace(first, source=replace(first.source, user_id="43")) not in albums
    for number in range(MOST_ALBUMS):
        albums.note(replace(first, album=str(number)))
    assert first not in albums
