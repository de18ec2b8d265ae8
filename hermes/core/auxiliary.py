"""The model for the small work beside a conversation: summaries and titles."""

from collections.abc import Callable

from hermes.types.errors import HermesError, Rejected
from hermes.types.events import AgentEvent, UsageReported
from hermes.types.messages import Sampling, UserMessage
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit, ModelProvider, ModelRequest

Assist = Callable[[ModelChoice], ModelChoice]
"""The auxiliary model beside a main one; the main one where there is no other."""


class Auxiliary:
    """Asks the auxiliary model, and the main one when that fails."""

    def __init__(self, model: ModelProvider, assist: Assist) -> None:
        self._model = model
        self._assist = assist

    def size(self, main: ModelChoice) -> int | None:
        """Tokens that every model that may be asked can read."""
        known = [one.context_length for one in (self._assist(main), main)]
        return min((size for size in known if size), default=None)

    async def write(
        self, main: ModelChoice, system: str, text: str, longest: int, emit: Emit
    ) -> str:
        """What the model writes on the text; of its events only the usage is told."""
        choice = self._assist(main)
        try:
            return await self._ask(choice, system, text, longest, emit)
        except HermesError:
            if choice == main:
                raise
        return await self._ask(main, system, text, longest, emit)

    async def _ask(
        self, choice: ModelChoice, system: str, text: str, longest: int, emit: Emit
    ) -> str:
        def report(event: AgentEvent) -> None:
            if isinstance(event, UsageReported):
                emit(event)

        request = ModelRequest(
            choice=choice,
            system=system,
            messages=(UserMessage(text=text),),
            step="auxiliary",
            sampling=Sampling(max_tokens=longest),
            live=False,
        )
        written = (await self._model.complete(request, report)).text.strip()
        if not written:
            raise Rejected(f"{choice.provider} wrote nothing")
        return written
