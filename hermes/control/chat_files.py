"""Stores the files of chat messages in the media cache, before the messages are accepted."""

from collections.abc import Callable

from msgspec.structs import replace

from hermes.control.media import MediaIntake
from hermes.text.file_types import kind_of, media_type_of
from hermes.types.errors import Rejected
from hermes.types.messages import Attachment, MessageEvent, Receipt, Said
from hermes.types.platforms import FetchFile
from hermes.types.protocols import Accept


def accept_with_files(
    accept: Accept, admits: Callable[[MessageEvent], bool], media: MediaIntake, fetch: FetchFile
) -> Accept:
    """Wraps `accept`: downloads and stores the files of a message first.

    Files of people who may not talk to us are not downloaded. A file that can't be downloaded is
    named in the text of the message.
    """

    async def store_and_accept(event: MessageEvent) -> Receipt:
        if isinstance(event.body, Said) and event.body.attachments and admits(event):
            event = replace(event, body=await _with_files(event.body, media, fetch))
        return await accept(event)

    return store_and_accept


async def _with_files(said: Said, media: MediaIntake, fetch: FetchFile) -> Said:
    stored: list[Attachment] = []
    notes: list[str] = []
    for one in said.attachments:
        try:
            stored.append(await _stored(one, media, await fetch(one)))
        except Rejected as error:
            notes.append(f"{one.label[:-1]} was not received: {error}]")
    text = "\n\n".join(filter(None, [said.text, *notes]))
    return replace(said, text=text, attachments=tuple(stored))


async def _stored(one: Attachment, media: MediaIntake, data: bytes) -> Attachment:
    found = media_type_of(data)
    # The sender's client chooses the stated type, so an image is only trusted if it begins as one.
    if found is not None:
        one = replace(one, kind=kind_of(found), media_type=found)
    elif one.kind == "image":
        one = replace(one, kind="file")
    return replace(one, path=await media.keep(data, stateless=False), size=len(data))
