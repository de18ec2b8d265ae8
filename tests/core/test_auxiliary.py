"""The auxiliary model is called first. If it fails, the main model is called."""

import pytest

from hermes.core.auxiliary import Auxiliary
from hermes.testing.scripted import ScriptedModel, fails, says
from hermes.testing.turns import CHOICE
from hermes.types.errors import AuthFailed, Rejected
from hermes.types.events import AgentEvent
from hermes.types.profile import UNKNOWN_LENGTH, ModelChoice

SMALL = ModelChoice(provider="p", model="small", base_url="", context_length=1000)


async def write(model: ScriptedModel, events: list[AgentEvent]) -> str:
    auxiliary = Auxiliary(model, lambda main: SMALL)
    return await auxiliary.write(CHOICE, "be brief", "a text", 50, events.append)


async def test_the_auxiliary_model_is_called_first_and_its_text_is_not_emitted() -> None:
    model, events = ScriptedModel([says("short")]), list[AgentEvent]()
    assert await write(model, events) == "short"
    assert [request.choice.model for request in model.requests] == ["small"]
    assert model.requests[0].sampling.max_tokens == 50
    assert events == []


async def test_the_main_model_is_called_if_the_auxiliary_model_fails() -> None:
    model = ScriptedModel([fails(AuthFailed("no key")), says("short")])
    assert await write(model, []) == "short"
    assert [request.choice.model for request in model.requests] == ["small", "m"]


async def test_the_failure_of_both_models_is_raised() -> None:
    with pytest.raises(Rejected, match="returned an empty text"):
        await write(ScriptedModel([says(""), says(" ")]), [])


def test_the_smaller_context_length_of_the_two_models_is_used() -> None:
    auxiliary = Auxiliary(ScriptedModel([]), lambda main: SMALL)
    assert auxiliary.context_length(CHOICE) == 1000
    unknown = Auxiliary(ScriptedModel([]), lambda main: CHOICE)
    assert unknown.context_length(CHOICE) == UNKNOWN_LENGTH
