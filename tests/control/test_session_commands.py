"""The commands about the conversations of a session."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from hermes.core.compaction import SUMMARY_SYSTEM
from hermes.settings.sections import AuxiliarySettings
from hermes.testing.command_chats import command_chat
from hermes.testing.running import QUIET, until
from hermes.testing.scripted import hangs, says
from hermes.testing.stores import stored_rows
from hermes.types.messages import Message, UserMessage


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


def titles(home: Path) -> list[str]:
    """Returns the titles of the past conversations and of the current one."""
    both = "select title from past_conversations union all select title from sessions"
    return [title for (title,) in stored_rows(home, both)]


async def test_the_command_new_stops_the_turn_and_starts_an_empty_conversation(
    tmp_path: Path,
) -> None:
    async with command_chat(tmp_path, [hangs(), says("next")]) as chat:
        chat.server.says("think")
        await until(lambda: chat.model.requests)
        chat.server.says("/new")
        await until(lambda: len(chat.server.texts()) == 2)
        # The reply to the command may come before or after the end of the turn.
        stopped, reply = sorted(chat.server.texts())
        assert stopped == "(stopped: by you)"
        assert reply.startswith("A new conversation.")
        await until(lambda: not chat.gateway.busy)
        chat.server.says("hello")
        await until(lambda: "next" in chat.server.texts())
        assert chat.model.requests[1].messages == (UserMessage(text="hello"),)


async def test_a_title_that_a_person_gave_is_kept(tmp_path: Path) -> None:
    naming = replace(QUIET, auxiliary=AuxiliarySettings(model="small"))
    answers = [says(text) for text in ("one", "Written by the model", "two", "Not used")]
    async with command_chat(tmp_path, answers, naming) as chat:
        assert (await chat.asks("/title")).startswith("This conversation has no title yet.")
        await chat.asks("how do I boil an egg?")
        await until(lambda: titles(tmp_path) == ["Written by the model"])
        assert (await chat.asks("/title")).startswith("The title is “Written by the model”.")
        assert await chat.asks("/title  My   eggs ") == "The title is now “My eggs”."
        reply = await chat.asks("/new Paris in May")
        assert reply.startswith("A new conversation with the title “Paris in May”.")
        assert await chat.asks("where is the Louvre?") == "two"
        await until(lambda: len(chat.model.requests) == 4)
    assert titles(tmp_path) == ["My eggs", "Paris in May"]


async def test_an_earlier_conversation_is_listed_and_resumed(tmp_path: Path) -> None:
    async with command_chat(tmp_path, [says(text) for text in "abcd"]) as chat:
        assert await chat.asks("/sessions") == "There are no conversations here yet."
        await chat.asks("red apples")
        await chat.asks("/new")
        await chat.asks("red pears")
        assert (await chat.asks("/resume")).splitlines() == [
            "/resume 2: red pears (2 messages, just now)",
            "/resume 1: red apples (2 messages, just now)",
        ]
        assert await chat.asks("/sessions APPLES") == "/resume 1: red apples (2 messages, just now)"
        assert await chat.asks("/sessions plums") == (
            "There is no conversation with “plums” in its title here."
        )
        several = (await chat.asks("/resume red")).splitlines()
        assert several[0] == "“red” could be one of these:"
        assert len(several) == 3
        assert await chat.asks("/resume 2") == "This is the current conversation."
        assert await chat.asks("/resume 3") == (
            "There is no conversation “3” here. /sessions lists them."
        )
        assert await chat.asks("/resume APPLES") == (
            "“red apples” is continued. It has 2 messages so far."
        )
        await chat.asks("more apples")
        await chat.asks("/resume 2")
        await chat.asks("more pears")
        *_, apples, pears = (request.messages for request in chat.model.requests)
    assert texts(apples) == ["red apples", "a", "more apples"]
    assert texts(pears) == ["red pears", "b", "more pears"]


async def test_nobody_can_resume_the_conversation_of_another_person(tmp_path: Path) -> None:
    async with command_chat(tmp_path, [says("a"), says("b")]) as chat:
        await chat.asks("a secret")
        await chat.asks("/new")
        for text in ("/sessions", "/resume 1"):
            chat.server.says(text, user="8")
        await until(lambda: len(chat.server.texts()) == 4)
        assert chat.server.texts()[2:] == [
            "There are no conversations here yet.",
            "There is no conversation “1” here. /sessions lists them.",
        ]
        assert "a secret" in await chat.asks("/sessions")


async def test_a_branch_is_a_copy_and_the_original_can_be_resumed(tmp_path: Path) -> None:
    async with command_chat(tmp_path, [says(text) for text in "abc"]) as chat:
        assert await chat.asks("/branch") == "There is nothing to copy yet."
        await chat.asks("an apple")
        assert await chat.asks("/branch") == (
            "This is now a copy of the conversation, with the title “an apple (branch)”."
            " /sessions shows how to go back to the original."
        )
        await chat.asks("a pear")
        await chat.asks("/resume 1")
        await chat.asks("a plum")
        assert (await chat.asks("/sessions")).splitlines() == [
            "/resume 1: an apple (4 messages, just now)",
            "/resume 2: an apple (branch) (4 messages, just now)",
        ]
        first, branched, original = chat.model.requests
    assert texts(branched.messages) == ["an apple", "a", "a pear"]
    assert texts(original.messages) == ["an apple", "a", "a plum"]
    assert branched.system == first.system, "the copy begins with the same prompt"


async def test_a_conversation_is_not_switched_during_a_turn(tmp_path: Path) -> None:
    async with command_chat(tmp_path, [hangs()]) as chat:
        chat.server.says("think")
        await until(lambda: chat.model.requests)
        for name in ("branch", "resume", "compress"):
            assert await chat.asks(f"/{name}") == (
                f"/{name} can't be used during a turn: wait for its end, or /stop it."
            )


async def test_the_command_compress_writes_a_summary_before_the_next_answer(tmp_path: Path) -> None:
    answers = [*map(says, "abcd"), says("They count."), says("e"), says("f")]
    async with command_chat(tmp_path, answers) as chat:
        assert await chat.asks("/compress") == "There are too few messages to summarise."
        for number in range(1, 5):
            await chat.asks(f"number {number}")
        assert (await chat.asks("/compress")).startswith("The earlier messages are summarised")
        assert len(chat.model.requests) == 4, "the command itself calls no model"
        assert "e" in await chat.asks("number 5")
        await chat.asks("/branch")
        await chat.asks("number 6")
        summarised, answered, later = chat.model.requests[4:]
    assert "number 2" in summarised.messages[0].text
    for request, last in ((answered, "number 5"), (later, "number 6")):
        kept = texts(request.messages)
        assert any("They count." in text for text in kept)
        assert "number 2" not in kept
        assert kept[-1] == last


async def test_a_requested_summary_is_written_after_a_restart(tmp_path: Path) -> None:
    async with command_chat(tmp_path, [*map(says, "abcd"), hangs()]) as chat:
        for number in range(1, 5):
            await chat.asks(f"number {number}")
        await chat.asks("/compress")
        chat.server.says("number 5")
        await until(lambda: len(chat.model.requests) == 5)
    answers, before = [says("They count."), says("e"), says("f")], len(chat.server.texts())
    async with command_chat(tmp_path, answers, server=chat.server) as chat:
        await until(lambda: len(chat.server.texts()) > before)
        summarised, answered = chat.model.requests
        assert summarised.system == SUMMARY_SYSTEM
        assert any("They count." in text for text in texts(answered.messages))
        await chat.asks("number 6")
        assert len(chat.model.requests) == 3, "it is summarised once"
