"""The tool that sends a message to a chat."""

import hashlib
from pathlib import PurePosixPath
from typing import Annotated

import msgspec

from hermes.text.quantity import counted
from hermes.text.secret_files import is_secret_file
from hermes.types.approvals import ProposedAction
from hermes.types.errors import ToolFailed
from hermes.types.execution import Sandbox
from hermes.types.sending import OutgoingFile, SendResult
from hermes.types.tools import Tool, ToolContext

FILE_BYTES = 50 * 1024 * 1024
"""Maximum size of a file that is sent, in bytes."""


class MessageToSend(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    to: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            description="A chat: `origin` (this one), `PLATFORM` (its home chat), `PLATFORM:ID` or"
            " `PLATFORM:NAME`. Separate several by commas.",
        ),
    ]
    text: Annotated[str, msgspec.Meta(description="The message, in Markdown.")] = ""
    files: Annotated[
        list[str],
        msgspec.Meta(max_length=10, description="Paths of files in the workspace."),
    ] = []


async def _send_message(context: ToolContext, arguments: MessageToSend) -> str:
    files = [await _reviewed(context, path) for path in arguments.files]
    # The text is redacted, because the model may have written a secret into it.
    text = context.redact(arguments.text)
    results = await context.messenger.send(arguments.to, text, tuple(files), mirror=True)
    told = "\n".join(map(_told, results))
    if all(one.state == "refused" for one in results):
        raise ToolFailed(told)
    return told


async def review_message(context: ToolContext, arguments: MessageToSend) -> ProposedAction | None:
    """Returns the action that a person must approve, if the message goes to a chat outside of this
    conversation. Otherwise, returns None."""
    others = await context.messenger.others(arguments.to)
    if not others:
        return None
    files = [await _reviewed(context, path) for path in arguments.files]
    attached = [f"[file {file.name}, {counted(len(file.data), 'byte')}]" for file in files]
    text = "\n".join(filter(None, [context.redact(arguments.text), *attached]))
    return ProposedAction(
        kind=f"send a message to {', '.join(others)}",
        shown=text,
        reason="people who are not in this conversation would read it",
        leaves=True,
        facts=tuple(hashlib.sha256(file.data).hexdigest() for file in files),
        lasting=False,
    )


async def _reviewed(context: ToolContext, path: str) -> OutgoingFile:
    """Returns the file. If the approval check has already read the file, returns the content that
    the check has read, because a running command can change the file after the check."""
    if path not in context.outgoing:
        context.outgoing[path] = await _file(context.sandbox, path)
    return context.outgoing[path]


async def _file(sandbox: Sandbox, path: str) -> OutgoingFile:
    if is_secret_file(path):
        raise ToolFailed(f"Nothing was sent: {path!r} is a file that usually holds secrets.")
    info = await sandbox.stat(path)
    if info is None or info.kind != "file":
        raise ToolFailed(f"Nothing was sent: there is no file {path!r}.")
    if info.size > FILE_BYTES:
        size = counted(info.size, "byte")
        raise ToolFailed(f"Nothing was sent: {path!r} has {size}, more than 50 MB.")
    return OutgoingFile(name=PurePosixPath(path).name, data=await sandbox.read(path))


def _told(result: SendResult) -> str:
    match result.state:
        case "delivered":
            return f"Delivered to {result.target}."
        case "queued":
            return f"Stored for {result.target}: it will be sent as soon as possible."
        case "refused":
            return f"Refused by {result.target}: {result.reason}"


send_message = Tool(
    name="send_message",
    description="Send a message or files to another chat, now. Your answer itself goes to this"
    " chat without this tool. Use it only if the person asks for it.",
    arguments=MessageToSend,
    handler=_send_message,
    review=review_message,
    # The messenger uses the call's id as idempotency key, so a repeated call sends nothing twice.
    repeatable=True,
    toolset="messaging",
    risk="high",
)
