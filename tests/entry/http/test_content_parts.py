"""Images and other files in a request are passed from OpenAI's own client to the model."""

import base64
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types.chat import ChatCompletionContentPartParam, ChatCompletionMessageParam

from hermes.boundary.egress import Egress
from hermes.core.models.attachments import MOST_SENT, MOST_SENT_BYTES
from hermes.entry.http.content_parts import (
    LARGEST_ATTACHMENT,
    MOST_ATTACHED_BYTES,
    MOST_ATTACHMENTS,
    ContentPart,
    collect,
    data_url,
    user_message,
)
from hermes.entry.http.errors import ApiError
from hermes.testing.openai_client import KITCHEN, client_of
from hermes.testing.running import rows, until
from hermes.testing.samples import GIF, JPEG, MP3, PDF, PNG, SAMPLES, WAV, WEBP, as_data_url
from hermes.testing.service import TEST_OVERRIDES, serving
from hermes.testing.sites import answer
from hermes.testing.sites import serving as serving_site
from hermes.testing.upstream import STREAM, answering
from hermes.testing.vendors import check
from hermes.types.errors import Rejected
from hermes.types.messages import Attachment, UserMessage
from hermes.types.web import WebFile

LOCAL_DOWNLOADS = replace(
    TEST_OVERRIDES, download=Egress(allowed=lambda address, port: True).download
)
"""Options of a gateway that may fetch files from this machine, which is otherwise forbidden."""
PAYLOADS = Path(__file__).parents[2] / "core" / "models" / "payloads"


def asks(*parts: ChatCompletionContentPartParam) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, *parts]}]


def image(url: str = "", data: bytes = PNG) -> ChatCompletionContentPartParam:
    return {
        "type": "image_url",
        "image_url": {"url": url or as_data_url("image/png", data), "detail": "low"},
    }


def audio(data: bytes = WAV) -> ChatCompletionContentPartParam:
    encoded = base64.b64encode(data).decode()
    return {"type": "input_audio", "input_audio": {"data": encoded, "format": "wav"}}


def file(media_type: str, data: bytes, name: str = "note") -> ChatCompletionContentPartParam:
    return {
        "type": "file",
        "file": {"file_data": as_data_url(media_type, data), "filename": name},
    }


@given(st.binary(max_size=300), st.sampled_from(["", ";charset=utf-8", ";a=b;c=d"]))
def test_a_data_url_can_contain_any_content(data: bytes, options: str) -> None:
    encoded = base64.b64encode(data).decode()
    for head in ("data:image/png", "DATA:Image/PNG"):
        assert data_url(f"{head}{options};base64,{encoded}", "x") == ("image/png", data)


@given(st.text() | st.text().map("data:image/png;base64,".__add__))
def test_any_text_is_either_content_or_a_bad_request(text: str) -> None:
    data = b""
    with suppress(ApiError):
        _, data = data_url(text, "here")
    assert base64.b64encode(data).decode() in ("", text.partition(",")[2])


@given(st.binary(min_size=1, max_size=60), st.integers(0, 80), st.sampled_from("!%-_ \n=é"))
def test_broken_base64_is_a_bad_request(data: bytes, at: int, wrong: str) -> None:
    encoded = base64.b64encode(data).decode()
    broken = encoded[: at % len(encoded)] + wrong + encoded[at % len(encoded) :]
    with pytest.raises(ApiError, match="not valid base64"):
        data_url(f"data:image/png;base64,{broken}", "x")


class Shelf:
    """A fake media intake: it keeps files in memory, and returns prepared files for some URLs."""

    def __init__(self, files: Mapping[str, WebFile] | None = None) -> None:
        self._files = files or {}
        self.kept: list[bytes] = []

    async def fetch(self, url: str, limit: int) -> WebFile:
        assert limit == LARGEST_ATTACHMENT
        if url not in self._files:
            raise Rejected(f"{url!r} can't be fetched.")
        return self._files[url]

    async def keep(self, data: bytes, *, stateless: bool) -> str:
        self.kept.append(data)
        return f"{stateless}/{len(self.kept)}"


def parts_of(*parts: object) -> dict[int, list[ContentPart]]:
    return {3: msgspec.convert(parts, list[ContentPart])}


async def refusal(*parts: object, shelf: Shelf | None = None) -> tuple[str, str | None]:
    with pytest.raises(ApiError) as caught:
        await collect(shelf or Shelf(), parts_of(*parts), stateless=True)
    assert caught.value.status == 400
    return caught.value.code, caught.value.param


@pytest.mark.parametrize("media_type", SAMPLES)
async def test_every_accepted_type_is_recognised_by_its_content(media_type: str) -> None:
    shelf, content = Shelf(), SAMPLES[media_type]
    if media_type.startswith("audio/"):
        encoded = base64.b64encode(content).decode()
        form = "wav" if media_type == "audio/wav" else "mp3"
        part: object = {"type": "input_audio", "input_audio": {"data": encoded, "format": form}}
    elif media_type.startswith("image/"):
        part = image(as_data_url(media_type, content))
    else:
        part = file(media_type, content)
    attached = await collect(shelf, parts_of(part), stateless=False)
    found = attached[3, 0]
    assert isinstance(found, Attachment)
    assert (found.media_type, found.size, found.path) == (media_type, len(content), "False/1")
    assert shelf.kept == [content]


@pytest.mark.parametrize("media_type", SAMPLES)
async def test_content_of_another_type_is_refused(media_type: str) -> None:
    for content in {PNG, JPEG, GIF, WEBP, WAV, MP3, PDF, b"<svg/>"} - {SAMPLES[media_type]}:
        kind = "image" if media_type.startswith("image/") else "file"
        part = image(as_data_url(media_type, content)) if kind == "image" else audio(content)
        if media_type == "application/pdf":
            part = file(media_type, content)
        elif content == WAV and kind == "file":
            continue
        code, _ = await refusal(part)
        assert code == "media_type_mismatch"


async def test_the_error_names_the_wrong_part() -> None:
    good, where = image(), "messages[3].content[1]"
    url, data = f"{where}.image_url.url", f"{where}.file.file_data"
    uploaded = {"type": "file", "file": {"file_id": "f"}}
    cases: list[tuple[object, str, str]] = [
        (image("data:image/png;base64,!"), "invalid_base64", url),
        (image("data:image/png,x"), "invalid_data_url", url),
        (image("file:///etc/passwd"), "invalid_data_url", url),
        (image("data:image/png;base64,"), "empty_attachment", url),
        (image(as_data_url("image/svg+xml", b"<svg/>")), "unsupported_media_type", url),
        (image(as_data_url("application/pdf", PDF)), "unsupported_media_type", url),
        (image("http://gone.example/a.png"), "url_not_fetched", url),
        (file("application/zip", b"PK"), "unsupported_media_type", data),
        (file("image/png", PNG), "unsupported_media_type", data),
        (uploaded, "file_id_not_supported", f"{where}.file.file_id"),
        ({"type": "file", "file": {}}, "invalid_request", where),
        ({"type": "image_url"}, "invalid_request", where),
        ({"type": "input_audio"}, "invalid_request", where),
        ({"type": "video_url"}, "unsupported_content_type", "messages[3].content"),
    ]  # fmt: skip
    for part, code, param in cases:
        assert await refusal(good, part) == (code, param)


async def test_a_text_file_must_be_text() -> None:
    latin = file("text/plain", "Grüße".encode("latin-1"))
    assert await refusal(latin) == ("media_type_mismatch", "messages[3].content[0]")


async def test_the_number_and_the_size_of_attachments_are_limited() -> None:
    shelf = Shelf()
    many = await refusal(*[image()] * (MOST_ATTACHMENTS + 1), shelf=shelf)
    assert many == ("too_many_attachments", f"messages[3].content[{MOST_ATTACHMENTS}]")
    assert shelf.kept == [], "nothing is stored for a request that is refused"
    await collect(shelf, parts_of(*[image()] * MOST_ATTACHMENTS), stateless=True)
    largest = PNG + bytes(LARGEST_ATTACHMENT - len(PNG))
    await collect(shelf, parts_of(image(data=largest)), stateless=True)
    for more in (1, 2, 3, 4, 1000):
        too_large = await refusal(image(data=largest + bytes(more)))
        assert too_large == ("attachment_too_large", "messages[3].content[0].image_url.url")
    assert MOST_ATTACHED_BYTES == 2 * LARGEST_ATTACHMENT
    together = await refusal(image(data=largest), image(data=largest), image())
    assert together == ("attachment_too_large", "messages[3].content[2]")


@pytest.mark.parametrize("media_type", ["text/html", "image/svg+xml", "application/octet-stream"])
async def test_a_fetched_file_must_be_an_image(media_type: str) -> None:
    shelf = Shelf({"http://a.example/x": WebFile(media_type=media_type, data=PNG)})
    code, _ = await refusal(image("http://a.example/x"), shelf=shelf)
    assert code == "unsupported_media_type"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://a.example/cats/my%20cat.png?size=1#x", "my cat.png"),
        ("https://a.example/[x]%0a/..", ".."),
        ("HTTP://a.example/", None),
        ("http://a.example", None),
        ("http://a.example/" + "n" * 300 + ".png", "n" * 96 + ".png"),
    ],
)
async def test_a_fetched_image_is_named_after_its_address(url: str, name: str | None) -> None:
    shelf = Shelf({url: WebFile(media_type="image/jpg", data=JPEG)})
    attached = await collect(shelf, parts_of(image(url)), stateless=True)
    found = attached[3, 0]
    assert isinstance(found, Attachment)
    assert (found.name, found.media_type, found.detail) == (name, "image/jpeg", "low")


async def test_a_message_keeps_the_order_of_its_parts() -> None:
    note = file("text/markdown", "Grüße\n".encode(), "../my\nnote.md")
    texts = [{"type": "text", "text": text} for text in ("one", "two")]
    contents = parts_of(texts[0], image(), texts[1], note, file("application/pdf", PDF, "a.pdf"))
    attached = await collect(Shelf(), contents, stateless=True)
    message = user_message(contents[3], 3, attached)
    assert message.described.split("\n") == [
        "one", "[image]", "two", "[file mynote.md]", "Grüße", "", "[end of file mynote.md]",
        "[file a.pdf]",
    ]  # fmt: skip
    assert user_message(None, 0, {}) == UserMessage(text="")


async def test_an_image_in_the_request_reaches_the_model(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        for stream in (False, True):
            answered = await client.chat.completions.create(
                model="main", messages=asks(image()), stream=stream
            )
            if isinstance(answered, openai.AsyncStream):
                assert [chunk async for chunk in answered]
            sent = service.model.requests[-1].messages[-1]
            assert sent.files == [PNG]
            assert isinstance(sent.content, list)
            text, picture = sent.content
            assert text.text == "What is it?"
            assert picture.image_url
            assert picture.image_url.detail == "low"
    assert service.model.stats.refused == {}


async def test_an_image_on_the_web_is_fetched(tmp_path: Path) -> None:
    files = {"/cat.png": answer(PNG, media_type="image/png")}
    async with (
        serving_site(files) as site,
        serving(tmp_path, overrides=LOCAL_DOWNLOADS) as service,
        client_of(service) as client,
    ):
        url = f"http://127.0.0.1:{site.port}/cat.png"
        await client.chat.completions.create(model="main", messages=asks(image(url)))
        assert service.model.requests[-1].messages[-1].files == [PNG]
        with pytest.raises(openai.BadRequestError, match="status 404"):
            await client.chat.completions.create(model="main", messages=asks(image(f"{url}x")))


async def test_a_private_address_is_not_visited_and_the_error_reveals_nothing(
    tmp_path: Path,
) -> None:
    async with serving_site({"/cat.png": answer(PNG, media_type="image/png")}) as site:
        async with serving(tmp_path) as service, client_of(service) as client:
            told = set[str]()
            for port in (site.port, 9):
                url = f"http://127.0.0.1:{port}/cat.png"
                with pytest.raises(openai.BadRequestError) as caught:
                    await client.chat.completions.create(model="main", messages=asks(image(url)))
                assert caught.value.code == "url_not_fetched"
                assert caught.value.param == "messages[0].content[1].image_url.url"
                told.add(caught.value.message.replace(str(port), "PORT"))
            assert service.model.stats.calls == 0
    assert len(told) == 1
    assert site.accepted == 0


@pytest.mark.parametrize(
    ("wire", "recording", "expected"),
    [
        (
            "chat",
            "chat_openai_text.sse",
            image(),
        ),
        (
            "responses",
            "responses_text.sse",
            {"type": "input_image", "image_url": as_data_url("image/png", PNG), "detail": "low"},
        ),
        (
            "anthropic",
            "anthropic_text.sse",
            {
                "type": "image",
                "source": {
                    "type": "base64",
                    "media_type": "image/png",
                    "data": base64.b64encode(PNG).decode(),
                },
            },
        ),
    ],
)  # fmt: skip
async def test_every_wire_format_sends_an_image_in_its_own_form(
    tmp_path: Path, wire: str, recording: str, expected: object
) -> None:
    (tmp_path / "config.yaml").write_text(f"model: {{wire: {wire}}}\n")
    bodies: list[bytes] = []
    said = STREAM + (PAYLOADS / recording).read_bytes()
    async with answering(said, bodies=bodies) as base_url:
        environ = {"HERMES_CUSTOM_BASE_URL": base_url}
        async with serving(tmp_path, environ=environ) as service, client_of(service) as client:
            found = await client.chat.completions.create(model="main", messages=asks(image()))
    assert found.choices[0].message.content
    (body,) = bodies
    check(wire, body)
    sent = msgspec.json.decode(body)
    last = sent["input" if wire == "responses" else "messages"][-1]["content"][-1]
    last.pop("cache_control", None)
    assert last == expected


async def test_audio_and_files_are_passed_on(tmp_path: Path) -> None:
    note = file("text/plain", b"Milk, bread", "list.txt")
    parts = (audio(), file("application/pdf", PDF, "a.pdf"), note)
    async with serving(tmp_path) as service, client_of(service) as client:
        await client.chat.completions.create(model="main", messages=asks(*parts))
        sent = service.model.requests[-1].messages[-1]
    assert sent.files == [WAV, PDF]
    assert "[file list.txt]\nMilk, bread\n[end of file list.txt]" in sent.text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("config", "part", "code"),
    [
        ("attachments: []", image(), "images_not_supported"),
        ("attachments: [image]", file("application/pdf", PDF), "files_not_supported"),
        ("wire: responses", audio(), "audio_not_supported"),
        ("wire: anthropic", audio(), "audio_not_supported"),
    ],
)
async def test_a_file_that_the_model_does_not_accept_is_a_bad_request(
    tmp_path: Path, config: str, part: ChatCompletionContentPartParam, code: str, stream: bool
) -> None:
    (tmp_path / "config.yaml").write_text(f"model: {{{config}}}\n")
    async with serving(tmp_path) as service, client_of(service) as client:
        with pytest.raises(openai.BadRequestError, match="'vendor/some-model'") as caught:
            await client.chat.completions.create(
                model="main", messages=asks(part), stream=stream, extra_headers=KITCHEN
            )
        stored = await rows(service.gateway._store, "select count(*) from messages")
    assert caught.value.code == code
    assert stored == [(0,)], "later turns of the session must not fail for it"
    assert service.model.stats.calls == 0


async def test_a_session_keeps_its_images_for_later_turns(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        first = await client.chat.completions.create(
            model="main", messages=asks(image()), extra_headers=KITCHEN
        )
        history: list[ChatCompletionMessageParam] = [
            *asks(image("http://127.0.0.1:9/gone")),
            {"role": "assistant", "content": first.choices[0].message.content},
            {"role": "user", "content": "And its colour?"},
        ]
        await client.chat.completions.create(model="main", messages=history, extra_headers=KITCHEN)
    async with serving(tmp_path) as service, client_of(service) as client:
        await client.chat.completions.create(
            model="main", messages=[{"role": "user", "content": "Sure?"}], extra_headers=KITCHEN
        )
        sent = service.model.requests[-1].messages
    users = [message for message in sent if message.role == "user"]
    assert [message.files for message in users] == [[PNG], [], []]
    assert service.model.stats.refused == {}


@pytest.mark.parametrize("change", ["deleted", "refused"])
async def test_an_image_that_was_deleted_is_replaced_by_a_line_of_text(
    tmp_path: Path, change: str
) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        await client.chat.completions.create(
            model="main", messages=asks(image()), extra_headers=KITCHEN
        )
    if change == "deleted":
        (stored,) = (tmp_path / "media" / "sessions").iterdir()
        stored.unlink()
    else:
        (tmp_path / "config.yaml").write_text("model: {attachments: []}\n")
    async with serving(tmp_path) as service, client_of(service) as client:
        await client.chat.completions.create(
            model="main", messages=[{"role": "user", "content": "Sure?"}], extra_headers=KITCHEN
        )
        sent = service.model.requests[-1].messages
    told = {
        "deleted": "What is it?\n[image: no longer stored]",
        "refused": "What is it?\n[image: this model can't be sent images]",
    }
    assert [message.content for message in sent if message.role == "user"] == [
        told[change],
        "Sure?",
    ]


@pytest.mark.parametrize("stateless", [True, False])
async def test_a_crash_between_the_request_and_the_answer_does_not_lose_the_image(
    tmp_path: Path, stateless: bool
) -> None:
    headers = {"Idempotency-Key": "once"} if stateless else KITCHEN
    messages = asks({"type": "text", "text": "hang"}, image())
    async with serving(tmp_path) as service, client_of(service) as client:
        async with anyio.create_task_group() as group:

            async def ask() -> None:
                await client.chat.completions.create(
                    model="main", messages=messages, extra_headers=headers
                )

            group.start_soon(ask)
            await until(lambda: service.model.requests)
            group.cancel_scope.cancel()
    async with serving(tmp_path) as service:
        await until(lambda: service.model.requests)
        assert service.model.requests[-1].messages[-1].files == [PNG]


def test_a_request_and_a_model_call_have_the_same_limits() -> None:
    assert (MOST_SENT, MOST_SENT_BYTES) == (MOST_ATTACHMENTS, MOST_ATTACHED_BYTES)
