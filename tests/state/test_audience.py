"""Private messages reach no other person, neither through memory nor through search."""

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.control.routing import DEFAULT_AGENT
from hermes.core.memory.local import LocalMemory
from hermes.core.memory.notes import as_prompt
from hermes.core.tools.memory import memory_tool
from hermes.core.tools.session_search import session_search_tool
from hermes.state import sessions, transcript
from hermes.state.audience import Person, Room, audience_of
from hermes.state.memory import Memory, NoteLimits
from hermes.state.transcript import TranscriptWriter
from hermes.testing.stores import open_test_store
from hermes.testing.turns import GROUP, PRIVATE, a_turn, use
from hermes.types.errors import ToolFailed
from hermes.types.identity import SessionKey, Source, TurnId
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.store import Store
from hermes.types.turns import Turn
from hermes.types.value import Value

# The group deliberately has the same chat id as Alice's private chat: ids of different kinds of
# chats may be equal.
PLACES = {
    "private": PRIVATE,
    "group": replace(GROUP, chat_id=PRIVATE.chat_id),
    "lobby": GROUP,
    "elsewhere": replace(PRIVATE, platform="q", account="q", chat_id="100"),
}
SHARED = {"group", "lobby"}
PEOPLE = {"alice": "1", "bob": "2"}
TAG = re.compile(r"(\w+)_(alice|bob)_(private|elsewhere|group|lobby)")


class Deed(Value):
    """One person's secret that the agent gets to know in a chat. `how` says where the secret is
    stored: in a note (`memory` or `user`), in the person's message (`said`), or in the agent's
    answer (`answered`)."""

    who: str
    where: str
    how: str


deeds = st.lists(
    st.builds(
        Deed,
        who=st.sampled_from(sorted(PEOPLE)),
        where=st.sampled_from(sorted(PLACES)),
        how=st.sampled_from(["memory", "user", "said", "answered"]),
    ),
    max_size=12,
)


class World:
    """One agent, two people and two groups."""

    def __init__(self, home: Path, store: Store) -> None:
        self._home = home
        self._store = store
        self._memory = Memory(NoteLimits(memory=100_000, user=100_000))
        self._count = 0

    def turn(self, who: str, where: str) -> Turn:
        source = PLACES[where]
        chat = source.chat_id if source.chat_kind != "private" else PEOPLE[who]
        self._count += 1
        own = replace(source, user_id=PEOPLE[who], chat_id=chat)
        turn = a_turn(UserMessage(text="secret alpha"), home=self._home, source=own, person=who)
        return replace(turn, id=TurnId(f"t{self._count}"))

    async def do(self, deed: Deed) -> None:
        turn = self.turn(deed.who, deed.where)
        tag = f"tag{self._count}_{deed.who}_{deed.where}"
        if deed.how in ("memory", "user"):
            edit = {"action": "add", "content": tag}
            try:
                tool = memory_tool(self._memory)
                await use(tool, turn, {"target": deed.how, "edits": [edit]})
            except ToolFailed:
                assert deed.how == "user"
                assert deed.where in SHARED
            return
        text = f"the secret alpha {tag}"
        said = UserMessage(text=text) if deed.how == "said" else AssistantMessage(text=text)
        writer = TranscriptWriter(
            turn=turn.id,
            session=turn.session,
            generation=0,
            transient=False,
            account=turn.source.account,
            person=turn.person,
        )
        await self._store.run(sessions.touch, turn.session, turn.source, turn.person, "", 0.0)
        await self._store.run(transcript.append, writer, 0, 0, said, 0.0)
        await self._store.run(sessions.begin_anew, str(turn.session), 0.0)

    async def seen(self, who: str, where: str) -> str:
        """Returns everything that the agent sees or can find when it answers in this chat."""
        turn = self.turn(who, where)
        tool = session_search_tool(self._store)
        shown = [part.text for part in as_prompt(self._memory.read(turn))]
        shown.append(await LocalMemory(self._store).recall(turn))
        shown.append(await use(tool, turn, {"query": "secret alpha", "limit": 20}))
        for number in range(1, 13):
            shown.append(await use(tool, turn, {"around": number}))
        return "\n".join(shown)


def allowed(who: str, where: str) -> Iterator[tuple[str, str]]:
    """Yields pairs (person, chat). Secrets that this person told in this chat may be seen when
    `who` writes in `where`."""
    for teller in PEOPLE:
        if where in SHARED:
            yield teller, where
        elif teller == who:
            yield from ((who, place) for place in PLACES)


async def check(told: list[Deed]) -> None:
    with TemporaryDirectory() as folder:
        async with open_test_store(Path(folder)) as store:
            world = World(Path(folder), store)
            for deed in told:
                await world.do(deed)
            for who in PEOPLE:
                for where in PLACES:
                    seen = {tag.group(2, 3) for tag in TAG.finditer(await world.seen(who, where))}
                    assert seen <= set(allowed(who, where)), (who, where)
                    wanted = {
                        (deed.who, deed.where)
                        for deed in told
                        if deed.where == where
                        and (deed.how != "user" if where in SHARED else deed.who == who)
                    }
                    assert wanted <= seen, (who, where)


@given(deeds)
@settings(max_examples=40, deadline=None)
def test_secrets_of_two_people_in_groups_and_private_chats_stay_separate(told: list[Deed]) -> None:
    anyio.run(check, told)


def test_the_audience_of_a_private_chat_is_its_person() -> None:
    expected = Person(agent=DEFAULT_AGENT, person="ann")  # type: ignore[arg-type]
    assert audience_of(a_turn(person="ann")) == expected
    elsewhere = replace(PRIVATE, platform="q", account="q", chat_id="9")
    assert audience_of(a_turn(source=elsewhere, person="ann")) == expected


@pytest.mark.parametrize("kind", ["group", "channel"])
def test_the_audience_of_a_shared_chat_is_the_same_for_every_sender(kind: str) -> None:
    source: Source = replace(GROUP, chat_kind=kind, thread_id="3")
    rooms = {audience_of(a_turn(source=replace(source, user_id=user))) for user in ("1", "2")}
    key = SessionKey(agent=DEFAULT_AGENT, platform="p", kind=source.chat_kind, chat="-5")
    assert rooms == {Room(agent=DEFAULT_AGENT, account="p", chat="-5", sessions=str(key))}


async def test_nothing_is_shown_or_stored_for_an_unknown_person(tmp_path: Path) -> None:
    nobody = replace(a_turn(UserMessage(text="secret alpha"), home=tmp_path), person=None)
    assert audience_of(nobody) is None
    async with open_test_store(tmp_path) as store:
        assert await LocalMemory(store).recall(nobody) == ""
        with pytest.raises(ToolFailed, match="does not say who the person is"):
            await use(session_search_tool(store), nobody, {"query": "alpha"})
