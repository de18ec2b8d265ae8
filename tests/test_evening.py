"""The first evening of a newcomer, on each platform, and a person who uses both platforms."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.testing.evening import FILE, FirstEvening, hermes, paired, person_texts, serving
from hermes.testing.evening_chats import EveningChat, matrix_evening, telegram_evening
from hermes.testing.running import rows, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.stores import stores_on_postgres


@pytest.fixture(params=["sqlite", "postgres"])
def store_kind(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "sqlite":
        yield
        return
    with stores_on_postgres():
        yield


async def play_evening(home: Path, chat: EveningChat) -> None:
    """Plays the evening. Then checks that `hermes audit` explains the message that asked for the
    file."""
    asked = await FirstEvening(home, chat).play()
    trail = json.loads(await hermes(home, "audit", asked, "--json"))
    (message,) = trail["messages"]
    assert message["dedupe_key"] == asked
    assert message["person"] == f"{chat.account}:{chat.user}"
    assert (message["chat_id"], message["state"]) == (chat.chat, "done")
    assert (trail["turn"]["id"], trail["turn"]["state"]) == (message["turn"], "completed")
    called = [[call["name"] for call in one["calls"]] for one in trail["model_calls"]]
    assert called == [["write_file"], ["send_message"], []]
    # The deliveries are the answer, the text before the file, and the file.
    assert [one["state"] for one in trail["deliveries"]] == ["delivered"] * 3
    assert {one["chat_id"] for one in trail["deliveries"]} == {chat.chat}
    assert len({id for one in trail["deliveries"] for id in one["receipts"]}) == 3
    shown = (await hermes(home, "audit", asked)).splitlines()
    assert f"person    {chat.account}:{chat.user}" in shown
    assert f"session   agent:main:{chat.account}:private:{chat.chat}" in shown
    assert any(line.startswith("turn ") and "completed" in line for line in shown)
    assert any(line.startswith("tool ") and FILE in line and "done" in line for line in shown)
    assert sum(line.startswith("delivery ") and "delivered" in line for line in shown) == 3


@pytest.mark.usefixtures("store_kind")
async def test_a_first_evening_on_telegram(tmp_path: Path) -> None:
    async with telegram_evening() as chat:
        await play_evening(tmp_path, chat)


@pytest.mark.usefixtures("store_kind")
async def test_a_first_evening_on_matrix(tmp_path: Path) -> None:
    async with matrix_evening() as chat:
        await play_evening(tmp_path, chat)


async def ask(chat: EveningChat, text: str, answer: str) -> None:
    """Sends the text, and waits until the chat shows the answer."""
    chat.says(text)
    await chat.until(lambda shown: shown[-1].text == answer)


async def test_a_person_on_two_platforms_has_two_sessions_and_unlinking_takes_effect_at_once(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(map(says, ["Tom!", "Rex!", "I know only Rex.", "I know only Tom."]))
    async with (
        telegram_evening() as phone,
        matrix_evening() as laptop,
        serving(tmp_path, [phone, laptop], model) as gateway,
    ):
        await paired(tmp_path, phone)
        await paired(tmp_path, laptop)
        mobile, desktop = f"telegram:{phone.user}", f"matrix:{laptop.user}"
        linked = await hermes(tmp_path, "people", "link", mobile, desktop)
        assert linked == f"{mobile}, {desktop} are now one person, {mobile}\n"
        await until(lambda: gateway._access._people.linked)
        await ask(phone, "My cat is Tom.", "Tom!")
        await ask(laptop, "My dog is Rex.", "Rex!")
        await hermes(tmp_path, "people", "unlink", desktop)
        await until(lambda: not gateway._access._people.linked)
        await ask(laptop, "Who is Tom?", "I know only Rex.")
        await ask(phone, "Who is Rex?", "I know only Tom.")
        turns = await rows(gateway._store, "select session, person from turns order by id")
        answers = [[one.text for one in chat.shown()[-2:]] for chat in (phone, laptop)]
    first = f"agent:main:telegram:private:{phone.chat}"
    second = f"agent:main:matrix:private:{laptop.chat}"
    assert turns == [(first, mobile), (second, mobile), (second, desktop), (first, mobile)]
    assert answers == [["Tom!", "I know only Tom."], ["Rex!", "I know only Rex."]]
    assert [person_texts(request) for request in model.requests] == [
        ["My cat is Tom."],
        ["My dog is Rex."],
        ["My dog is Rex.", "Who is Tom?"],
        ["My cat is Tom.", "Who is Rex?"],
    ]
