"""Writes the system prompt of a session. The prompt is stored, and all turns of the session send
the same prompt until, for example, the model or the tools change."""

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from functools import lru_cache
from pathlib import Path

import anyio
import anyio.to_thread

from hermes.core.context_files import context_file, trust_of
from hermes.core.tools.schema import tools_json
from hermes.state.audience import audience_of
from hermes.types.profile import AgentProfile, ModelChoice
from hermes.types.tools import AnyTool
from hermes.types.turns import Prompt, PromptPart, Turn

_INTRO = (
    "You are Hermes, an assistant that people reach where they already are. Answer plainly and"
    " briefly, in the language you are addressed in."
)
IDENTITY = (
    f"{_INTRO} Use your tools when they help, look before you change something, and say so when"
    " something did not work or when you don't know."
)
IDENTITY_WITHOUT_TOOLS = f"{_INTRO} Say so when you don't know."
"""The part of the prompt that tells a model without tools what it is and how it should answer."""
PRIVATE_CHAT = "You talk with one person in a private chat on {platform}."
SHARED_CHAT = (
    "You talk in a {kind} on {platform}, where several people read along. A name in brackets before"
    " a message says who wrote it. Don't tell what you know of somebody from elsewhere."
)
CONTEXT_SHARE = 0.1
"""Largest share of the model's context window that a context file may fill."""
MOST_CACHED = 256
FRESH_SECONDS = 2.0
"""Number of seconds for which requests without a session reuse the same prompt."""

ReadNotes = Callable[[Turn], Awaitable[Sequence[PromptPart]]]
"""Returns the notes for the audience of a turn."""


async def no_notes(turn: Turn) -> Sequence[PromptPart]:
    return ()


class PromptWriter:
    """Writes prompts. A session keeps its prompt as long as the prompt matches the turn."""

    def __init__(
        self,
        read_notes: ReadNotes = no_notes,
        *,
        redact: Callable[[str], str] = str,
        zone: tzinfo | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._read_notes = read_notes
        # The redacted texts are cached, because most prompts contain the same texts.
        self._redact = lru_cache(maxsize=MOST_CACHED)(redact)
        self._zone = zone
        self._clock = clock
        self._known: dict[
            tuple[int, int, str, str, int | None, str],
            tuple[AgentProfile, Mapping[str, AnyTool], str],
        ] = {}
        """A cache of the results of `_fingerprint`. The key contains `id(profile)` and `id(tools)`.
        Each entry also refers to these two objects, so that Python does not reuse their ids."""
        self._writing = anyio.Lock()
        self._fresh: dict[str, tuple[float, Prompt]] = {}

    async def prompt(self, turn: Turn, choice: ModelChoice, tools: Mapping[str, AnyTool]) -> Prompt:
        """Returns the session's prompt. If the session has no prompt, or its prompt no longer
        matches the turn, writes a new prompt and returns it."""
        # The prompt contains the notes of the audience, which are the people who read the answers.
        # If the audience changes, for example because an account now belongs to another person,
        # the prompt must be written again.
        made_for = f"{self._fingerprint(turn, choice, tools)} {audience_of(turn)!r}"
        if turn.personality:
            made_for += f" {hashlib.sha256(turn.personality.encode()).hexdigest()[:32]}"
        if turn.prompt is not None and turn.prompt.fingerprint == made_for:
            return turn.prompt
        if turn.stateless:
            return await self._shared(turn, choice, tools, made_for)
        return await self._written(turn, choice, tools, made_for)

    def _fingerprint(self, turn: Turn, choice: ModelChoice, tools: Mapping[str, AnyTool]) -> str:
        # The key contains the `id()` of the profile and of the tools, because hashing their content
        # would be slow. The cache keeps both objects, so no other object can get the same `id()`.
        profile, where = turn.profile, describe_place(turn)
        key = (id(profile), id(tools), choice.provider, choice.model, choice.context_length, where)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_CACHED:
                self._known.clear()
            known = self._known[key] = (profile, tools, fingerprint(profile, choice, tools, where))
        return known[2]

    async def _shared(
        self, turn: Turn, choice: ModelChoice, tools: Mapping[str, AnyTool], made_for: str
    ) -> Prompt:
        """Returns a prompt that all requests without a session share for FRESH_SECONDS."""
        now = time.monotonic()
        until, known = self._fresh.get(made_for, (0.0, None))
        if known is None or now >= until:
            # One request writes the prompt, and concurrent requests wait until the prompt is
            # written.
            async with self._writing:
                until, known = self._fresh.get(made_for, (0.0, None))
                if known is None or now >= until:
                    known = await self._written(turn, choice, tools, made_for)
                    self._fresh = {key: kept for key, kept in self._fresh.items() if kept[0] > now}
                    self._fresh[made_for] = (now + FRESH_SECONDS, known)
        return known

    async def _written(
        self, turn: Turn, choice: ModelChoice, tools: Mapping[str, AnyTool], made_for: str
    ) -> Prompt:
        profile = turn.profile
        room = int(choice.window * CONTEXT_SHARE * 4)
        # A model without tools can't open files, so it does not need the context file.
        shown = min(profile.context_chars, room) if choice.tools else 0
        found = await anyio.to_thread.run_sync(
            context_file, Path(profile.workspace), shown, trust_of(turn), abandon_on_cancel=True
        )
        parts = [
            PromptPart(
                name="identity",
                text=profile.soul or (IDENTITY if tools else IDENTITY_WITHOUT_TOOLS),
            ),
            PromptPart(name="instructions", text=profile.instructions),
            PromptPart(name="personality", text=turn.personality),
            PromptPart(name="place", text=describe_place(turn)),
            PromptPart(name="workspace", text=_workspace(profile, choice)),
            *([found] if found else []),
            *await self._read_notes(turn),
            PromptPart(name="time", text=self._time()),
        ]
        return Prompt(
            fingerprint=made_for,
            tools=len(tools_json(tuple(tools.values()))) if tools else 0,
            window=choice.window,
            parts=tuple(
                PromptPart(name=part.name, text=self._redact(part.text))
                for part in parts
                if part.text.strip()
            ),
        )

    def _time(self) -> str:
        began = datetime.fromtimestamp(self._clock(), self._zone).astimezone(self._zone)
        # Only the day is given and not the time, because the prompt is reused for many turns.
        return f"This part of the conversation began on {began:%A, %d %B %Y} ({began:%Z})."


def describe_place(turn: Turn) -> str:
    """Describes where the conversation takes place. The text is the same for all messages of the
    conversation."""
    source = turn.source
    if turn.principal is not None:
        return turn.place
    if source.chat_kind == "private":
        chat = PRIVATE_CHAT.format(platform=source.platform)
    else:
        chat = SHARED_CHAT.format(platform=source.platform, kind=source.chat_kind)
    return f"{chat} {turn.place}" if turn.place else chat


def ephemeral(turn: Turn) -> str:
    """Returns the text that is sent with every model call of the turn and never stored."""
    source, profile = turn.source, turn.profile
    channel = profile.channel_prompts.get(f"{source.platform}:{source.chat_id}", "")
    parts = (profile.ephemeral, channel, turn.instructions)
    return "\n\n".join(part for part in parts if part)


def _workspace(profile: AgentProfile, choice: ModelChoice) -> str:
    if not choice.tools or not profile.workspace:
        return ""
    return f"Your workspace is {profile.workspace}; paths are relative to it."


def fingerprint(
    profile: AgentProfile, choice: ModelChoice, tools: Mapping[str, AnyTool], where: str
) -> str:
    """Returns a hash of everything whose change requires a new prompt."""
    seen = hashlib.sha256(tools_json(tuple(tools.values())))
    for part in (
        choice.provider,
        choice.model,
        str(choice.context_length),
        profile.soul,
        profile.instructions,
        profile.workspace,
        where,
    ):
        seen.update(b"\0" + part.encode(errors="surrogatepass"))
    return seen.hexdigest()[:32]
