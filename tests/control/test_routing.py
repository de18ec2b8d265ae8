"""The agent that a plugin chooses answers a message. If no plugin chooses an agent, the default
agent answers."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.routing import DEFAULT_AGENT, Router, RoutingFailed
from hermes.hookspecs import hookimpl
from hermes.testing.platforms import ChatServer, PlainAdapter, Update, to_event
from hermes.testing.running import QUIET, rows, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.agents import AgentHome
from hermes.types.identity import AgentId
from hermes.types.messages import MessageEvent, Refused

OTHER = AgentId("other")
EVENT = to_event(Update(id=1, chat="1", user="7", text="hi"), "plain")


def test_the_default_agent_answers_unless_a_plugin_chooses() -> None:
    agents = {DEFAULT_AGENT, OTHER}
    assert Router(agents)(EVENT) == DEFAULT_AGENT
    assert Router(agents, lambda event: OTHER)(EVENT) == OTHER


def test_an_agent_that_is_not_hosted_is_never_replaced_by_another_agent() -> None:
    with pytest.raises(RoutingFailed, match="'other', which is not hosted here"):
        Router({DEFAULT_AGENT}, lambda event: OTHER)(EVENT)


def test_an_error_of_the_hook_makes_the_routing_fail() -> None:
    def select(event: MessageEvent) -> AgentId | None:
        raise KeyError("a fault of the plugin")

    with pytest.raises(RoutingFailed, match="a fault of the plugin"):
        Router({DEFAULT_AGENT}, select)(EVENT)


class BadRoute:
    """A plugin with a defect: for chat 2, its hook names an unknown agent or raises an error."""

    def __init__(self, *, fails: bool) -> None:
        self._fails = fails

    @hookimpl
    def select_agent(self, event: MessageEvent) -> AgentId | None:
        if event.source.chat_id != "2":
            return None
        if self._fails:
            raise KeyError("a fault of the plugin")
        return OTHER


@pytest.mark.parametrize("fails", [True, False])
async def test_a_message_without_a_route_is_refused_and_does_not_block_the_account(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    server, model = ChatServer(), ScriptedModel([says("hello")])
    server.says("to nobody", chat="2")
    server.says("hi", chat="1")
    conditions = replace(QUIET, plugins=(BadRoute(fails=fails),))
    async with running(tmp_path, [PlainAdapter(server)], model, conditions) as gateway:
        await until(lambda: server.texts() == ["hello"])
        lost = to_event(Update(id=9, chat="2", user="7", text="again"), "plain")
        assert await gateway.accept(lost) == Refused(reason="no agent could be chosen")
    assert [message.text for message in model.requests[0].messages] == ["hi"]
    assert "a message is refused" in caplog.text


class TwoAgents:
    """A plugin that hosts a second agent for chat 2."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @hookimpl
    def register_agents(self) -> list[AgentHome]:
        return [AgentHome(id=OTHER, home=self._home)]

    @hookimpl
    def select_agent(self, event: MessageEvent) -> AgentId | None:
        return OTHER if event.source.chat_id == "2" else None


async def test_two_agents_of_one_gateway_have_separate_sessions_and_prompts(tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "config.yaml").write_text("model: {default: n, base_url: 'http://127.0.0.1:9/v1'}\n")
    (second / "SOUL.md").write_text("You are the second one.")
    server, model = ChatServer(), ScriptedModel([says("one"), says("two")])
    conditions = replace(QUIET, plugins=(TwoAgents(second),))
    async with running(tmp_path / "first", [PlainAdapter(server)], model, conditions) as gateway:
        server.says("to the first", chat="1")
        await until(lambda: server.texts() == ["one"])
        server.says("to the second", chat="2")
        await until(lambda: server.texts("2") == ["two"])
        keys = await rows(gateway._store, "select key from sessions order by key")
    assert keys == [("agent:main:plain:private:1",), ("agent:other:plain:private:2",)]
    first_request, second_request = model.requests
    assert (first_request.choice.model, second_request.choice.model) == ("m", "n")
    assert "You are the second one." in second_request.system
    assert "You are the second one." not in first_request.system
    assert [message.text for message in second_request.messages] == ["to the second"]
