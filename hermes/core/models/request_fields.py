"""What every wire format says alike of a request."""

import msgspec

from hermes.types.messages import ToolCall, UserMessage
from hermes.types.protocols import ModelRequest

_json_object = msgspec.json.Decoder(dict[str, object])


def name_of(request: ModelRequest) -> str:
    """Names the conversation and whom it is encoded for; empty where it has no name."""
    choice = request.choice
    return request.conversation and f"{request.conversation} {choice.provider} {choice.model}"


def system_of(request: ModelRequest) -> str:
    return "\n\n".join(filter(None, (request.system, request.ephemeral)))


def longest_of(request: ModelRequest) -> int | None:
    """Tokens that the answer may have: as the request says, or as the model's setting does."""
    return request.sampling.max_tokens or request.choice.max_tokens


def speech_of(message: UserMessage) -> str:
    return f"[{message.sender}] {message.text}" if message.sender else message.text


def arguments_of(call: ToolCall) -> str:
    """The arguments as a JSON object, whatever the model wrote: servers refuse anything else."""
    try:
        _json_object.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.json.encode({"invalid_json": call.arguments}).decode()
    return call.arguments
