"""The prompt has the right parts, does not exceed its size limits, and stays the same between
turns."""

from datetime import UTC
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.core.prompt import IDENTITY, IDENTITY_WITHOUT_TOOLS, PromptWriter, ephemeral
from hermes.testing.tools import append, ask
from hermes.testing.turns import CHOICE, GROUP, PRIVATE, a_turn
from hermes.types.identity import OWNER, PersonId, Principal, Source
from hermes.types.tools import AnyTool
from hermes.types.turns import Prompt, PromptPart, Turn

TOOLS: dict[str, AnyTool] = {"append": append}


async def written(turn: Turn) -> Prompt:
    return await PromptWriter(clock=lambda: 0.0, zone=UTC).prompt(turn, CHOICE, TOOLS)


def names(prompt: Prompt) -> list[str]:
    return [part.name for part in prompt.parts]


async def test_stable_parts_come_first_and_empty_parts_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("use tabs")

    async def remember(turn: Turn) -> list[PromptPart]:
        return [PromptPart(name="memory", text="likes tea")]

    prompt_writer = PromptWriter(remember, clock=lambda: 0.0, zone=UTC)
    prompt = await prompt_writer.prompt(a_turn(workspace=tmp_path), CHOICE, TOOLS)
    assert names(prompt) == ["identity", "place", "workspace", "AGENTS.md", "memory", "time"]
    assert prompt.text.startswith(IDENTITY)
    assert "likes tea" in prompt.text
    assert prompt.text.endswith("began on Thursday, 01 January 1970 (UTC).")
    assert prompt.tools > 100


async def test_the_text_of_soul_md_replaces_the_identity() -> None:
    turn = a_turn()
    own = replace(turn.profile, soul="You are Ada.", instructions="Be formal.")
    prompt = await written(replace(turn, profile=own))
    assert IDENTITY not in prompt.text
    assert prompt.text.startswith("You are Ada.\n\nBe formal.")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (replace(PRIVATE, platform="telegram"), "one person in a private chat on telegram"),
        (GROUP, "group on p, where several people read along"),
    ],
)
async def test_the_prompt_says_where_the_conversation_takes_place(
    source: Source, words: str
) -> None:
    assert words in (await written(a_turn(source=source))).text


async def test_an_entry_point_with_a_principal_supplies_the_place() -> None:
    api = replace(a_turn(principal=Principal(name="default", person=OWNER)), place="")
    assert "place" not in names(await written(api))
    terminal = replace(api, place="You talk in a terminal.")
    assert "You talk in a terminal." in (await written(terminal)).text


async def test_the_sender_does_not_change_the_prompt() -> None:
    one = replace(GROUP, user_id="1", user_name="Alice")
    other = replace(GROUP, user_id="2", user_name="Bob")
    assert await written(a_turn(source=one)) == await written(a_turn(source=other))


async def test_later_notes_do_not_change_the_session_s_prompt() -> None:
    notes = ["one"]

    async def remember(turn: Turn) -> list[PromptPart]:
        return [PromptPart(name="memory", text=notes[0])]

    turn = a_turn()
    first = await PromptWriter(remember).prompt(turn, CHOICE, TOOLS)
    notes[0] = "two"
    again = await PromptWriter(remember).prompt(replace(turn, prompt=first), CHOICE, TOOLS)
    assert again is first
    assert "two" in (await PromptWriter(remember).prompt(turn, CHOICE, TOOLS)).text


@pytest.mark.parametrize("change", ["model", "tools", "soul", "person"])
async def test_a_change_of_the_model_toolset_persona_or_person_needs_a_new_prompt(
    change: str,
) -> None:
    prompt_writer, turn = PromptWriter(), a_turn()
    first = await prompt_writer.prompt(turn, CHOICE, TOOLS)
    later = replace(turn, prompt=first)
    choice, tools = CHOICE, dict(TOOLS)
    match change:
        case "model":
            choice = replace(CHOICE, model="another")
        case "tools":
            tools["ask"] = ask
        case "person":
            later = replace(later, person=PersonId("somebody else"))
        case _:
            later = replace(later, profile=replace(turn.profile, soul="You are Ada."))
    assert await prompt_writer.prompt(later, choice, tools) != first


async def test_ephemeral_text_is_not_in_the_prompt() -> None:
    turn = a_turn(source=GROUP)
    profile = replace(turn.profile, ephemeral="one", channel_prompts={"p:-5": "two", "p:1": "no"})
    turn = replace(turn, profile=profile, instructions="three")
    assert ephemeral(turn) == "one\n\ntwo\n\nthree"
    assert await written(turn) == await written(a_turn(source=GROUP))


async def test_secrets_are_redacted_in_the_prompt() -> None:
    turn = a_turn()
    turn = replace(turn, profile=replace(turn.profile, instructions="the key is hunter2hunter2"))
    prompt_writer = PromptWriter(redact=lambda text: text.replace("hunter2hunter2", "…"))
    assert "hunter2" not in (await prompt_writer.prompt(turn, CHOICE, TOOLS)).text


async def test_a_small_model_gets_less_of_a_context_file(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x" * 50_000)
    turn = a_turn(workspace=tmp_path)
    small = replace(CHOICE, context_length=2048)
    prompt = await PromptWriter().prompt(turn, small, TOOLS)
    assert len(prompt.text) < 2500
    assert "AGENTS.md" in names(prompt)


async def test_the_prompt_of_a_model_without_tools_does_not_mention_files(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("use tabs")
    talker = replace(CHOICE, tools=False)
    prompt = await PromptWriter().prompt(a_turn(workspace=tmp_path), talker, {})
    assert names(prompt) == ["identity", "place", "time"]


async def test_requests_without_a_session_share_a_prompt_for_two_seconds() -> None:
    asked = []

    async def remember(turn: Turn) -> list[PromptPart]:
        asked.append(turn)
        return []

    prompt_writer = PromptWriter(remember)
    for _ in range(3):
        await prompt_writer.prompt(replace(a_turn(), stateless=True), CHOICE, TOOLS)
    assert len(asked) == 1
    await prompt_writer.prompt(replace(a_turn(person="bob"), stateless=True), CHOICE, TOOLS)
    assert len(asked) == 2
    await prompt_writer.prompt(a_turn(), CHOICE, TOOLS)
    assert len(asked) == 3


async def test_notes_of_one_chat_are_never_in_the_prompt_of_another() -> None:
    """The chats differ in the account, the kind, the chat id or the person, and each chat has
    different notes."""

    def memory_of(source: Source, person: str) -> str:
        return f"<{source.account}, {source.chat_kind} {source.chat_id}, {person}>"

    async def remember(turn: Turn) -> list[PromptPart]:
        return [PromptPart(name="memory", text=memory_of(turn.source, turn.person or ""))]

    chats = [
        (GROUP, "alice"),
        (replace(GROUP, chat_id="-6"), "alice"),
        (replace(GROUP, account="q"), "alice"),
        (replace(GROUP, account="q", chat_id="-6"), "bob"),
        (replace(GROUP, chat_kind="channel"), "alice"),
        (PRIVATE, "alice"),
        (PRIVATE, "bob"),
        (replace(PRIVATE, account="q", chat_id="2"), "carol"),
    ]
    prompt_writer = PromptWriter(remember)
    for source, person in chats:
        turn = replace(a_turn(source=source, person=person), stateless=True)
        prompt = await prompt_writer.prompt(turn, CHOICE, TOOLS)
        told = [memory_of(*chat) for chat in chats if memory_of(*chat) in prompt.text]
        assert told == [memory_of(source, person)]


async def test_the_prompt_of_a_model_without_tools_does_not_mention_tools() -> None:
    prompt = await PromptWriter().prompt(a_turn(), replace(CHOICE, tools=False), {})
    assert prompt.text.startswith(IDENTITY_WITHOUT_TOOLS)
    assert "tools" not in prompt.text


async def test_another_personality_needs_a_new_prompt() -> None:
    prompt_writer = PromptWriter()
    plain = await prompt_writer.prompt(a_turn(), CHOICE, TOOLS)
    chosen = replace(a_turn(), prompt=plain, personality="Talk like a pirate.")
    prompt = await prompt_writer.prompt(chosen, CHOICE, TOOLS)
    assert "Talk like a pirate." in prompt.text
    assert await prompt_writer.prompt(replace(chosen, prompt=prompt), CHOICE, TOOLS) is prompt
    without = replace(chosen, prompt=prompt, personality="")
    assert "pirate" not in (await prompt_writer.prompt(without, CHOICE, TOOLS)).text
