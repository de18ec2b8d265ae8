"""A conversation gets a title from the auxiliary model, or from its first words."""

from pathlib import Path

from msgspec.structs import replace

from hermes.app.agent import TITLE
from hermes.settings.sections import AuxiliarySettings
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, Conditions, running, until
from hermes.testing.scripted import Answer, fails, says
from hermes.testing.stores import stored_rows
from hermes.types.errors import Disconnected
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit

NAMING = replace(QUIET, auxiliary=AuxiliarySettings(model="small"))


class Models:
    """A main model that answers, and an auxiliary model that names conversations."""

    def __init__(self, name: Answer) -> None:
        self._name = name
        self.named: list[ModelRequest] = []
        self.answered = 0

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        if TITLE in request.system:
            self.named.append(request)
            return await self._name(request, emit)
        self.answered += 1
        return await says(f"answer {self.answered}")(request, emit)


async def talk(home: Path, models: Models, conditions: Conditions, title: str) -> None:
    """Runs a conversation of two turns, and waits until the conversation has this title."""
    server = ChatServer()
    async with running(home, [PlainAdapter(server)], models, conditions):
        for number, text in enumerate(("how do I boil an egg?", "and two?"), 1):
            server.says(text)
            await until(lambda n=number: f"answer {n}" in server.texts())  # type: ignore[misc]
        await until(lambda: title_in(home) == title)


def title_in(home: Path) -> str:
    ((found,),) = stored_rows(home, "select title from sessions")
    return str(found)


async def test_a_conversation_is_named_once_by_the_auxiliary_model(tmp_path: Path) -> None:
    models = Models(says("Boiling eggs"))
    await talk(tmp_path, models, NAMING, "Boiling eggs")
    assert len(models.named) == 1
    assert models.named[0].choice.model == "small"
    assert "how do I boil an egg?" in models.named[0].messages[0].text


async def test_without_an_auxiliary_model_the_first_words_are_the_title(tmp_path: Path) -> None:
    models = Models(says("no"))
    await talk(tmp_path, models, QUIET, "how do I boil an egg?")
    assert models.named == []


async def test_if_the_model_fails_the_first_words_stay_the_title(tmp_path: Path) -> None:
    models = Models(fails(Disconnected("away")))
    await talk(tmp_path, models, NAMING, "how do I boil an egg?")
    assert models.named


async def test_an_unexpected_error_does_not_stop_other_work(tmp_path: Path) -> None:
    async def broken(request: ModelRequest, emit: Emit) -> AssistantMessage:
        raise KeyError("a bug")

    await talk(tmp_path, Models(broken), NAMING, "how do I boil an egg?")
