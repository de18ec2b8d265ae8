"""Commands take effect at once, even while the model works."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.commands import CommandTable, builtin_commands, stop
from hermes.control.gateway import Gateway
from hermes.state import chats
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.rows import said
from hermes.testing.running import running, until
from hermes.testing.scripted import ScriptedModel, hangs, says
from hermes.types.commands import SlashCommand
from hermes.types.errors import ConfigError
from hermes.types.identity import OWNER, ChatRef, Principal
from hermes.types.messages import Accepted, Origin, Refused, Said, UserMessage


class Chat:
    def __init__(self, server: ChatServer, model: ScriptedModel, gateway: Gateway) -> None:
        self.server = server
        self.model = model
        self.gateway = gateway

    async def asks(self, text: str) -> str:
        """Sends the text, and returns the next message that the chat shows."""
        before = len(self.server.texts())
        self.server.says(text)
        await until(lambda: len(self.server.texts()) > before, within=2.0)
        return self.server.texts()[before]


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[Chat]:
    server = ChatServer()
    model = ScriptedModel([hangs(), says("next"), says("after")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        yield Chat(server, model, gateway)


async def test_status_and_stop_work_while_the_model_does_not_answer(chat: Chat) -> None:
    chat.server.says("think")
    await until(lambda: chat.model.requests)
    assert "Working for" in await chat.asks("/status")
    assert (await chat.asks("more")).startswith("Queued (1)")
    assert "1 queued" in await chat.asks("/status")
    before = len(chat.server.texts())
    chat.server.says("/stop")
    await until(lambda: len(chat.server.texts()) == before + 3)
    shown = chat.server.texts()[before:]
    # The chat may show the reply to `/stop` before or after the notice of the stopped turn.
    assert sorted(shown) == ["(stopped: by you)", "Stopped. 1 queued message follows.", "next"]
    assert shown.index("(stopped: by you)") < shown.index("next")
    assert await chat.asks("/status") == "Idle."


async def test_sethome_sets_the_home_chat_and_works_only_in_chats(chat: Chat) -> None:
    reply = await chat.asks("/sethome")
    assert reply.startswith("This is now the home chat of plain")
    store = chat.gateway._store
    assert await store.run(chats.homes) == {"plain": ChatRef(chat_id="1")}
    principal = Principal(name="cli", person=OWNER)
    event = replace(said("x"), body=Said(text="/set-home"), origin=Origin(principal=principal))
    receipt = await chat.gateway.accept(event)
    assert isinstance(receipt, Accepted)
    assert receipt.failed
    assert receipt.reply == "Only a chat can be the home chat: write /sethome in one."


async def test_context_shows_the_input_of_the_model(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        chat = Chat(server, model, gateway)
        assert (await chat.asks("/context")).startswith("Nothing yet")
        assert await chat.asks("hi") == "hello"
        lines = (await chat.asks("/context")).splitlines()
    names = [line.partition(":")[0] for line in lines[:-1]]
    assert names[0] == "identity"
    assert names[-2:] == ["tools", "conversation (2 messages)"]
    assert re.fullmatch(r"together about [\d,]+ of 128,000 \(\d+%\)", lines[-1])


async def test_another_model_answers_in_one_conversation_until_it_ends(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([says(text) for text in "abcd"])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        chat = Chat(server, model, gateway)
        usual = await chat.asks("/model")
        assert usual.endswith("/model NAME chooses another one, /model default the usual one.")
        assert "other of custom answers" in await chat.asks("/model other")
        assert "other of custom answers" in await chat.asks("/model")
        await chat.asks("hi")
        await chat.asks("/model default")
        assert await chat.asks("/model") == usual
        await chat.asks("hi again")
        await chat.asks("/model third")
        await chat.asks("/new")
        await chat.asks("once more")
    first, second, last = (request.choice.model for request in model.requests)
    assert first == "other"
    assert second == last == usual.split()[0]


async def test_a_model_that_can_not_be_used_is_not_chosen(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        chat = Chat(server, model, gateway)
        usual = await chat.asks("/model")
        refused = await chat.asks("/model groq/a/b")
        assert "set GROQ_API_KEY" in refused
        assert "/model default goes back" in refused
        assert "is not the name of a model" in await chat.asks("/model two words")
        assert "is not a model in" in await chat.asks("/model local//etc/passwd.gguf")
        assert await chat.asks("/model") == usual


@pytest.mark.parametrize(
    ("text", "bot", "ours"),
    [
        ("/stop@our_bot", "our_bot", True),
        ("/stop@Our_Bot now", "our_bot", True),
        ("/stop@other_bot", "our_bot", False),
        ("/stop@other_bot", "", False),
        ("/stop", "our_bot", True),
        ("write to a@other_bot", "our_bot", True),
    ],
)
async def test_a_command_for_another_bot_is_ignored(
    tmp_path: Path, text: str, bot: str, ours: bool
) -> None:
    server, model = ChatServer(), ScriptedModel([says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        event = replace(said("k"), body=Said(text=text))
        event = replace(event, origin=replace(event.origin, bot=bot))
        receipt = await gateway.accept(event)
        assert isinstance(receipt, Accepted) == ours
        assert isinstance(receipt, Refused) != ours


async def test_the_reply_to_stop_says_if_nothing_runs(chat: Chat) -> None:
    assert await chat.asks("/stop") == "Nothing is running."


async def test_help_lists_every_command(chat: Chat) -> None:
    lines = (await chat.asks("/help")).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "/stop",
        "/new",
        "/status",
        "/model",
        "/context",
        "/sethome",
        "/help",
    ]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("/stauts", "There is no command /stauts. Did you mean /status?"),
        ("/qqqq", "There is no command /qqqq. /help lists them."),
        ("/sta", "Idle."),
        ("/st", "/st could be /status, /stop."),
        ("/cancel", "Nothing is running."),
        ("/STATUS", "Idle."),
    ],
)
async def test_a_command_name_may_be_abbreviated_misspelt_or_an_alias(
    chat: Chat, given: str, shown: str
) -> None:
    assert await chat.asks(given) == shown


async def test_a_path_is_not_a_command(chat: Chat) -> None:
    chat.server.says("/etc/passwd is a file")
    await until(lambda: chat.model.requests)


async def test_new_stops_the_turn_and_starts_an_empty_conversation(chat: Chat) -> None:
    chat.server.says("think")
    await until(lambda: chat.model.requests)
    chat.server.says("/new")
    await until(lambda: len(chat.server.texts()) == 2)
    # The chat may show the reply to `/new` before or after the notice of the stopped turn.
    stopped, reply = sorted(chat.server.texts())
    assert stopped == "(stopped: by you)"
    assert reply.startswith("A new conversation.")
    await until(lambda: not chat.gateway.busy)
    chat.server.says("hello")
    await until(lambda: "next" in chat.server.texts())
    assert chat.model.requests[1].messages == (UserMessage(text="hello"),)


async def test_a_command_that_comes_twice_is_answered_once(chat: Chat) -> None:
    number = chat.server.says("/status")
    chat.server.repeat(number)
    await until(lambda: chat.server.texts() == ["Idle."])
    assert (await chat.asks("/help")).startswith("/stop")


async def test_a_message_that_begins_with_two_slashes_is_text(tmp_path: Path) -> None:
    model, server = ScriptedModel([says("noted")]), ChatServer()
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("//stop is a command")
        await until(server.texts)
    assert [m.text for m in model.requests[0].messages] == ["/stop is a command"]


def named(name: str, *aliases: str) -> SlashCommand:
    return SlashCommand(name=name, help="a test", action=stop, aliases=aliases)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (named("help"), "/help is a name of the command /help and of /help"),
        (named("assist", "help"), "/help is a name of the command /assist and of /help"),
        (named("reset"), "/reset is a name of the command /new and of /reset"),
        (named("halt", "stop"), "/stop is a name of the command /stop and of /halt"),
        (named("halt", "cancel"), "/cancel is a name of the command /stop and of /halt"),
    ],
)
def test_two_commands_can_not_share_a_name_or_an_alias(command: SlashCommand, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        CommandTable([*builtin_commands(), command])
