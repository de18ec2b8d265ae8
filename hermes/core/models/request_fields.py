"""The fields of a request that every wire format fills in the same way."""

import msgspec

from hermes.types.messages import Attachment, Sampling, ToolCall, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.profile import ModelChoice

_json_object = msgspec.json.Decoder(dict[str, object])


def cache_name(request: ModelRequest) -> str:
    """Names the conversation and the model that it is encoded for; empty if it has no name."""
    choice = request.choice
    return request.conversation and f"{request.conversation} {choice.provider} {choice.model}"


def system_text(request: ModelRequest, form: str = "") -> str:
    """All that the model is told first; `form` is the instruction about the answer's form."""
    return "\n\n".join(filter(None, (request.system, request.ephemeral, form)))


def answer_limit(request: ModelRequest) -> int | None:
    """Tokens that the answer may have: as the request says, or else the model's setting."""
    return request.sampling.max_tokens or request.choice.max_tokens


def given_options(sampling: Sampling) -> set[str]:
    """Names of the options that are set."""
    return set(msgspec.to_builtins(sampling))


def user_text(message: UserMessage) -> str:
    return f"[{message.sender}] {message.text}" if message.sender else message.text


def user_parts(message: UserMessage) -> list[str | Attachment]:
    """The pieces of a message that has attachments, with the name of its sender."""
    parts = list(message.parts)
    if not message.sender:
        return parts
    match parts:
        case [str(text), *rest]:
            return [f"[{message.sender}] {text}", *rest]
        case _:
            return [f"[{message.sender}]", *parts]


def data_url(request: ModelRequest, attachment: Attachment) -> bytes:
    """The content of an attachment as a data URL, in JSON."""
    head = msgspec.json.encode(f"data:{attachment.media_type};base64,")
    # Base64 needs no escapes.
    return b'%b%b"' % (head[:-1], request.media[attachment.path])


def file_name(attachment: Attachment) -> bytes:
    """The name of an attachment in JSON; providers refuse files without one."""
    return msgspec.json.encode(attachment.name or attachment.kind)


def call_arguments(call: ToolCall) -> str:
    """The arguments as a JSON object, whatever the model wrote: servers refuse anything else."""
    try:
        _json_object.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.json.encode({"invalid_json": call.arguments}).decode()
    return call.arguments


def extra_fields(choice: ModelChoice) -> bytes:
    """The provider's further fields, to be put before the other fields of a body."""
    extra = choice.quirks.extra_body
    return extra[1:-1].encode() + b"," if extra else b""


def bearer(choice: ModelChoice) -> dict[str, str]:
    """The header that carries the key; empty without a key."""
    return {"Authorization": f"Bearer {choice.api_key}"} if choice.api_key else {}
