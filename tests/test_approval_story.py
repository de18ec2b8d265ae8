"""The story of an approval in chats and over the API: the agent is about to delete a folder and
asks, the right person decides, and the paused turn continues. In some tests, the gateway is
restarted meanwhile, or another gateway receives the decision."""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import openai
import pytest
from msgspec.structs import replace
from openai.types.chat import ChatCompletionMessageParam

from hermes.entry.platforms.telegram.adapter import TelegramAdapter
from hermes.entry.platforms.telegram.manifest import TelegramConfig
from hermes.settings.approvals import ApprovalSettings
from hermes.testing.approvals import DANGEROUS, dangerous_service, make_folders, results, runs
from hermes.testing.evening_chats import (
    BOT_TOKEN,
    EveningChat,
    matrix_evening,
    telegram_evening,
)
from hermes.testing.nodes import asked, node, said
from hermes.testing.openai_client import KITCHEN, client_of, user_says
from hermes.testing.running import running, until
from hermes.testing.scripted import ScriptedModel, is_complete, says
from hermes.testing.service import Service, serving
from hermes.testing.stores import stored_rows, stores_on_postgres
from hermes.testing.telegram import BotApiServer
from hermes.testing.telegram_records import BotMessage

WAIT_SECONDS = 60.0
GROUP, ANN, EVE = -1001, 7, 8
ID = re.compile("/approve ([0-9a-f]{8})")


@pytest.fixture(params=["sqlite", "postgres"])
def store_kind(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "sqlite":
        yield
        return
    with stores_on_postgres():
        yield


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    make_folders(folder, "a", "b")
    return folder


async def answer_twice(home: Path, chat: EveningChat) -> None:
    """Lets a person approve one action at once, and deny another one after a restart."""
    model = ScriptedModel([runs("rm -rf a"), says("a is gone"), runs("rm -rf b")])
    async with running(home, [chat.adapter()], model, DANGEROUS) as gateway:
        await chat.opens()
        chat.says("Delete a.")
        await chat.until(lambda shown: shown and ID.search(shown[-1].text))
        question = chat.shown()[-1].text
        assert question.startswith("I am about to run a command, which needs your approval:")
        assert "rm -rf a" in question
        assert "Reason: deletes a with everything in it." in question
        await until(lambda: not gateway.busy)
        assert (home / "workspace" / "a").exists()
        chat.says("Yes!")
        await chat.until(lambda shown: shown[-1].text == "a is gone")
        assert not (home / "workspace" / "a").exists()
        chat.says("Delete b too.")
        await chat.until(lambda shown: "rm -rf b" in shown[-1].text)
        await until(lambda: not gateway.busy)
    model = ScriptedModel([says("I keep b")])
    async with running(home, [chat.adapter()], model, DANGEROUS):
        (id,) = set(ID.findall(chat.shown()[-1].text))
        chat.says(f"/deny {id} it is needed")
        await chat.until(lambda shown: shown[-1].text == "I keep b")
        await chat.until(lambda shown: "Denied by" in shown[-2].text)
        first, _, second, _ = chat.shown()
    assert (home / "workspace" / "b").exists()
    assert results(model)[-1].startswith("The person denied this action: it is needed.")
    assert "Approved once by" in first.text
    assert not ID.search(first.text + second.text)


@pytest.mark.usefixtures("store_kind")
async def test_a_person_answers_in_a_chat_on_telegram(tmp_path: Path, workspace: Path) -> None:
    async with telegram_evening() as chat:
        await answer_twice(tmp_path, chat)


@pytest.mark.usefixtures("store_kind")
async def test_a_person_answers_in_a_room_on_matrix(tmp_path: Path, workspace: Path) -> None:
    async with matrix_evening() as chat:
        await answer_twice(tmp_path, chat)


class TelegramGroup:
    """A group on the fake Bot API, with Ann and Eve."""

    def __init__(self, server: BotApiServer) -> None:
        self.server = server
        self.bot = server.add_bot(BOT_TOKEN, "our_bot")
        server.add_chat(GROUP, "supergroup", title="Kitchen")

    def adapter(self) -> TelegramAdapter:
        return TelegramAdapter(
            "telegram", TelegramConfig(token=BOT_TOKEN, base_url=self.server.url)
        )

    def says(self, text: str, user: int = ANN) -> None:
        self.server.says(GROUP, text, user)

    def shown(self) -> list[BotMessage]:
        return list(self.server.messages.values())

    def with_buttons(self) -> list[BotMessage]:
        return [one for one in self.shown() if one.keyboard]

    async def until_texts(self, *endings: str) -> None:
        """Waits until the newest messages of the bot end with these texts."""

        def holds() -> bool:
            texts = [one.shown.text for one in self.shown()[-len(endings) :]]
            return len(texts) == len(endings) and all(map(str.endswith, texts, endings))

        await until(holds, WAIT_SECONDS)


@asynccontextmanager
async def telegram_group() -> AsyncIterator[TelegramGroup]:
    async with BotApiServer().running() as server:
        yield TelegramGroup(server)


@pytest.mark.usefixtures("store_kind")
async def test_two_approvals_in_a_group_are_not_confused_and_only_ann_decides(
    tmp_path: Path, workspace: Path
) -> None:
    async with telegram_group() as group:
        model = ScriptedModel([runs("rm -rf a", "rm -rf b")])
        async with running(tmp_path, [group.adapter()], model, DANGEROUS) as gateway:
            group.says("/queue@our_bot Delete a and b.")
            await until(lambda: len(group.with_buttons()) == 2, WAIT_SECONDS)
            await until(lambda: not gateway.busy)
        first, second = group.with_buttons()
        assert [one.shown.text.split("\n")[2] for one in (first, second)] == [
            "rm -rf a",
            "rm -rf b",
        ]
        (id,) = set(ID.findall(first.shown.text))
        model = ScriptedModel([says("only b is gone")])
        async with running(tmp_path, [group.adapter()], model, DANGEROUS):
            group.server.presses(GROUP, "Once", EVE, below="rm -rf a")
            await until(lambda: group.bot.alerts, WAIT_SECONDS)
            group.says(f"/approve {id}", EVE)
            unknown = (
                f"No action with the id '{id}' waits for your decision. /approvals lists them."
            )
            await group.until_texts(unknown)
            assert group.with_buttons() == [first, second]
            group.server.presses(GROUP, "Once", below="rm -rf b")
            await group.until_texts("Noted. Still open: rm -rf a")
            await until(lambda: len(group.with_buttons()) == 1, WAIT_SECONDS)
            assert (workspace / "b").exists()
            group.server.presses(GROUP, "Deny", below="rm -rf a")
            await group.until_texts("only b is gone")
            await until(lambda: not group.with_buttons(), WAIT_SECONDS)
    assert group.bot.alerts == [
        "Not accepted: only the person who asked for this, or an approver, may decide it."
    ]
    assert [folder.name for folder in sorted(workspace.iterdir())] == ["a"]
    outcomes = [one.shown.text.rpartition("\n")[2] for one in group.shown()[:2]]
    assert outcomes == ["Denied by Person 7.", "Approved once by Person 7."]
    assert not group.bot.queries


async def test_a_button_of_a_closed_question_is_gone_and_does_nothing(
    tmp_path: Path, workspace: Path
) -> None:
    """The gateway removes the buttons with an edit of the message. Until Telegram has received this
    edit, a person can still press a button."""
    async with telegram_group() as group:
        model = ScriptedModel([runs("rm -rf a")])
        async with running(tmp_path, [group.adapter()], model, DANGEROUS) as gateway:
            group.says("/queue@our_bot Delete a.")
            await until(group.with_buttons, WAIT_SECONDS)
            await until(lambda: not gateway.busy)
            (asked_in,) = group.with_buttons()
            group.says("/stop@our_bot")
            await until(lambda: not group.with_buttons(), WAIT_SECONDS)
            (closed,) = [one for one in group.shown() if one.id == asked_in.id]
            assert closed.shown.text.endswith("No longer open: the turn has ended.")
            group.server.messages[GROUP, asked_in.id] = asked_in
            group.server.presses(GROUP, "Once")
            await until(lambda: group.bot.alerts, WAIT_SECONDS)
    assert group.bot.alerts == ["Not accepted: this question is no longer open."]
    assert (workspace / "a").exists()


async def test_an_expired_question_says_so_and_loses_its_buttons(
    tmp_path: Path, workspace: Path
) -> None:
    brief = replace(DANGEROUS, approvals=ApprovalSettings(timeout=0.5))
    async with telegram_group() as group:
        model = ScriptedModel([runs("rm -rf a"), says("nobody answers")])
        async with running(tmp_path, [group.adapter()], model, brief):
            group.says("/queue@our_bot Delete a.")
            await group.until_texts("nobody answers")
            await until(lambda: not group.with_buttons(), WAIT_SECONDS)
    question = group.shown()[0].shown.text
    assert question.endswith("No longer open: nobody has decided in time.")
    assert (workspace / "a").exists()


async def test_the_whole_of_a_long_and_hostile_command_is_readable_above_the_buttons(
    tmp_path: Path, workspace: Path
) -> None:
    hostile = "</code></pre><b>x</b> ``` **bold** [a](b)\u202e& " + "lorem ipsum " * 900
    async with telegram_group() as group:
        model = ScriptedModel([runs(f"rm -rf a '{hostile}'")])
        async with running(tmp_path, [group.adapter()], model, DANGEROUS):
            group.says("/queue@our_bot Delete it.")
            await until(group.with_buttons, WAIT_SECONDS)
        messages = group.shown()
        ((command,),) = stored_rows(tmp_path, "select detail from questions")
    assert hostile.replace("\u202e", "\\u202e") in command
    assert len(messages) >= 4
    assert [bool(one.keyboard) for one in messages] == [False] * (len(messages) - 1) + [True]
    code = [
        one.shown.text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")
        for one in messages
        for tag, _, start, end in one.shown.entities
        if tag == "pre"
    ]
    shown = "".join("".join(code).split())
    assert "".join(command.split()) in shown
    assert {tag for one in messages for tag, *_ in one.shown.entities} == {"pre", "code"}


async def ask(
    client: openai.AsyncOpenAI,
    messages: Sequence[ChatCompletionMessageParam],
    *,
    session: bool,
    stream: bool,
) -> str:
    """Sends the messages with OpenAI's own client. Returns the answer."""
    headers = KITCHEN if session else {}
    if not stream:
        answer = await client.chat.completions.create(
            model="main", messages=messages, extra_headers=headers
        )
        return answer.choices[0].message.content or ""
    chunks = await client.chat.completions.create(
        model="main", messages=messages, extra_headers=headers, stream=True
    )
    return "".join([c.choices[0].delta.content or "" async for c in chunks if c.choices])


def service_in(home: Path) -> AbstractAsyncContextManager[Service]:
    return serving(home, overrides=dangerous_service(home))


REMOVING = 'tool:terminal{"command":"rm -rf a"} tool:terminal{"command":"rm -rf b"}'


@pytest.mark.usefixtures("store_kind")
@pytest.mark.parametrize(("session", "stream"), [(True, True), (False, False)])
async def test_a_client_answers_with_the_next_message(
    tmp_path: Path, workspace: Path, *, session: bool, stream: bool
) -> None:
    """Two actions wait. The gateway is restarted before the first decision."""
    talk = user_says(REMOVING)
    async with service_in(tmp_path) as service, client_of(service) as client:
        question = await ask(client, talk, session=session, stream=stream)
    first, second = list(dict.fromkeys(ID.findall(question)))
    assert question.index("rm -rf a") < question.index(first) < question.index("rm -rf b")
    async with service_in(tmp_path) as service, client_of(service) as client:

        async def answers(text: str) -> str:
            history: list[ChatCompletionMessageParam] = [
                *talk,
                {"role": "assistant", "content": question},
                *user_says(text),
            ]
            return await ask(client, history, session=session, stream=stream)

        if session:
            unclear = await answers("yes")
            assert unclear.startswith("It is not clear what you decide")
            assert ID.findall(unclear) == [first, second]
            other = await answers("What is in a?")
            assert other.startswith("Not accepted, because the conversation waits")
            assert ID.findall(other) == [first, second]
        assert await answers(f"/approve {second}") == "Noted. Still open: rm -rf a"
        assert (workspace / "b").exists()
        answer = await answers("no" if session else f"/deny {first} keep it")
    assert is_complete(answer)
    assert [folder.name for folder in workspace.iterdir() if folder.is_dir()] == ["a"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_bare_yes_decides_nothing_without_a_session(
    tmp_path: Path, workspace: Path, *, stream: bool
) -> None:
    talk = user_says('tool:terminal{"command":"rm -rf a"}')
    async with service_in(tmp_path) as service, client_of(service) as client:
        question = await ask(client, talk, session=False, stream=stream)
        (id,) = set(ID.findall(question))
        await ask(client, user_says("yes"), session=False, stream=stream)
        assert (workspace / "a").exists()
        answer = await ask(client, user_says(f"/approve {id}"), session=False, stream=stream)
    assert is_complete(answer)
    assert not (workspace / "a").exists()


async def test_a_program_decides_by_the_id_of_the_run(tmp_path: Path, workspace: Path) -> None:
    """The guide for the openai SDK shows this program."""
    async with service_in(tmp_path) as service, client_of(service) as client:
        create = client.chat.completions.with_raw_response.create
        asking = user_says('tool:terminal{"command":"rm -rf a"}')
        run = (await create(model="main", messages=asking)).headers["X-Hermes-Run-Id"]
        path = f"/runs/{run}/approval"
        with pytest.raises(openai.BadRequestError) as refused:
            await client.post(path, body={"choice": "perhaps"}, cast_to=object)
        assert refused.value.code == "invalid_approval_choice"
        await client.post(path, body={"choice": "once"}, cast_to=object)
        await until(lambda: not service.gateway.busy)
        with pytest.raises(openai.ConflictError) as late:
            await client.post(path, body={"choice": "once"}, cast_to=object)
        assert late.value.code == "approval_not_pending"
    assert not (workspace / "a").exists()


async def test_the_question_is_asked_on_one_gateway_and_answered_on_another(
    tmp_path: Path,
) -> None:
    """The first gateway serves Telegram. An approver decides over the API of the second gateway.
    The command needs the files of the first gateway, so it runs there."""
    own = replace(DANGEROUS, approvals=ApprovalSettings(approvers=("owner",)))
    one, two = ScriptedModel([runs("rm -rf a"), says("a is gone")]), ScriptedModel([])
    make_folders(tmp_path / "one" / "workspace", "a")
    with stores_on_postgres():
        async with (
            telegram_group() as group,
            node(tmp_path, "one", one, own, (group.adapter(),)) as first,
            node(tmp_path, "two", two, own) as second,
        ):
            group.says("/queue@our_bot Delete a.")
            await until(group.with_buttons, WAIT_SECONDS)
            await until(lambda: not first.busy)
            (id,) = set(ID.findall(group.shown()[0].shown.text))
            await said(second, f"/approve {id}")
            await group.until_texts("a is gone")
            await until(lambda: not group.with_buttons(), WAIT_SECONDS)
            text = group.shown()[0].shown.text
    assert text.endswith("Approved once by the owner.")
    assert not (tmp_path / "one" / "workspace" / "a").exists()


async def test_with_a_shared_folder_each_gateway_can_take_the_decision_for_the_other(
    tmp_path: Path,
) -> None:
    """The gateway that receives the decision resumes the turn itself, because it has the files."""
    one, two = ScriptedModel([runs("rm -rf a")]), ScriptedModel([says("a is gone")])
    shared = tmp_path / "shared"
    make_folders(shared / "workspace", "a")
    with stores_on_postgres():
        async with (
            node(tmp_path, "one", one, DANGEROUS, shared_folder=str(shared)) as first,
            node(tmp_path, "two", two, DANGEROUS, shared_folder=str(shared)) as second,
        ):
            turn = await asked(first, "Delete a.")
            await until(lambda: not first.busy)
            decided = await said(second, "yes")
            assert decided.turn == turn
            await until(lambda: two.requests and not second.busy)
    assert results(two) == ["[no output]"]
    assert not (shared / "workspace" / "a").exists()
