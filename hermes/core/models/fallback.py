"""Calls another model if a model fails."""

import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from hermes.core.models.retry import TrackedEmit
from hermes.types.errors import AuthFailed, Disconnected, RateLimited
from hermes.types.events import Notice
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit

FAILURE_SECONDS = 60.0
"""For this number of seconds after a failure, a model is tried only after all other models."""

Failure = RateLimited | Disconnected | AuthFailed


class Fallback:
    """If a model can't be reached or refuses our key, calls the next model of `chain`.

    `chain` returns the other models that are allowed for a request. A request that is invalid or
    too long is not sent to another model.
    """

    def __init__(
        self,
        provider: ModelProvider,
        chain: Callable[[ModelRequest], Sequence[ModelChoice]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider = provider
        self._chain = chain
        self._clock = clock
        self._failing: dict[ModelChoice, float] = {}

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        tracked = TrackedEmit(emit)
        failures: dict[ModelChoice, Failure] = {}
        choices = self._order(request)
        for choice, following in zip(choices, [*choices[1:], None], strict=True):
            try:
                answer = await self._provider.complete(_asking(request, choice), tracked)
            except (RateLimited, Disconnected, AuthFailed) as error:
                failures[choice] = error
                self._remember(choice, error)
                if following is not None:
                    tracked.discard()
                    emit(Notice(text=f"{error}. Calling {_name(following)} instead."))
            else:
                self._failing.pop(choice, None)
                return answer
        first = failures.pop(request.choice)
        if not failures:
            raise first
        raise _together(first, failures) from first

    def _order(self, request: ModelRequest) -> list[ModelChoice]:
        """Returns the models to try. Models that failed recently come last, so that turns do not
        wait for them."""
        now = self._clock()
        wanted = dict.fromkeys((request.choice, *self._chain(request)))
        return sorted(wanted, key=lambda one: self._failing.get(one, now) > now)

    def _remember(self, choice: ModelChoice, error: Failure) -> None:
        now = self._clock()
        wait = (error.retry_after or 0.0) if isinstance(error, RateLimited) else 0.0
        self._failing = {one: until for one, until in self._failing.items() if until > now}
        self._failing[choice] = now + max(FAILURE_SECONDS, wait)


def _asking(request: ModelRequest, choice: ModelChoice) -> ModelRequest:
    return replace(request, choice=choice, tools=request.tools if choice.tools else ())


def _name(choice: ModelChoice) -> str:
    return f"{choice.model} of {choice.provider}"


def _together(first: Failure, others: dict[ModelChoice, Failure]) -> Failure:
    """Returns the error of the first model, with a text that also contains the errors of the other
    models."""
    tried = "; ".join(f"{_name(choice)}: {error}" for choice, error in others.items())
    text = f"{first} (also tried: {tried})"
    if isinstance(first, RateLimited):
        return RateLimited(text, first.retry_after)
    return type(first)(text)
