"""Request fields that several wire formats share."""

import msgspec

from hermes.types.messages import Attachment, Sampling, ToolCall, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.profile import ModelChoice

_json_object = msgspec.json.Decoder(dict[str, object])


def cache_name(request: ModelRequest) -> str:
    """Returns the key under which the messages of a conversation are cached for one model, or "" if
    the conversation has no name."""
    choice = request.choice
    return request.conversation and f"{request.conversation} {choice.provider} {choice.model}"


def system_text(request: ModelRequest, form: str = "") -> str:
    """Returns the system prompt, followed by the texts that belong to this call only. `form` is an
    instruction about the format of the answer."""
    return "\n\n".join(filter(None, (request.system, request.ephemeral, form)))


def answer_limit(request: ModelRequest) -> int | None:
    """Returns the token limit of the answer: the limit in the request, or else the limit in the
    model's settings; None if there is no limit."""
    return request.sampling.max_tokens or request.choice.max_tokens


def given_options(sampling: Sampling) -> set[str]:
    """Returns the names of the sampling options that are set."""
    return set(msgspec.to_builtins(sampling))


def user_text(message: UserMessage) -> str:
    return f"[{message.sender}] {message.text}" if message.sender else message.text


def user_parts(message: UserMessage) -> list[str | Attachment]:
    """Returns the parts of a message that has attachments. The parts begin with the sender's name,
    if it is known."""
    parts = list(message.parts)
    if not message.sender:
        return parts
    match parts:
        case [str(text), *rest]:
            return [f"[{message.sender}] {text}", *rest]
        case _:
            return [f"[{message.sender}]", *parts]


def data_url(request: ModelRequest, attachment: Attachment) -> bytes:
    """Returns the content of an attachment as a data URL in a JSON string."""
    head = msgspec.json.encode(f"data:{attachment.media_type};base64,")
    # Base64 needs no JSON escapes, so the content is inserted unchanged.
    return b'%b%b"' % (head[:-1], request.media[attachment.path])


def file_name(attachment: Attachment) -> bytes:
    """Returns the name of an attachment as a JSON string. Providers refuse files without a name."""
    return msgspec.json.encode(attachment.name or attachment.kind)


def call_arguments(call: ToolCall) -> str:
    """Returns the arguments as a JSON object, even if the model wrote invalid JSON. Servers refuse
    arguments that are not a JSON object."""
    try:
        _json_object.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.json.encode({"invalid_json": call.arguments}).decode()
    return call.arguments


def extra_fields(choice: ModelChoice) -> bytes:
    """Returns the provider's extra fields, which precede the other fields of a body."""
    extra = choice.quirks.extra_body
    return extra[1:-1].encode() + b"," if extra else b""


def bearer(choice: ModelChoice) -> dict[str, str]:
    """Returns the header with the API key, or no header if there is no key."""
    return {"Authorization": f"Bearer {choice.api_key}"} if choice.api_key else {}
