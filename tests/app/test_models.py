"""Work of the command line on models without a gateway."""

from pathlib import Path

from hermes.app.models import ask_model, reachable
from hermes.settings import load
from hermes.state.paths import STORE_NAME
from hermes.testing.upstream import STREAM, answering, choice_of
from hermes.types.events import AgentEvent, TextDelta

PAYLOADS = Path(__file__).parents[1] / "core" / "models" / "payloads"


def test_a_model_can_be_reached_only_with_a_key(tmp_path: Path) -> None:
    assert not reachable(load(tmp_path, {}))("openai/gpt-5")
    assert reachable(load(tmp_path, {"OPENAI_API_KEY": "k"}))("openai/gpt-5")


async def test_one_question_is_put_to_a_model_without_a_gateway(tmp_path: Path) -> None:
    payload = (PAYLOADS / "chat_openai_text.sse").read_bytes()
    events: list[AgentEvent] = []
    async with answering(STREAM + payload) as url:
        answer = await ask_model(load(tmp_path, {}), choice_of("chat", url), "Hi", events.append)
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert answer.text == said != ""
    assert not (tmp_path / STORE_NAME).exists()
