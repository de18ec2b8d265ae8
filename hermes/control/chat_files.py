"""Stores the files of chat messages in the media cache, before the messages are accepted."""

import re
from collections.abc import Callable

from msgspec.structs import replace

from hermes.control.media import MediaIntake
from hermes.text.file_types import kind_of, media_type_of
from hermes.types.errors import Rejected
from hermes.types.execution import LARGEST_FILE
from hermes.types.messages import Attachment, MessageEvent, Receipt, Said
from hermes.types.platforms import FetchFile
from hermes.types.protocols import Accept

INBOX = "inbox"
"""The folder of the workspace that received files are copied into."""
DIGEST_LENGTH, NAME_LENGTH = 12, 60
"""The name of a received file's copy in the workspace contains this many characters of the
content's hash, and at most this many characters of the sender's file name."""
_UNSAFE = re.compile(r"[^\w.-]+")


def accept_with_files(
    accept: Accept, admits: Callable[[MessageEvent], bool], media: MediaIntake, fetch: FetchFile
) -> Accept:
    """Wraps `accept`: the files of a message are downloaded and stored before `accept` is called.

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
    # The sender's client chose the stated type, which can be wrong. So a file counts as an image
    # only if its first bytes are those of an image.
    if found is not None:
        one = replace(one, kind=kind_of(found), media_type=found)
    elif one.kind == "image":
        one = replace(one, kind="file")
    path = await media.keep(data, stateless=False)
    one = replace(one, path=path, size=len(data))
    if one.kind == "image" or one.size > LARGEST_FILE:
        return one
    return replace(one, saved=_workspace_path(path, one.name or one.kind))


def _workspace_path(stored: str, name: str) -> str:
    """Returns the path of the file's copy in the workspace. Files with different content have
    different paths."""
    digest = stored.rpartition("/")[2][:DIGEST_LENGTH]
    safe = _UNSAFE.sub("_", name).strip("._")[-NAME_LENGTH:]
    return f"{INBOX}/{digest}-{safe or 'file'}"
