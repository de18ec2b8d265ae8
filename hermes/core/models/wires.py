"""Every wire format behind one provider: the chosen model says which."""

import aiohttp

from hermes.core.models.anthropic import AnthropicMessages
from hermes.core.models.openai_chat import OpenAIChat
from hermes.core.models.openai_responses import OpenAIResponses
from hermes.types.messages import AssistantMessage
from hermes.types.profile import Wire
from hermes.types.protocols import Emit, ModelProvider, ModelRequest


class Wires:
    """Speaks as the chosen model does. `silence` is the longest wait for a byte, in seconds."""

    def __init__(self, session: aiohttp.ClientSession, *, silence: float = 300.0) -> None:
        self._wires: dict[Wire, ModelProvider] = {
            "chat": OpenAIChat(session, silence=silence),
            "responses": OpenAIResponses(session, silence=silence),
            "anthropic": AnthropicMessages(session, silence=silence),
        }

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        return await self._wires[request.choice.wire].complete(request, emit)
