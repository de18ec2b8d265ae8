"""The files of chat messages are stored before the messages are accepted."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.chat_files import accept_with_files
from hermes.control.media import MediaIntake
from hermes.state.media import MediaCache
from hermes.testing.adapters import Listener
from hermes.testing.platforms import Update, to_event
from hermes.testing.samples import PNG
from hermes.types.errors import Disconnected, Rejected
from hermes.types.execution import LARGEST_FILE
from hermes.types.messages import Attachment, MessageEvent, Said
from hermes.types.web import WebFile

PHOTO = Attachment(kind="image", path="id-1", media_type="image/jpeg", name="photo.jpg")


def event(*files: Attachment) -> MessageEvent:
    made = to_event(Update(id=1, chat="1", user="7", text=""), "plain")
    return replace(made, body=Said(text="look", attachments=files))


class Intake:
    """The media cache of a gateway, and a fake platform from which the gateway downloads files."""

    def __init__(self, folder: Path) -> None:
        self.cache = MediaCache(folder)
        self.listener = Listener()
        self.fetched: list[str] = []
        self.content: dict[str, bytes | Exception] = {}
        self.admitting = True

    async def fetch(self, attachment: Attachment) -> bytes:
        self.fetched.append(attachment.path)
        found = self.content[attachment.path]
        if isinstance(found, Exception):
            raise found
        return found

    async def accept(self, event: MessageEvent) -> Said:
        async def download(url: str, limit: int) -> WebFile:
            raise AssertionError("no file may be downloaded by URL")

        media = MediaIntake(self.cache, download)
        accept = accept_with_files(
            self.listener.accept, lambda event: self.admitting, media, self.fetch
        )
        await accept(event)
        body = self.listener.heard[-1].body
        assert isinstance(body, Said)
        return body


@pytest.fixture
def intake(tmp_path: Path) -> Intake:
    return Intake(tmp_path)


async def test_a_file_is_stored_with_its_real_type(intake: Intake) -> None:
    intake.content = {"id-1": PNG}
    (stored,) = (await intake.accept(event(PHOTO))).attachments
    assert intake.cache.read(stored.path) == PNG
    assert (stored.kind, stored.media_type, stored.size) == ("image", "image/png", len(PNG))
    assert stored.name == "photo.jpg"


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("report 1.pdf", "report_1.pdf"),
        ("../../etc/passwd", "etc_passwd"),
        (".env", "env"),
        ("..", "file"),
        ("Übersicht.txt", "Übersicht.txt"),
        ("x" * 300 + ".txt", "x" * 56 + ".txt"),
        (None, "file"),
    ],
)
async def test_a_file_gets_a_safe_path_in_the_workspace(
    intake: Intake, name: str | None, saved: str
) -> None:
    intake.content = {"id-1": b"some text"}
    (stored,) = (await intake.accept(event(replace(PHOTO, kind="file", name=name)))).attachments
    digest = stored.path.removeprefix("sessions/")[:12]
    assert stored.saved == f"inbox/{digest}-{saved}"


@pytest.mark.parametrize("content", [PNG, b"x" * (LARGEST_FILE + 1)])
async def test_images_and_very_large_files_are_not_copied_into_the_workspace(
    intake: Intake, content: bytes
) -> None:
    intake.content = {"id-1": content}
    (stored,) = (await intake.accept(event(PHOTO))).attachments
    assert stored.saved == ""


async def test_a_file_that_is_no_image_is_not_called_one(intake: Intake) -> None:
    intake.content = {"id-1": b"MZ not an image"}
    (stored,) = (await intake.accept(event(PHOTO))).attachments
    assert stored.kind == "file"


async def test_a_file_that_can_not_be_downloaded_is_named_in_the_text(intake: Intake) -> None:
    second = Attachment(kind="file", path="id-2", name="b.txt")
    intake.content = {"id-1": Rejected("it is gone"), "id-2": b"text"}
    body = await intake.accept(event(PHOTO, second))
    assert body.text == "look\n\n[image photo.jpg was not received: it is gone]"
    assert [file.name for file in body.attachments] == ["b.txt"]


async def test_a_lost_connection_keeps_the_message_from_being_acknowledged(
    intake: Intake,
) -> None:
    intake.content = {"id-1": Disconnected("cut")}
    with pytest.raises(Disconnected):
        await intake.accept(event(PHOTO))
    assert intake.listener.heard == []


async def test_files_of_strangers_are_not_downloaded(intake: Intake) -> None:
    intake.admitting = False
    await intake.accept(event(PHOTO))
    assert intake.fetched == []
