"""The commands about the model of a session."""

import re
from pathlib import Path

from msgspec.structs import replace

from hermes.settings.sections import AgentSettings
from hermes.testing.command_chats import command_chat
from hermes.testing.running import QUIET
from hermes.testing.scripted import Answer, says
from hermes.types.events import UsageReported
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit

PIRATE = "Talk like a pirate."
WITH_PERSONALITIES = replace(
    QUIET,
    agent=AgentSettings(
        drain_seconds=0.0, personalities={"Pirate": PIRATE, "teacher": "Explain each step."}
    ),
)


def uses(prompt: int, completion: int) -> Answer:
    """Returns an answer of one word that reports this usage."""

    async def answer(request: ModelRequest, emit: Emit) -> AssistantMessage:
        emit(UsageReported(prompt_tokens=prompt, completion_tokens=completion))
        return await says("ok")(request, emit)

    return answer


async def test_the_command_context_shows_the_input_of_the_model(tmp_path: Path) -> None:
    async with command_chat(tmp_path, [says("hello")]) as chat:
        assert (await chat.asks("/context")).startswith("Nothing yet")
        assert await chat.asks("hi") == "hello"
        lines = (await chat.asks("/context")).splitlines()
    names = [line.partition(":")[0] for line in lines[:-1]]
    assert names[0] == "identity"
    assert names[-2:] == ["tools", "conversation (2 messages)"]
    assert re.fullmatch(r"together about [\d,]+ of 128,000 \(\d+%\)", lines[-1])


async def test_another_model_answers_in_one_conversation_until_it_ends(tmp_path: Path) -> None:
    async with command_chat(tmp_path, [says(text) for text in "abcd"]) as chat:
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
    first, second, last = (request.choice.model for request in chat.model.requests)
    assert first == "other"
    assert second == last == usual.split()[0]


async def test_a_model_that_can_not_be_used_is_not_chosen(tmp_path: Path) -> None:
    async with command_chat(tmp_path) as chat:
        usual = await chat.asks("/model")
        refused = await chat.asks("/model groq/a/b")
        assert "set GROQ_API_KEY" in refused
        assert "/model default goes back" in refused
        assert "is not the name of a model" in await chat.asks("/model two words")
        assert "is not a model in" in await chat.asks("/model local//etc/passwd.gguf")
        assert await chat.asks("/model") == usual


async def test_a_reasoning_effort_is_used_until_the_conversation_ends(tmp_path: Path) -> None:
    async with command_chat(tmp_path, [says(text) for text in "abc"]) as chat:
        efforts = "It can be none, minimal, low, medium, high, xhigh, max, default."
        assert await chat.asks("/reasoning") == f"The reasoning effort is default. {efforts}"
        assert await chat.asks("/reasoning HIGH") == (
            "The reasoning effort is high, from the next message on."
        )
        assert await chat.asks("/reasoning") == f"The reasoning effort is high. {efforts}"
        assert (await chat.asks("/reasoning great")).startswith("The reasoning effort can be none,")
        await chat.asks("one")
        await chat.asks("/reasoning default")
        await chat.asks("two")
        await chat.asks("/reasoning low")
        await chat.asks("/new")
        await chat.asks("three")
        used = [request.sampling.reasoning_effort for request in chat.model.requests]
    assert used == ["high", None, None]


async def test_a_personality_is_part_of_the_prompt_until_it_is_removed(tmp_path: Path) -> None:
    answers = [says(text) for text in "abcde"]
    async with command_chat(tmp_path, answers, WITH_PERSONALITIES) as chat:
        can_be = "It can be Pirate, teacher, none."
        assert await chat.asks("/personality") == f"The personality is none. {can_be}"
        assert await chat.asks("/personality pirate") == (
            "The personality is Pirate, from the next message on."
        )
        assert await chat.asks("/personality") == f"The personality is Pirate. {can_be}"
        await chat.asks("one")
        await chat.asks("two")
        assert "personality: " in await chat.asks("/context")
        assert await chat.asks("/personality none") == (
            "There is no personality, from the next message on."
        )
        await chat.asks("three")
        await chat.asks("/personality pirate")
        await chat.asks("/new")
        await chat.asks("four")
        assert await chat.asks("/personality pirat") == (
            "There is no personality 'pirat': did you mean 'Pirate'?"
        )
        prompts = [request.system for request in chat.model.requests]
    assert [PIRATE in prompt for prompt in prompts] == [True, True, False, False]
    assert prompts[0] == prompts[1], "the prompt is written once for a personality"


async def test_a_personality_needs_a_setting(tmp_path: Path) -> None:
    async with command_chat(tmp_path) as chat:
        assert await chat.asks("/personality pirate") == (
            "There is no personality 'pirate'. The setting agent.personalities defines them."
        )


async def test_the_command_usage_counts_the_turns_of_this_conversation(tmp_path: Path) -> None:
    async with command_chat(tmp_path, [uses(1000, 20), uses(1100, 5), uses(7, 7)]) as chat:
        nothing = "This conversation has used no tokens yet."
        assert await chat.asks("/usage") == nothing
        await chat.asks("one")
        await chat.asks("two")
        assert await chat.asks("/usage") == (
            "This conversation has used 2,100 input tokens and 25 output tokens in 2 turns."
        )
        await chat.asks("/new")
        assert await chat.asks("/usage") == nothing
        await chat.asks("three")
        assert "7 input tokens and 7 output tokens in 1 turn." in await chat.asks("/usage")
