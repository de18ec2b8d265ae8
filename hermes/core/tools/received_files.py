"""Copies the files of a request into the workspace, where the agent's tools can use them."""

import logging
from collections.abc import Sequence

import anyio.to_thread

from hermes.core.compaction import last_request
from hermes.core.models.attachments import ReadMedia
from hermes.types.errors import ToolFailed
from hermes.types.execution import Sandbox
from hermes.types.messages import Attachment, Message, UserMessage

log = logging.getLogger(__name__)


async def save_files(history: Sequence[Message], sandbox: Sandbox, read: ReadMedia) -> bool:
    """Copies the files of the last request to their paths in the workspace (`Attachment.saved`).

    Files without a path, and files that are already there, are skipped. If a file can't be copied,
    the turn continues without it. Returns whether the request has files with a path in the
    workspace.
    """
    files = [
        one
        for message in history[last_request(history) :]
        if isinstance(message, UserMessage)
        for one in message.attachments
        if one.saved
    ]
    for one in files:
        try:
            await _save(one, sandbox, read)
        except ToolFailed as error:
            log.warning("%s was not saved in the workspace: %s", one.saved, error)
    return bool(files)


async def _save(file: Attachment, sandbox: Sandbox, read: ReadMedia) -> None:
    if await sandbox.stat(file.saved) is None:
        data = await anyio.to_thread.run_sync(read, file.path)
        if data is not None:
            await sandbox.write(file.saved, data)
