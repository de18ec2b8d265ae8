"""The content of a request's message: its text, and the files that come with it."""

import binascii
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Literal, Protocol
from urllib.parse import unquote

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from hermes.entry.http.errors import ApiError, bad_request
from hermes.text.file_types import BEGINNINGS, framed, kind_of
from hermes.types.errors import Rejected
from hermes.types.messages import Attachment, AttachmentKind, UserMessage
from hermes.types.value import Value
from hermes.types.web import WebFile

MOST_PARTS = 1000
MOST_ATTACHMENTS = 20
LARGEST_ATTACHMENT = 10_000_000
MOST_ATTACHED_BYTES = 20_000_000
"""Maximum number of bytes of one attachment (first constant), and of all attachments of a request
together (second constant), after decoding."""
LONGEST_FILE_NAME = 100

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
ATTACHED_PARTS = frozenset({"image_url", "input_audio", "file"})
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_SAME_TYPE = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg"}
_TEXTUAL = re.compile(r"text/[\w.+-]+|application/(?:json|xml|yaml|x-yaml|toml)")
_UNPRINTABLE = re.compile(r"[^\S ]|[\x00-\x1f\x7f\[\]]")


class ImagePart(msgspec.Struct):
    url: str
    """A data URL in base64, or an http(s) URL at a public address."""
    detail: Literal["auto", "low", "high", "original"] | None = None
    """How closely the model looks at the image."""


class AudioPart(msgspec.Struct):
    data: str
    """The file in base64."""
    format: Literal["wav", "mp3"]
    """The type of the file."""


class FilePart(msgspec.Struct):
    file_data: str | None = None
    """A data URL in base64: a PDF, or a text in UTF-8."""
    file_id: str | None = None
    """Not supported, because files can't be uploaded. A part with this field is an error."""
    filename: str | None = None
    """The file name, which the model sees."""


class ContentPart(msgspec.Struct):
    type: str = "text"
    """The type of the part: `text`, `image_url`, `input_audio` or `file`. Files are allowed in user
    messages only."""
    text: str = ""
    """The text of a part of the type `text`."""
    image_url: ImagePart | None = None
    """The image of a part of the type `image_url`."""
    input_audio: AudioPart | None = None
    """The audio of a part of the type `input_audio`."""
    file: FilePart | None = None
    """The file of a part of the type `file`."""


MessageContent = str | list[ContentPart] | None
Attached = Mapping[tuple[int, int], Attachment | str]
"""The attachments of a request. A key is a pair: the index of the message, and the index of the
part in that message.

For a text file, the value is its text.
"""
NOTHING_ATTACHED: Attached = MappingProxyType({})


class Media(Protocol):
    """Fetches and stores files. The gateway's `MediaIntake` implements it."""

    async def fetch(self, url: str, limit: int) -> WebFile: ...

    async def keep(self, data: bytes, *, stateless: bool) -> str: ...


class GivenFile(Value):
    """A file of a request."""

    kind: AttachmentKind
    media_type: str
    data: bytes
    name: str | None = None
    detail: str = ""


def text_of(content: MessageContent, index: int) -> str:
    """Returns the text of message number `index`. Raises ApiError if the message has
    attachments."""
    match content:
        case None:
            return ""
        case str(text):
            return text
        case parts:
            _check_parts(parts, index)
            for number, part in enumerate(parts):
                if part.type in ATTACHED_PARTS:
                    message = f"Only user messages can have content of type {part.type!r}."
                    raise bad_request(message, "unsupported_content_type", _param(index, number))
            return "\n".join(part.text for part in parts)


def user_message(content: MessageContent, index: int, attached: Attached) -> UserMessage:
    """Returns message number `index` with its attachments, each at its place in the text."""
    if not isinstance(content, list):
        return UserMessage(text=content or "")
    _check_parts(content, index)
    texts: list[str] = []
    files: list[Attachment] = []
    for number, part in enumerate(content):
        # The attachments of messages that the session already has are not stored again. A label
        # replaces them.
        found = attached.get((index, number), f"[{part.type}]")
        if part.type in TEXT_PARTS:
            texts.append(part.text)
        elif isinstance(found, str):
            texts.append(found)
        else:
            files.append(replace(found, at=len("\n".join(texts))))
    return UserMessage(text="\n".join(texts), attachments=tuple(files))


async def collect(
    media: Media, contents: Mapping[int, list[ContentPart]], *, stateless: bool
) -> Attached:
    """Stores the attachments of a request's messages. If a part is wrong, raises an ApiError that
    names it.

    Attachments are stored one after the other, so that only one decoded attachment is in memory at
    a time.
    """
    attached: dict[tuple[int, int], Attachment | str] = {}
    total = 0
    for index, number, part in list(_attachments(contents)):
        param = _param(index, number)
        file = await _given(part, param, media)
        total += len(file.data)
        if total > MOST_ATTACHED_BYTES:
            message = f"The attachments are larger than {MOST_ATTACHED_BYTES} bytes together."
            raise bad_request(message, "attachment_too_large", param)
        if _TEXTUAL.fullmatch(file.media_type):
            attached[index, number] = _framed(file, param)
            continue
        attached[index, number] = Attachment(
            kind=file.kind,
            path=await media.keep(file.data, stateless=stateless),
            media_type=file.media_type,
            name=file.name,
            size=len(file.data),
            detail=file.detail,
        )
    return attached


def data_url(url: str, param: str) -> tuple[str, bytes]:
    """Returns the media type and the content of a data URL. Raises ApiError if it can't be
    decoded."""
    head, comma, payload = url.partition(",")
    scheme, _, described = head.partition(":")
    media_type, *options = described.split(";")
    encoded = bool(options) and options[-1].casefold() == "base64"
    if scheme.casefold() != "data" or not comma or not encoded:
        message = "This is not a data URL in base64, such as data:image/png;base64,iVBORw0…"
        raise bad_request(message, "invalid_data_url", param)
    return _plain(media_type), _decoded(payload, param)


def _check_parts(parts: list[ContentPart], index: int) -> None:
    param = f"messages[{index}].content"
    if len(parts) > MOST_PARTS:
        raise bad_request(f"The request has more than {MOST_PARTS} content parts.", param=param)
    for part in parts:
        if part.type not in TEXT_PARTS | ATTACHED_PARTS:
            known = ", ".join(("text", *sorted(ATTACHED_PARTS)))
            message = f"Content of type {part.type!r} is not supported; send one of {known}."
            raise ApiError(400, message, "unsupported_content_type", param=param)


def _attachments(
    contents: Mapping[int, list[ContentPart]],
) -> Iterator[tuple[int, int, ContentPart]]:
    count = 0
    for index, parts in contents.items():
        _check_parts(parts, index)
        for number, part in enumerate(parts):
            if part.type in TEXT_PARTS:
                continue
            count += 1
            if count > MOST_ATTACHMENTS:
                message = f"A request can have at most {MOST_ATTACHMENTS} attachments."
                raise bad_request(message, "too_many_attachments", _param(index, number))
            yield index, number, part


async def _given(part: ContentPart, param: str, media: Media) -> GivenFile:
    """Returns the file that a part contains, or that its URL refers to."""
    match part:
        case ContentPart(type="image_url", image_url=ImagePart(url=url) as image):
            param = f"{param}.image_url.url"
            if url[:8].casefold().startswith(("http://", "https://")):
                file = await _fetched(url, param, media)
            else:
                media_type, data = await anyio.to_thread.run_sync(data_url, url, param)
                file = GivenFile(kind="image", media_type=media_type, data=data)
            file = replace(file, detail=image.detail or "")
        case ContentPart(type="input_audio", input_audio=AudioPart(data=text, format=form)):
            param = f"{param}.input_audio.data"
            data = await anyio.to_thread.run_sync(_decoded, text, param)
            file = GivenFile(kind="audio", media_type=_AUDIO[form], data=data)
        case ContentPart(type="file", file=FilePart(file_data=str(url), filename=name)):
            param = f"{param}.file.file_data"
            media_type, data = await anyio.to_thread.run_sync(data_url, url, param)
            file = GivenFile(kind="file", media_type=media_type, data=data, name=_name(name))
        case ContentPart(type="file", file=FilePart(file_id=str())):
            message = "Files can't be uploaded here: send the content as a data URL in file_data."
            raise bad_request(message, "file_id_not_supported", f"{param}.file.file_id")
        case _:
            message = f"A part of type {part.type!r} needs a field {part.type!r} with its content."
            raise bad_request(message, param=param)
    _check(file, param)
    return file


async def _fetched(url: str, param: str, media: Media) -> GivenFile:
    try:
        found = await media.fetch(url, LARGEST_ATTACHMENT)
    except Rejected as error:
        message = f"{error} An image can also be sent as a data URL."
        raise bad_request(message, "url_not_fetched", param) from error
    _, _, path = re.split(r"[?#]", url, maxsplit=1)[0].partition("//")[2].partition("/")
    name = _name(unquote(path))
    return GivenFile(kind="image", media_type=_plain(found.media_type), data=found.data, name=name)


def _decoded(text: str, param: str) -> bytes:
    # The length of the base64 text gives the size of the file, with an error of at most two bytes.
    # So a file that is too large is refused before it is decoded.
    if len(text) * 3 // 4 - 2 <= LARGEST_ATTACHMENT:
        try:
            data = binascii.a2b_base64(text, strict_mode=True)
        except ValueError as error:
            message = f"This is not valid base64: {error}."
            raise bad_request(message, "invalid_base64", param) from error
        if len(data) <= LARGEST_ATTACHMENT:
            return data
    message = f"An attachment can have at most {LARGEST_ATTACHMENT} bytes."
    raise bad_request(message, "attachment_too_large", param)


def _check(file: GivenFile, param: str) -> None:
    """Raises ApiError if the file is empty, if its type is not accepted, or if it does not begin
    with the signature of its type."""
    if not file.data:
        raise bad_request("The attachment is empty.", "empty_attachment", param)
    text = file.kind == "file" and _TEXTUAL.fullmatch(file.media_type)
    known = [name for name in BEGINNINGS if kind_of(name) == file.kind]
    if not text and file.media_type not in known:
        accepted = ", ".join([*known, "text/*"] if file.kind == "file" else known)
        message = f"The type {file.media_type[:100]!r} is not accepted here; send {accepted}."
        raise bad_request(message, "unsupported_media_type", param)
    if not text and not BEGINNINGS[file.media_type].match(file.data):
        message = f"The content is not of the type {file.media_type!r}."
        raise bad_request(message, "media_type_mismatch", param)


def _framed(file: GivenFile, param: str) -> str:
    """Returns the content of a text file as text that can be inserted into the message. Raises
    ApiError if the content is not UTF-8."""
    try:
        text = file.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = "A text file must be in UTF-8."
        raise bad_request(message, "media_type_mismatch", param) from error
    return framed(text, file.name)


def _plain(media_type: str) -> str:
    plain = media_type.strip().casefold()
    return _SAME_TYPE.get(plain, plain)


def _name(path: str | None) -> str | None:
    """Returns the last part of a path, made safe for one line of text. Returns None if that part is
    empty."""
    last = PurePosixPath((path or "").replace("\\", "/")).name
    return _UNPRINTABLE.sub("", last)[-LONGEST_FILE_NAME:] or None


def _param(index: int, number: int) -> str:
    return f"messages[{index}].content[{number}]"
