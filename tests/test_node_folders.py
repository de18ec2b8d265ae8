"""Several gateways share a store, and a session runs on a node that has its files."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.boundary.execution.process import start_time
from hermes.control import stranded_work
from hermes.control.gateway import Gateway
from hermes.entry.cli.main import sole
from hermes.state.folder_ids import FOLDER_ID
from hermes.testing.nodes import api_event, asked, followed, node, said, states, text_of
from hermes.testing.platforms import ChatServer, PlainAdapter, Update, to_event
from hermes.testing.running import QUIET, Conditions, TroubledStore, held, until
from hermes.testing.scripted import ScriptedModel, calls, fails, hangs, says
from hermes.testing.stores import stored_rows, stores_on_postgres
from hermes.types.errors import ConfigError, Disconnected
from hermes.types.events import Envelope, TurnFinished
from hermes.types.identity import TurnId
from hermes.types.messages import Accepted, Asked, Attachment, Refused, ToolMessage, UserMessage

APPEND = calls(("append", {"token": "x"}))
PICTURE = Attachment(kind="image", path="sessions/" + "0" * 64, media_type="image/png")


@pytest.fixture(autouse=True)
def on_postgres() -> Iterator[None]:
    with stores_on_postgres():
        yield


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the time that work waits for a node with its files: the work fails half a second
    after the last such node has ended."""
    monkeypatch.setattr(stranded_work, "FOLDER_SECONDS", 0.5)


async def finished(gateway: Gateway, turn: TurnId, after: int = 0) -> tuple[str, TurnFinished]:
    """Follows the turn on this gateway. Returns its text, and the event that ends the turn."""
    found: list[Envelope] = []
    with anyio.fail_after(30):
        await followed(gateway, turn, found, after)
    end = found[-1].event
    assert isinstance(end, TurnFinished)
    return text_of(found), end


def appended(folder: Path) -> list[str]:
    """Returns the tokens that tools have written into the workspace."""
    path = folder / "workspace" / "appended"
    return path.read_text().split() if path.exists() else []


def folders_of(folder: Path, table: str) -> list[str | None]:
    return [row[0] for row in stored_rows(folder, f"select folder from {table}")]


def id_of(home: Path) -> str:
    return (home / FOLDER_ID).read_text().strip()


async def test_a_session_that_has_used_no_files_runs_on_any_node(tmp_path: Path) -> None:
    one, two = ScriptedModel([says("from one")]), ScriptedModel([says("from two")])
    async with node(tmp_path, "one", one) as first, node(tmp_path, "two", two) as second:
        assert (await finished(first, await asked(first, "a")))[0] == "from one"
        assert (await finished(second, await asked(second, "b")))[0] == "from two"
    assert folders_of(tmp_path, "sessions") == [None]


async def test_a_session_stays_with_the_node_that_has_its_files(tmp_path: Path) -> None:
    one = ScriptedModel([APPEND, says("done"), says("second"), says("third")])
    async with (
        node(tmp_path, "one", one) as first,
        node(tmp_path, "two", ScriptedModel([])) as second,
    ):
        await finished(first, await asked(first, "write"))
        turns = [await asked(second, "b"), await asked(second, "c")]
        assert [(await finished(second, turn))[0] for turn in turns] == ["second", "third"]
    assert appended(tmp_path / "one") == ["x"]
    assert set(folders_of(tmp_path, "turns")) == {id_of(tmp_path / "one")}
    texts = stored_rows(tmp_path, "select text from messages where role = 'user' order by id")
    assert [row[0] for row in texts] == ["write", "b", "c"]


async def test_a_waiting_message_follows_the_session_to_the_node_with_its_files(
    tmp_path: Path,
) -> None:
    # The second node accepts the message before the first node uses a file. At this moment, the
    # session is bound to no folder yet.
    go = anyio.Event()
    one = ScriptedModel([held(go, APPEND), says("done"), says("second")])
    async with (
        node(tmp_path, "one", one) as first,
        node(tmp_path, "two", ScriptedModel([])) as second,
    ):
        await asked(first, "write")
        await until(lambda: one.requests)
        waiting = await asked(second, "b")
        go.set()
        assert (await finished(second, waiting))[0] == "second"


async def test_a_picture_is_answered_by_the_node_that_received_it(tmp_path: Path) -> None:
    # The second node receives the picture while the first node runs a turn of the same session.
    go = anyio.Event()
    one, two = ScriptedModel([held(go, says("first"))]), ScriptedModel([says("seen"), says("yes")])
    async with node(tmp_path, "one", one) as first, node(tmp_path, "two", two) as second:
        await asked(first, "hi")
        await until(lambda: one.requests)
        turn = await asked(second, "look", files=(PICTURE,))
        go.set()
        assert (await finished(first, turn))[0] == "seen"
        assert folders_of(tmp_path, "sessions") == [id_of(tmp_path / "two")]
        assert (await finished(first, await asked(first, "sure?")))[0] == "yes"


async def test_a_picture_is_refused_by_a_node_without_the_files_of_the_session(
    tmp_path: Path,
) -> None:
    server, one = ChatServer(), ScriptedModel([APPEND, says("done"), APPEND, says("done")])
    async with (
        node(tmp_path, "one", one) as first,
        node(tmp_path, "two", ScriptedModel([]), adapters=(PlainAdapter(server),)) as second,
    ):
        await finished(first, await asked(first, "write"))
        picture = UserMessage(text="look", attachments=(PICTURE,))
        refused = await second.accept(api_event(Asked(messages=(picture,), stateless=False)))
        assert isinstance(refused, Refused)
        assert "the files of this conversation are on " in refused.reason
        chat = to_event(Update(id=1, chat="2", user="8", text="write"), "plain")
        await first.accept(chat)
        await until(lambda: server.texts("2") == ["done"], within=20)
        body = replace(chat.body, attachments=(PICTURE,))
        await second.accept(replace(chat, dedupe_key="look", body=body))
        await until(lambda: len(server.texts("2")) == 2)
        assert server.texts("2")[1].startswith("Not accepted: the files of this conversation")


async def test_an_answer_on_another_node_resumes_the_turn_where_its_files_are(
    tmp_path: Path,
) -> None:
    one = ScriptedModel([calls(("append", {"token": "x"}), ("ask", {})), says("blue it is")])
    async with (
        node(tmp_path, "one", one) as first,
        node(tmp_path, "two", ScriptedModel([])) as second,
    ):
        await finished(first, await asked(first, "paint"))
        answer = await said(second, "blue")
        assert answer.turn is not None
        text, _ = await finished(second, TurnId(answer.turn), answer.after)
        assert text == "blue it is"
    results = [m.text for m in one.requests[1].messages if isinstance(m, ToolMessage)]
    assert results == ["appended x", "the person said: blue"]


async def test_a_request_that_is_repeated_on_another_node_runs_again_where_its_files_are(
    tmp_path: Path,
) -> None:
    broken = fails(Disconnected("the model is gone"))
    one = ScriptedModel([APPEND, broken, says("done")])
    event = api_event(
        Asked(messages=(UserMessage(text="write"),), stateless=False, detached=True), key="k"
    )
    async with (
        node(tmp_path, "one", one) as first,
        node(tmp_path, "two", ScriptedModel([])) as second,
    ):
        accepted = await first.accept(event)
        assert isinstance(accepted, Accepted)
        turn = TurnId(str(accepted.turn))
        assert (await finished(first, turn))[1].outcome == "failed"
        repeated = await second.accept(event)
        assert isinstance(repeated, Accepted)
        await until(lambda: states(tmp_path) == [("completed", 2)], within=20)
    assert appended(tmp_path / "one") == ["x"]


async def test_a_message_fails_if_no_node_has_the_files_of_its_session(
    tmp_path: Path, impatient: None
) -> None:
    server, one = ChatServer(), ScriptedModel([APPEND, says("done")])
    two = ScriptedModel([says("elsewhere")])
    async with node(tmp_path, "two", two, adapters=(PlainAdapter(server),)) as second:
        async with node(tmp_path, "one", one) as first:
            await finished(first, await asked(first, "write"))
            ((owner, host),) = stored_rows(
                tmp_path,
                "select o.id, o.host from owners o join sessions s on s.folder = o.folder",
            )
        _, end = await finished(second, await asked(second, "b"))
        assert (end.outcome, end.code) == ("failed", "folder_unavailable")
        assert f"on node {owner} ({host})" in end.text
        # When the node with the files runs again, the session continues there.
        async with node(tmp_path, "one", ScriptedModel([says("back")])):
            assert (await finished(second, await asked(second, "c")))[0] == "back"
        # A new conversation has used no files, so the second node can run it.
        await said(second, "/new")
        assert (await finished(second, await asked(second, "d")))[0] == "elsewhere"
    assert states(tmp_path) == [("completed", 1), ("failed", 1), ("completed", 1), ("completed", 1)]


async def test_a_chat_is_told_which_node_has_its_files(tmp_path: Path, impatient: None) -> None:
    server, one = ChatServer(), ScriptedModel([APPEND, says("done")])
    two = ScriptedModel([])
    update = to_event(Update(id=1, chat="2", user="8", text="write"), "plain")
    async with node(tmp_path, "two", two, adapters=(PlainAdapter(server),)) as second:
        async with node(tmp_path, "one", one) as first:
            await first.accept(update)
            await until(lambda: server.texts("2") == ["done"], within=20)
        await second.accept(replace(update, dedupe_key="again"))
        await until(lambda: len(server.texts("2")) == 2, within=20)
    assert "The files of this conversation are on node " in server.texts("2")[1]


async def test_a_turn_of_a_dead_node_waits_for_the_node_with_its_files(tmp_path: Path) -> None:
    one = ScriptedModel([APPEND, hangs()])
    two = ScriptedModel([says("never")])
    async with node(tmp_path, "two", two) as second:
        async with node(tmp_path, "one", one) as first:
            turn = await asked(first, "write")
            await until(lambda: len(one.requests) == 2)
        await second._sweep()
        assert states(tmp_path) == [("running", 1)]
        back = ScriptedModel([says("done")])
        async with node(tmp_path, "one", back):
            assert (await finished(second, turn))[0] == "done"
    assert not two.requests
    assert appended(tmp_path / "one") == ["x"]


async def test_work_that_waits_for_another_node_causes_no_commits(tmp_path: Path) -> None:
    committed: list[str] = []

    async def before(name: str) -> None:
        committed.append(name)

    watched = replace(QUIET, wrap_store=lambda store: TroubledStore(store, before))
    one = ScriptedModel([calls(("append", {"token": "x"}), ("ask", {}))])
    async with node(tmp_path, "two", ScriptedModel([]), watched) as second:
        async with node(tmp_path, "one", one) as first:
            await finished(first, await asked(first, "write"))
        await second._sweep()
        committed.clear()
        await second._sweep()
        assert "Recovery._adopt_the_rest" not in committed
    assert states(tmp_path) == [("suspended", 1)]


async def test_a_turn_of_a_dead_node_fails_if_no_node_with_its_files_comes_back(
    tmp_path: Path, impatient: None
) -> None:
    one = ScriptedModel([APPEND, hangs()])
    async with node(tmp_path, "two", ScriptedModel([])) as second:
        async with node(tmp_path, "one", one) as first:
            turn = await asked(first, "write")
            await until(lambda: len(one.requests) == 2)
        _, end = await finished(second, turn)
        assert end.code == "folder_unavailable"
    assert states(tmp_path) == [("failed", 2)]


async def test_messages_that_wait_for_a_turn_without_a_node_fail_too_and_are_not_lost(
    tmp_path: Path, impatient: None
) -> None:
    one = ScriptedModel([APPEND, hangs()])
    async with node(tmp_path, "two", ScriptedModel([])) as second:
        async with node(tmp_path, "one", one) as first:
            turns = [await asked(first, "write")]
            await until(lambda: len(one.requests) == 2)
            turns += [await asked(first, "b"), await asked(second, "c")]
        ends = [(await finished(second, turn))[1] for turn in turns]
        assert [end.code for end in ends] == ["folder_unavailable"] * 3
    texts = stored_rows(tmp_path, "select text from messages where role = 'user' order by id")
    assert [row[0] for row in texts] == ["write", "b", "c"]


async def test_the_end_of_a_conversation_is_handled_by_the_node_with_its_files(
    tmp_path: Path,
) -> None:
    one = ScriptedModel([APPEND, says("done")])
    async with node(tmp_path, "two", ScriptedModel([])) as second:
        async with node(tmp_path, "one", one) as first:
            await finished(first, await asked(first, "write"))
        await said(second, "/new")
        await second._session_end_worker._look()
        assert len(stored_rows(tmp_path, "select 1 from endings")) == 1
        async with node(tmp_path, "one", ScriptedModel([])):
            await until(lambda: not stored_rows(tmp_path, "select 1 from endings"))


async def test_a_turn_of_a_dead_node_that_has_used_no_files_moves_at_once(tmp_path: Path) -> None:
    one, two = ScriptedModel([hangs()]), ScriptedModel([APPEND, says("done")])
    async with node(tmp_path, "two", two) as second:
        async with node(tmp_path, "one", one) as first:
            turn = await asked(first, "write")
            await until(lambda: one.requests)
        assert (await finished(second, turn))[0] == "done"
    # The second node could reach the workspace of the first node on this machine, but it uses its
    # own workspace.
    assert (appended(tmp_path / "one"), appended(tmp_path / "two")) == ([], ["x"])
    assert folders_of(tmp_path, "sessions") == [id_of(tmp_path / "two")]


async def test_nodes_with_a_shared_folder_take_over_turns_that_have_used_files(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    one, two = ScriptedModel([APPEND, hangs()]), ScriptedModel([APPEND, says("done"), says("more")])
    async with node(tmp_path, "two", two, shared_folder=str(shared)) as second:
        async with node(tmp_path, "one", one, shared_folder=str(shared)) as first:
            turn = await asked(first, "write")
            await until(lambda: len(one.requests) == 2)
        assert (await finished(second, turn))[0] == "done"
        assert (await finished(second, await asked(second, "more")))[0] == "more"
    assert appended(shared) == ["x", "x"]
    assert folders_of(tmp_path, "sessions") == [id_of(shared)]
    assert not (tmp_path / "two" / FOLDER_ID).exists()


async def test_a_takeover_ends_no_local_process_that_has_the_pid_of_a_remote_process(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    one, two = ScriptedModel([APPEND, hangs()]), ScriptedModel([says("done")])
    opened = anyio.open_process(["sleep", "600"], start_new_session=True)
    async with (
        await opened as stranger,
        node(tmp_path, "two", two, shared_folder=str(shared)) as second,
    ):
        try:
            async with node(tmp_path, "one", one, shared_folder=str(shared)) as first:
                turn = await asked(first, "write")
                await until(lambda: len(one.requests) == 2)
                handle = f"local:another machine:{stranger.pid}:{start_time(stranger.pid)}:m"
                stored_rows(tmp_path, f"update calls set handle = '{handle}' returning id")
            assert (await finished(second, turn))[0] == "done"
            assert stranger.returncode is None
        finally:
            stranger.kill()


async def test_a_home_that_is_a_copy_is_refused_while_the_other_node_runs(tmp_path: Path) -> None:
    async with node(tmp_path, "one", ScriptedModel([])):
        shutil.copytree(tmp_path / "one", tmp_path / "copy")
        with pytest.raises(BaseExceptionGroup) as raised:
            async with node(tmp_path, "copy", ScriptedModel([])):
                pass
        error = sole(raised.value)
        assert isinstance(error, ConfigError)
        assert f"is a copy of {tmp_path / 'one'} on " in str(error)
    async with node(tmp_path, "copy", ScriptedModel([])):
        pass


async def test_a_terminal_refuses_a_session_whose_files_are_elsewhere(tmp_path: Path) -> None:
    terminal: Conditions = replace(QUIET, terminal=True)
    one = ScriptedModel([APPEND, says("done")])
    async with (
        node(tmp_path, "one", one) as first,
        node(tmp_path, "two", ScriptedModel([]), terminal) as second,
    ):
        await finished(first, await asked(first, "write"))
        refused = await second.accept(
            api_event(Asked(messages=(UserMessage(text="b"),), stateless=False))
        )
        assert isinstance(refused, Refused)
        assert "continue it there" in refused.reason
