"""Messages of bots are counted in each chat until a person writes."""

from msgspec.structs import replace

from hermes.control import bot_hops
from hermes.control.bot_hops import BotHops
from hermes.types.identity import Source

BOT = Source(
    platform="chat", account="chat", chat_kind="group", chat_id="1", user_id="9", is_bot=True
)
PERSON = replace(BOT, user_id="7", is_bot=False)


def test_a_person_ends_the_count_of_their_own_chat_only() -> None:
    hops, other = BotHops(), replace(BOT, chat_id="2")
    for source in (BOT, BOT, other):
        hops.note(source)
    assert (hops.count(BOT), hops.count(other)) == (2, 1)
    hops.note(PERSON)
    assert (hops.count(BOT), hops.count(other)) == (0, 1)


def test_the_chats_that_were_used_least_recently_are_forgotten() -> None:
    hops = BotHops()
    for number in range(bot_hops.MOST_CHATS + 1):
        hops.note(replace(BOT, chat_id=str(number)))
    assert hops.count(replace(BOT, chat_id="0")) == 0
    assert hops.count(replace(BOT, chat_id="1")) == 1
