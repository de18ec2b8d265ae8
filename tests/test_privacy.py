"""Three people talk to one agent in private and in groups. No private message reaches another
person, although the model repeats everything that it knows."""

import operator
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.core import compaction, flush
from hermes.settings.sections import AuxiliarySettings, MemorySettings
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import DRAINING, Conditions, running, until, until_rows
from hermes.testing.scripted import Answer, calls, says
from hermes.types.identity import ChatKind, SessionKey
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit
from hermes.types.store import Store
from hermes.types.value import Value

RESTARTS, HOURS = 3, 4
Asked = tuple[str, Mapping[str, object]]
"""The name and the arguments of a tool call."""
TAG = re.compile(r"(?:Alice|Bob|Carol)(?:Private|Harbour|Island)\d+z")
"""Matches a tag: a word that consists of the speaker, the place of a message and a number. A tag is
a single word, because the excerpts of a search never cut a word."""


class Place(Value):
    """One conversation: a person in a chat. Two people in a group are two places."""

    who: str
    user: str
    where: str
    chat: str
    kind: ChatKind


ALICE = Place(who="Alice", user="7", where="Private", chat="7", kind="private")
BOB = Place(who="Bob", user="70", where="Private", chat="70", kind="private")
CAROL = Place(who="Carol", user="700", where="Private", chat="700", kind="private")
# The ids of users and groups have common prefixes, so that code which compares only prefixes would
# confuse these ids.
BOB_AT_THE_HARBOUR = replace(BOB, where="Harbour", chat="-1", kind="group")
PLACES = (
    *(ALICE, BOB, CAROL, BOB_AT_THE_HARBOUR),
    replace(ALICE, where="Harbour", chat="-1", kind="group"),
    *(replace(one, where="Island", chat="-10", kind="group") for one in (ALICE, CAROL)),
)


class Gossip:
    """A model that writes everything that it reads into its answers and notes, and searches for
    everything else."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.tags: list[str] = []
        """All tags that people have sent so far. In every conversation, the model searches for
        random tags of this list."""
        self.heard: dict[Place, set[str]] = {place: set() for place in PLACES}
        """The tags that the model read in each conversation."""
        self.leaks: list[str] = []
        self.reminded: set[Place] = set()
        """The conversations whose prompt contained tags."""
        self.summaries = self.notes = 0

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        tags = set(TAG.findall(written(request)))
        self._check(request, tags)
        return await self._answer(request, tags)(request, emit)

    def _check(self, request: ModelRequest, tags: set[str]) -> None:
        place = place_of(request)
        if place is None:
            # The request summarises a conversation, but does not say where people had this
            # conversation. If no place allows all tags of the request, the request mixes
            # conversations.
            if not any(tags <= self.allowed(one) for one in PLACES):
                self.leaks.append(f"{request.step} mixes {sorted(tags)}")
            return
        if strange := tags - self.allowed(place):
            self.leaks.append(f"{place.who} in {place.where} is shown {sorted(strange)}")
        self.heard[place] |= tags
        if TAG.search(request.system):
            self.reminded.add(place)

    def allowed(self, place: Place) -> set[str]:
        """Returns the tags that the model may see in this place. In a group, these are the tags of
        the group. In a private chat, these are the person's own tags, and the tags that the model
        has read while it answered this person in a group."""
        if place.kind == "group":
            return {tag for tag in self.tags if place.where in tag}
        shared = [one for one in PLACES if one.who == place.who and one.kind == "group"]
        own = {tag for tag in self.tags if tag.startswith(place.who)}
        return own.union(*(self.heard[one] for one in shared))

    def _answer(self, request: ModelRequest, tags: set[str]) -> Answer:
        all_of_it = " ".join(sorted(tags))
        if not request.tools:
            self.summaries += request.system == compaction.SUMMARY_SYSTEM
            return says(f"in short {all_of_it}")
        last = request.messages[-1]
        if request.system.startswith(flush.SYSTEM):
            self.notes += 1
            noted = note("memory", f"flushed {all_of_it}")
            return calls(noted) if isinstance(last, UserMessage) else says("done")
        if isinstance(last, UserMessage):
            return calls(*self._curious(all_of_it))
        return says(f"I know of {all_of_it} around the old lighthouse")

    def _curious(self, known: str) -> list[Asked]:
        # The model searches for the words in lower case, which `TAG` does not match. So the request
        # for a search is not counted as a leaked tag.
        sought = [tag.lower() for tag in self.chance.sample(self.tags, min(len(self.tags), 60))]
        number = self.chance.randrange(1, 6 * len(self.tags) + 1)
        tasks = [{"id": "1", "text": known[:500]}]
        thinkable: list[Asked] = [
            note("memory", f"noted {known}"),
            note("user", f"noted {known}"),
            ("session_search", {"query": " ".join(sought), "limit": 20}),
            ("session_search", {"around": number}),
            ("todo", {} if self.chance.random() < 0.5 else {"todos": tasks}),
        ]
        return self.chance.sample(thinkable, 3)


def note(target: str, text: str) -> Asked:
    return "memory", {"target": target, "edits": [{"action": "add", "content": text}]}


def written(request: ModelRequest) -> str:
    """Returns the whole text of the request."""
    said = [request.system, request.ephemeral]
    for message in request.messages:
        said.append(message.text)
        if isinstance(message, AssistantMessage):
            said += [call.arguments for call in message.calls]
    return "\n".join(said)


def place_of(request: ModelRequest) -> Place | None:
    """Returns the person and chat of the request; None for a request outside a conversation."""
    if not request.conversation:
        return None
    key = SessionKey.parse(request.conversation)
    found = [one for one in PLACES if one.chat == key.chat and key.user in (None, one.user)]
    (place,) = found
    return place


class Town:
    """The people, the gateway and its model. The seed determines who writes when."""

    def __init__(self, home: Path, seed: int, conditions: Conditions) -> None:
        self._home = home
        self._conditions = conditions
        self._chance = random.Random(seed)
        self._said = 0
        self.platform = ChatServer()
        self.model = Gossip(seed)

    async def live(self) -> None:
        """Lets several people write at once and start new conversations, and restarts the
        gateway."""
        for number in range(RESTARTS + 1):
            adapter = PlainAdapter(self.platform)
            async with running(self._home, [adapter], self.model, self._conditions) as gateway:
                for hour in range(HOURS):
                    await self._talk(self._some(), f"{number}{hour}")
                    await self._begin_anew(self._some(most=2))
                # Before the last restart, every conversation begins anew. So all prompts are new
                # afterwards and contain the notes.
                await self._begin_anew(PLACES if number + 1 == RESTARTS else self._some())
                await all_noted(gateway._store)
                if number == RESTARTS:
                    await self._talk(PLACES, "99")

    def _some(self, most: int = len(PLACES)) -> list[Place]:
        return self._chance.sample(PLACES, self._chance.randrange(most + 1))

    async def _talk(self, speaking: Sequence[Place], number: str) -> None:
        for place in speaking:
            tag = f"{place.who}{place.where}{number}z"
            self.model.tags.append(tag)
            self._say(place, f"remember the old lighthouse {tag}")
        await self._answered()

    async def _begin_anew(self, leaving: Sequence[Place]) -> None:
        for place in leaving:
            self._say(place, "/new")
        await self._answered()

    def _say(self, place: Place, text: str) -> None:
        self.platform.says(text, place.chat, place.user, place.kind, place.who)
        self._said += 1

    async def _answered(self) -> None:
        await until(lambda: len(self.platform.messages) == self._said, 20)


async def all_noted(store: Store) -> None:
    """Returns when the memory of all ended conversations has been updated."""
    with anyio.fail_after(20):
        await until_rows(store, "select 1 from endings", operator.not_)


REMEMBERING = replace(
    DRAINING, tools=None, memory=MemorySettings(memory_chars=20_000, user_chars=20_000)
)
LIVES = {
    "notes": REMEMBERING,
    "recall": replace(REMEMBERING, memory=replace(REMEMBERING.memory, provider="local")),
    "summaries": replace(
        REMEMBERING,
        model=replace(REMEMBERING.model, context_length=7000),
        auxiliary=AuxiliarySettings(model="small"),
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("life", LIVES)
async def test_private_messages_reach_no_other_person(tmp_path: Path, life: str, seed: int) -> None:
    town = Town(tmp_path, seed, LIVES[life])
    await town.live()
    model = town.model
    assert model.leaks == []
    for place in PLACES:
        shown = set(TAG.findall("\n".join(town.platform.texts(place.chat))))
        here = [model.allowed(one) for one in PLACES if one.chat == place.chat]
        assert shown <= set.union(*here)
    # A gateway that remembers nothing would also pass the checks above. So the test checks that
    # prompts contained notes.
    assert model.reminded == set(PLACES)
    assert {"AliceHarbour", "AliceIsland", "BobHarbour"} <= kinds(model.heard[ALICE])
    assert "AliceHarbour" in kinds(model.heard[BOB_AT_THE_HARBOUR])
    assert model.notes
    assert bool(model.summaries) == (life == "summaries")


def kinds(tags: set[str]) -> set[str]:
    return {tag.rstrip("z0123456789") for tag in tags}
