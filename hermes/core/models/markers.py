"""Escapes role markers in the messages of every request to a model."""

import operator
from functools import lru_cache

from msgspec.structs import replace

from hermes.text.role_markers import escape, escape_arguments, escape_bare
from hermes.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.protocols import Emit

# The results are cached, because many calls share a few prompts.
_escaped_prompt = lru_cache(maxsize=256)(escape)


class EscapedMarkers:
    """Escapes the role markers in every request to a provider; see `text/role_markers.py`."""

    def __init__(self, provider: ModelProvider) -> None:
        self._provider = provider

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        return await self._provider.complete(escaped(request), emit)


def escaped(request: ModelRequest) -> ModelRequest:
    system, ephemeral = _escaped_prompt(request.system), escape(request.ephemeral)
    messages = tuple(map(_message, request.messages))
    same = (system, ephemeral) == (request.system, request.ephemeral)
    if same and all(map(operator.is_, messages, request.messages)):
        return request
    return replace(request, system=system, ephemeral=ephemeral, messages=messages)


def _message(message: Message) -> Message:
    """Returns the escaped message, or the same object if it contains no marker."""
    match message:
        case UserMessage(text=text, sender=sender):
            shown, name = escape(text), escape(sender) if sender else sender
            if shown is text and name is sender:
                return message
            files = message.attachments
            moved = tuple(replace(one, at=len(escape(text[: one.at]))) for one in files)
            return replace(message, text=shown, sender=name, attachments=moved)
        case ToolMessage(text=text):
            shown = escape(text)
            return message if shown is text else replace(message, text=shown)
        case AssistantMessage():
            return _said(message)


def _said(message: AssistantMessage) -> AssistantMessage:
    text, reasoning = escape_bare(message.text), escape_bare(message.reasoning)
    arguments = [escape_arguments(call.arguments) for call in message.calls]
    given = [call.arguments for call in message.calls]
    if text is message.text and reasoning is message.reasoning and arguments == given:
        return message
    calls = tuple(
        replace(call, arguments=one) for call, one in zip(message.calls, arguments, strict=True)
    )
    return replace(message, text=text, reasoning=reasoning, calls=calls)
