"""Calls the auxiliary model, which writes summaries and titles."""

from collections.abc import Callable

from hermes.types.errors import HermesError, Rejected
from hermes.types.events import AgentEvent, UsageReported
from hermes.types.messages import Sampling, UserMessage
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit

ChooseAuxiliary = Callable[[ModelChoice], ModelChoice]
"""Returns the auxiliary model to use with a main model. Returns the main model if there is no
auxiliary model."""


class Auxiliary:
    """Calls the auxiliary model, and the main model if that call fails."""

    def __init__(self, model: ModelProvider, choose: ChooseAuxiliary) -> None:
        self._model = model
        self._choose = choose

    def context_length(self, main: ModelChoice) -> int:
        """Returns the context length of the auxiliary model or of the main model, whichever is
        smaller, because either model may be called."""
        return min(self._choose(main).window, main.window)

    async def write(
        self, main: ModelChoice, system: str, text: str, longest: int, emit: Emit
    ) -> str:
        """Returns the answer to `text`: from the auxiliary model or, if that fails, from the main
        model. Emits only the events that report the usage of the calls."""
        choice = self._choose(main)
        try:
            return await self._call(choice, system, text, longest, emit)
        except HermesError:
            if choice == main:
                raise
        return await self._call(main, system, text, longest, emit)

    async def _call(
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
            raise Rejected(f"{choice.provider} returned an empty text; try again")
        return written
