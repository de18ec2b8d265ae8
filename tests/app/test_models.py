"""A model can be resolved and called without a gateway."""

from pathlib import Path

import pytest

from hermes.app.models import call_model, ignored_options, model_problem
from hermes.settings import load
from hermes.state.paths import STORE_NAME
from hermes.testing.upstream import STREAM, answering, choice_of
from hermes.types.events import AgentEvent, TextDelta
from hermes.types.messages import Sampling

PAYLOADS = Path(__file__).parents[1] / "core" / "models" / "payloads"


def test_a_model_can_be_called_only_with_a_key(tmp_path: Path) -> None:
    expected = "The provider 'openai' has no key: set OPENAI_API_KEY"
    assert model_problem(load(tmp_path, {}))("openai/gpt-5") == expected
    assert model_problem(load(tmp_path, {"OPENAI_API_KEY": "k"}))("openai/gpt-5") is None
    assert model_problem(load(tmp_path, {}))("nobody/gpt-5") == ""


@pytest.mark.parametrize(
    ("keys", "model", "expected"),
    [
        ({"OPENAI_API_KEY": "k"}, None, {"seed"}),
        ({"OPENAI_API_KEY": "k", "MISTRAL_API_KEY": "k"}, "mistral/m", set()),
        ({"ANTHROPIC_API_KEY": "k"}, None, {"seed", "temperature"}),
        ({"OPENAI_API_KEY": "k"}, "mistral/m", set()),
        ({}, None, set()),
    ],
)
def test_the_options_that_a_model_ignores_are_known(
    tmp_path: Path, keys: dict[str, str], model: str | None, expected: set[str]
) -> None:
    ignored = ignored_options(load(tmp_path, keys))
    assert set(ignored(model, Sampling(temperature=0.5, seed=1))) == expected


async def test_a_model_can_be_called_without_a_gateway(tmp_path: Path) -> None:
    payload = (PAYLOADS / "chat_openai_text.sse").read_bytes()
    events: list[AgentEvent] = []
    async with answering(STREAM + payload) as url:
        answer = await call_model(load(tmp_path, {}), choice_of("chat", url), "Hi", events.append)
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert answer.text == said != ""
    assert not (tmp_path / STORE_NAME).exists()
