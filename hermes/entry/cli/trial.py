"""Sends one small question to a model, to find out whether it works, how fast it is and what it
costs."""

import time
from collections.abc import Awaitable, Callable

import anyio

from hermes.types.errors import Disconnected, Rejected
from hermes.types.events import AgentEvent, ReasoningDelta, TextDelta, UsageReported
from hermes.types.messages import AssistantMessage
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit

TRIAL_QUESTION = "Reply with the word ready"

AskModel = Callable[[ModelChoice, str, Emit], Awaitable[AssistantMessage]]


class Trial:
    """One trial call of a model. `patience` is the longest wait for the answer, in seconds."""

    def __init__(self, patience: float = 60.0) -> None:
        self.text = ""
        self.first = self.total = 0.0
        """Seconds until the first word of the answer, and until the end of the answer."""
        self.usage: UsageReported | None = None
        self._patience = patience
        self._begun = 0.0

    async def run(self, ask: AskModel, choice: ModelChoice) -> None:
        """Runs the trial and fills in its fields. Raises a HermesError if there is no answer."""
        who = f"{choice.model} of {choice.provider}"
        self._begun = time.perf_counter()
        try:
            with anyio.fail_after(self._patience):
                answer = await ask(choice, TRIAL_QUESTION, self._note)
        except TimeoutError as error:
            raise Disconnected(f"{who} did not answer within {self._patience:g} s") from error
        self.total = time.perf_counter() - self._begun
        self.text = answer.text.strip()
        if not self.text:
            raise Rejected(f"{who} gave an empty answer")

    def measured(self) -> dict[str, object]:
        """Returns all fields, for programs."""
        usage = self.usage
        return {
            "answer": self.text,
            "first_token_seconds": round(self.first, 3),
            "total_seconds": round(self.total, 3),
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "completion_tokens": usage.completion_tokens if usage else None,
            "cost": usage.cost if usage else None,
        }

    def _note(self, event: AgentEvent) -> None:
        match event:
            case TextDelta() | ReasoningDelta() if not self.first:
                self.first = time.perf_counter() - self._begun
            case UsageReported():
                self.usage = event
