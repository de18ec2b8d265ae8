"""Chooses the attachments that are sent to a model, and replaces all other attachments with lines
of text."""

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence

import anyio.to_thread
from msgspec.structs import replace

from hermes.core.models.wires import WireFormats, find_wire
from hermes.types.errors import NotAccepted
from hermes.types.messages import Attachment, AttachmentKind, Message, UserMessage
from hermes.types.models import ModelRequest, WireFormat
from hermes.types.profile import ModelChoice

MOST_SENT = 20
MOST_SENT_BYTES = 20_000_000
"""MOST_SENT is the maximum number of attachments in one model call, and MOST_SENT_BYTES is their
maximum total size in bytes. If a conversation has more attachments, the newest are sent. The same
limits apply to the attachments of an API request."""

ReadMedia = Callable[[str], bytes | None]
"""Reads an attachment by its path, or returns None if it is no longer stored. The call blocks."""

CODES: Mapping[AttachmentKind, tuple[str, str]] = {
    "image": ("images", "images_not_supported"),
    "audio": ("audio", "audio_not_supported"),
    "video": ("videos", "videos_not_supported"),
    "file": ("files", "files_not_supported"),
}
"""For each kind of attachment: its plural, and the error code if the model does not accept this
kind."""


def no_media(path: str) -> bytes | None:
    """Returns None for every path. This function is for model calls that have no attachments."""
    return None


def accepted(choice: ModelChoice, wire: WireFormat) -> frozenset[AttachmentKind]:
    """Returns the kinds of attachments that both the model and the wire format accept."""
    known = choice.attachments
    return wire.attachments if known is None else wire.attachments.intersection(known)


def check_attachments(choice: ModelChoice, wires: WireFormats, messages: Sequence[Message]) -> None:
    """Raises NotAccepted if the messages have an attachment that the model does not accept."""
    wire = find_wire(wires, choice.wire)
    kinds = accepted(choice, wire)
    for one in _all_of(messages):
        if one.kind in kinds:
            continue
        plural, code = CODES[one.kind]
        if one.kind in wire.attachments:
            remedy = (
                f"Use a model that does, or leave them out. If this one does accept {plural}, the"
                " operator can say so with the setting model.attachments."
            )
        else:
            remedy = f"They can't be sent in its wire format ({wire.name}). Use another model."
        raise NotAccepted(f"The model {choice.model!r} does not accept {plural}. {remedy}", code)


def suitable(
    choices: Sequence[ModelChoice], wires: WireFormats, request: ModelRequest
) -> list[ModelChoice]:
    """Returns the models that accept all attachments of the conversation's last request."""
    kinds = {one.kind for one in _all_of(_last_request(request.messages))}
    return [
        choice for choice in choices if kinds <= accepted(choice, find_wire(wires, choice.wire))
    ]


async def with_media(request: ModelRequest, wire: WireFormat, read: ReadMedia) -> ModelRequest:
    """Returns the request with the content of its attachments.

    An attachment that is not sent becomes a line of text that says why.
    """
    found = list(_all_of(request.messages))
    if not found:
        return request
    kinds = accepted(request.choice, wire)
    chosen = _newest([one for one in found if one.kind in kinds])
    media = await anyio.to_thread.run_sync(_load, read, chosen)

    def reason(one: Attachment) -> str:
        if one.kind not in kinds:
            return f"this model can't be sent {CODES[one.kind][0]}"
        return "no longer stored" if one.path in chosen else "left out, because newer ones came"

    messages = [
        _shown(message, media, reason)
        if isinstance(message, UserMessage) and message.attachments
        else message
        for message in request.messages
    ]
    return replace(request, messages=messages, media=media)


def _all_of(messages: Sequence[Message]) -> Iterator[Attachment]:
    for message in messages:
        if isinstance(message, UserMessage):
            yield from message.attachments


def _last_request(messages: Sequence[Message]) -> list[Message]:
    """Returns the messages of the last request: the last consecutive messages from people."""
    found: list[Message] = []
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            found.append(message)
        elif found:
            break
    return found


def _newest(attachments: Sequence[Attachment]) -> set[str]:
    """Returns the paths of the newest attachments, as many as MOST_SENT and MOST_SENT_BYTES
    allow."""
    chosen: dict[str, int] = {}
    for one in reversed(attachments):
        size = sum(chosen.values()) + one.size
        if one.path not in chosen and (len(chosen) == MOST_SENT or size > MOST_SENT_BYTES):
            break
        chosen[one.path] = one.size
    return set(chosen)


def _load(read: ReadMedia, paths: set[str]) -> dict[str, bytes]:
    return {path: b64encode(data) for path in paths if (data := read(path)) is not None}


def _shown(
    message: UserMessage, media: Mapping[str, bytes], reason: Callable[[Attachment], str]
) -> UserMessage:
    """Returns the message with a line of text instead of each attachment that is not sent. An
    attachment that was copied into the workspace also gets a line, which names the copy."""
    text = ""
    kept: list[Attachment] = []
    for part in message.parts:
        if isinstance(part, Attachment) and part.path in media:
            kept.append(replace(part, at=len(text)))
            said = _line(part, "") if part.saved else ""
        else:
            said = part if isinstance(part, str) else _line(part, reason(part))
        text += f"\n{said}" if text and said else said
    return replace(message, text=text, attachments=tuple(kept))


def _line(file: Attachment, reason: str) -> str:
    """Returns a line that names the file, its copy in the workspace if there is one, and the reason
    why the file is not sent."""
    saved = f"saved in the workspace as {file.saved}" if file.saved else ""
    return f"{file.label[:-1]}: {'; '.join(filter(None, [saved, reason]))}]"
