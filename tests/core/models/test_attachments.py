"""Only the attachments that a model accepts are sent. A line of text replaces every other
attachment."""

from collections.abc import Mapping

import aiohttp
import pytest
from msgspec.structs import replace

from hermes.core.models.attachments import (
    MOST_SENT,
    MOST_SENT_BYTES,
    check_attachments,
    suitable,
    with_media,
)
from hermes.core.models.client import ModelClient
from hermes.core.models.openai_chat import OpenAIChat
from hermes.core.models.wires import builtin_wire_formats, wire_formats
from hermes.testing.model import FakeModel
from hermes.testing.samples import PNG
from hermes.testing.upstream import choice_of, request_to
from hermes.types.errors import NotAccepted
from hermes.types.messages import (
    AssistantMessage,
    Attachment,
    AttachmentKind,
    Message,
    UserMessage,
)
from hermes.types.models import ModelRequest

WIRES = wire_formats(builtin_wire_formats())
CHAT = choice_of("chat")
TEXT_ONLY = replace(CHAT, attachments=())
CAT = Attachment(kind="image", path="cat", media_type="image/png", name="cat.png")


def look(*attachments: Attachment, text: str = "Look.") -> UserMessage:
    return UserMessage(text=text, attachments=attachments)


class Files:
    """A fake media cache: maps paths to files, and records the paths that were read."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self.asked: set[str] = set()

    def read(self, path: str) -> bytes | None:
        self.asked.add(path)
        return self._files.get(path)


async def sent(files: Files, *messages: Message, **facts: object) -> ModelRequest:
    request = request_to(replace(CHAT, **facts), *messages)
    return await with_media(request, OpenAIChat(), files.read)


async def test_the_model_is_told_where_a_file_is_saved() -> None:
    report = Attachment(kind="file", path="r", name="r.zip", saved="inbox/1-r.zip")
    voice = Attachment(kind="audio", path="v", media_type="audio/wav", saved="inbox/2-v.wav")
    request = await sent(
        Files({"r": b"zip", "v": b"RIFF"}), look(report, voice), attachments=("audio",)
    )
    (message,) = request.messages
    assert isinstance(message, UserMessage)
    assert message.text == (
        "[file r.zip: saved in the workspace as inbox/1-r.zip; this model can't be sent files]"
        "\n[audio: saved in the workspace as inbox/2-v.wav]\nLook."
    )
    assert [one.path for one in message.attachments] == ["v"]


async def test_a_request_without_attachments_is_not_changed() -> None:
    request = request_to(CHAT, UserMessage(text="hi"))
    assert await with_media(request, OpenAIChat(), Files({}).read) is request


async def test_content_is_loaded_in_base64() -> None:
    request = await sent(Files({"cat": b"meow"}), look(CAT))
    assert dict(request.media) == {"cat": b"bWVvdw=="}
    assert request.messages == [look(CAT)]


async def test_a_deleted_file_becomes_a_line_of_text() -> None:
    message = look(replace(CAT, at=3), replace(CAT, path="dog", name=None, at=3), text="Seethis")
    request = await sent(Files({"dog": b"wow"}), message)
    (shown,) = request.messages
    assert isinstance(shown, UserMessage)
    assert shown.text == "See\n[image cat.png: no longer stored]\nthis"
    (dog,) = shown.attachments
    assert (dog.path, shown.text[dog.at :]) == ("dog", "\nthis")


async def test_content_is_not_loaded_for_a_model_that_does_not_accept_it() -> None:
    files = Files({"cat": b"meow"})
    request = await sent(files, look(CAT), attachments=("audio",))
    assert request.messages == [
        look(text="[image cat.png: this model can't be sent images]\nLook.")
    ]
    assert (request.media, files.asked) == ({}, set())


@pytest.mark.parametrize(
    ("size", "count"), [(1, MOST_SENT), (MOST_SENT_BYTES // 4, 4), (MOST_SENT_BYTES + 1, 0)]
)
async def test_only_the_newest_files_of_a_long_conversation_are_sent(size: int, count: int) -> None:
    many = [replace(CAT, path=f"{number:02}", size=size) for number in range(MOST_SENT + 5)]
    files = Files({one.path: b"x" for one in many})
    request = await sent(files, *(look(one) for one in many))
    assert set(request.media) == files.asked == {one.path for one in many[len(many) - count :]}
    assert "left out, because newer ones came" in request.messages[0].text


async def test_the_same_file_counts_once() -> None:
    again = [look(replace(CAT, size=MOST_SENT_BYTES)) for _ in range(3)]
    request = await sent(Files({"cat": b"x"}), *again)
    assert request.messages == again


def test_attachments_that_a_model_may_accept_are_not_refused() -> None:
    for choice in (CHAT, replace(CHAT, attachments=("image",))):
        check_attachments(choice, WIRES, [look(CAT), AssistantMessage(text="A cat.")])
    check_attachments(TEXT_ONLY, WIRES, [UserMessage(text="hi")])


@pytest.mark.parametrize(
    ("wire", "known", "kind", "code", "told"),
    [
        ("chat", (), "image", "images_not_supported", "setting model.attachments"),
        ("chat", ("image",), "audio", "audio_not_supported", "setting model.attachments"),
        ("chat", ("image",), "file", "files_not_supported", "setting model.attachments"),
        ("responses", None, "audio", "audio_not_supported", "wire format (responses)"),
        ("anthropic", None, "audio", "audio_not_supported", "wire format (anthropic)"),
        ("chat", None, "video", "videos_not_supported", "wire format (chat)"),
    ],
)
def test_the_error_names_the_model_and_says_what_to_do(
    wire: str, known: tuple[AttachmentKind, ...] | None, kind: AttachmentKind, code: str, told: str
) -> None:
    choice = replace(choice_of(wire), attachments=known)
    with pytest.raises(NotAccepted) as caught:
        check_attachments(choice, WIRES, [look(Attachment(kind=kind, path="a"))])
    assert (caught.value.code, caught.value.status) == (code, 400)
    assert "'some-1'" in str(caught.value)
    assert told in str(caught.value)


def test_a_fallback_must_accept_the_files_of_the_last_request() -> None:
    both = [TEXT_ONLY, CHAT]
    now = request_to(CHAT, look(CAT), UserMessage(text="What is it?"))
    answered = request_to(CHAT, look(CAT), AssistantMessage(text="A cat."), look())
    assert suitable(both, WIRES, now) == [CHAT]
    assert suitable(both, WIRES, answered) == both


async def test_a_model_server_gets_the_content() -> None:
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        client = ModelClient(session, WIRES, read_media=Files({"cat": PNG}).read)
        choice = choice_of("chat", model.base_url)
        await client.complete(request_to(choice, look(CAT)), lambda event: None)
        assert model.requests[-1].messages[-1].files == [PNG]
    assert model.stats.refused == {}
