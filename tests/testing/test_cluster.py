"""When gateway processes on one store are killed or paused, nothing is lost or done twice, and a
session keeps its files."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hermes.testing.cluster import ClusterClient, RunFrame, cluster, shown_text
from hermes.testing.gateway_process import GatewayProcess, SharedStore
from hermes.testing.model import FakeModel
from hermes.testing.nats import running_nats
from hermes.testing.running import until
from hermes.testing.scripted import Plan, is_complete
from hermes.testing.stores import store_url, stored_rows, stores_on_postgres

TABLES = ("inbox", "turns", "messages", "calls", "questions", "deliveries", "run_events")
"""The tables whose rows only the process that owns the work may change. A process that has lost its
work must not change them."""
WRITE = 'tool:write_file{"path":"note.txt","content":"remember-this"} tokens:60 delay:0.2'
"""A message that makes the model write a file with a tool, and then take twelve seconds for its
answer."""
READ = 'tool:read_file{"path":"note.txt"} tokens:30'


@pytest.fixture(autouse=True)
def on_postgres() -> Iterator[None]:
    with stores_on_postgres():
        yield


async def talk(client: ClusterClient, texts: list[str], answers: dict[str, list[RunFrame]]) -> None:
    for text in texts:
        answers[text] = await client.ask(text)


def runs_turn(folder: Path, node: GatewayProcess) -> bool:
    sql = "select 1 from turns t join owners o on o.id = t.owner where t.state = 'running'"
    return bool(stored_rows(folder, f"{sql} and o.pid = {node.pid}"))


async def kill_one_after_the_other(folder: Path, nodes: list[GatewayProcess], times: int) -> None:
    """Kills the nodes in turn, `times` times in all. Each node is killed while it runs a turn, and
    is started again."""
    for number in range(times):
        node = nodes[number % len(nodes)]
        await until(lambda node=node: runs_turn(folder, node), within=60)  # type: ignore[misc]
        await node.kill()
        await node.start()


def check_answers(
    folder: Path, texts: dict[str, list[str]], answers: dict[str, list[RunFrame]]
) -> None:
    """Checks that every message was answered once, in order, and that the reader of the answer
    missed nothing."""
    for session, said in texts.items():
        for text in said:
            frames = answers[text]
            numbers = [frame.id for frame in frames]
            assert numbers == sorted(set(numbers)), text
            assert frames[-1].name == "run.completed", text
            assert is_complete(frames[-1].output), text
            assert shown_text(frames) == frames[-1].output, text
        found = stored_rows(
            folder,
            "select role, text from messages where session like"
            f" '%{session}%' and role in ('user', 'assistant') order by id",
        )
        assert [row[1] for row in found if row[0] == "user"] == said
        assert [row[0] for row in found] == ["user", "assistant"] * len(said)
    states = Counter(row[0] for row in stored_rows(folder, "select state from turns"))
    assert states == {"completed": sum(map(len, texts.values()))}


async def talk_until(
    over: anyio.Event, client: ClusterClient, said: list[str], answers: dict[str, list[RunFrame]]
) -> None:
    while not over.is_set():
        said.append(f"{client.session} message {len(said)}")
        answers[said[-1]] = await client.ask(said[-1])


async def killed_under_load(folder: Path, sessions: int, kills: int) -> None:
    """Kills nodes while clients talk to them, and checks the answers."""
    store = SharedStore(url=store_url(folder))
    texts: dict[str, list[str]] = {f"talk{session}": [] for session in range(sessions)}
    answers: dict[str, list[RunFrame]] = {}
    plan = Plan(tokens=20, delay=0.02)
    async with FakeModel(plan) as model, cluster(folder, store, model.base_url, 3) as nodes:
        over = anyio.Event()
        async with anyio.create_task_group() as group:
            for number, (name, said) in enumerate(texts.items()):
                client = ClusterClient(nodes, name, number % 3)
                group.start_soon(talk_until, over, client, said, answers)
            await kill_one_after_the_other(folder, nodes, kills)
            over.set()
    check_answers(folder, texts, answers)
    taken_over = stored_rows(folder, "select id from turns where epoch > 1")
    assert len(taken_over) >= kills


@pytest.mark.slow
async def test_any_of_three_gateways_may_be_killed_under_load(tmp_path: Path) -> None:
    await killed_under_load(tmp_path, sessions=4, kills=3)


def has_nats_again(node: GatewayProcess) -> bool:
    return re.search("the bus is connected to NATS at .* again", node.log) is not None


async def nats_stopped_under_load(folder: Path, sessions: int, messages: int) -> None:
    """Stops NATS while clients talk to three nodes, starts it again, and checks the answers."""
    texts = {
        f"talk{session}": [f"s{session}m{number} word" for number in range(messages)]
        for session in range(sessions)
    }
    answers: dict[str, list[RunFrame]] = {}
    plan = Plan(tokens=20, delay=0.02)
    with running_nats() as nats:
        store = SharedStore(url=store_url(folder), bus_url=nats.url())
        async with FakeModel(plan) as model, cluster(folder, store, model.base_url, 3) as nodes:
            clients = [ClusterClient(nodes, name, number % 3) for number, name in enumerate(texts)]
            async with anyio.create_task_group() as group:
                for client, said in zip(clients, texts.values(), strict=True):
                    group.start_soon(talk, client, said, answers)
                await until(lambda: len(answers) >= sessions, within=60)
                nats.stop()
                answered = len(answers)
                await until(lambda: len(answers) >= answered + sessions, within=60)
                nats.start()
                for node in nodes:
                    await until(lambda node=node: has_nats_again(node), within=60)  # type: ignore[misc]
    check_answers(folder, texts, answers)
    assert not stored_rows(folder, "select id from turns where epoch > 1")


@pytest.mark.slow
async def test_nats_may_be_stopped_and_started_under_load(tmp_path: Path) -> None:
    await nats_stopped_under_load(tmp_path, sessions=4, messages=6)


def rows_of_work(folder: Path) -> list[object]:
    return [stored_rows(folder, f"select * from {table} order by 1, 2") for table in TABLES]


async def paused_in_a_turn(folder: Path, store: SharedStore, seconds: float) -> None:
    """Pauses a node in the middle of a turn for this many seconds. The other node has to answer
    meanwhile."""
    answers: dict[str, list[RunFrame]] = {}
    plan = Plan(tokens=100, delay=0.02)
    async with FakeModel(plan) as model, cluster(folder, store, model.base_url, 2) as nodes:
        # The first request goes to the first node, and the events are read from the other node.
        client = ClusterClient(nodes, "talk0")
        async with anyio.create_task_group() as group:
            group.start_soon(talk, client, ["hello"], answers)
            await until(lambda: client.run, within=30)
            assert runs_turn(folder, nodes[0])
            nodes[0].pause()
            wake_at = anyio.current_time() + seconds
            await until(lambda: answers, within=2 * store.stale_seconds + 20)
        before = rows_of_work(folder)
        await anyio.sleep_until(wake_at)
        nodes[0].wake()
        await until(lambda: "stops its turns" in nodes[0].log, within=20)
        await until(lambda: "notifications again" in nodes[0].log, within=20)
        # The whole answer of the model arrived while the node was paused. The node now tries to
        # store this answer, and must not succeed.
        await until(lambda: stored_rows(folder, "select 1 from owners offset 1"), within=20)
        assert rows_of_work(folder) == before
        await talk(ClusterClient(nodes[:1], "talk0"), ["again"], answers)
        assert rows_of_work(folder) != before
    check_answers(folder, {"talk0": ["hello", "again"]}, answers)


@pytest.mark.slow
async def test_a_node_that_was_paused_writes_nothing_after_it_wakes(tmp_path: Path) -> None:
    store = SharedStore(url=store_url(tmp_path), beat_seconds=0.5, stale_seconds=3.0)
    await paused_in_a_turn(tmp_path, store, seconds=5.0)


async def killed_after_a_write(nodes: list[GatewayProcess], workspace: Path) -> list[RunFrame]:
    """Kills the first node while it answers, after a tool has written a file. Returns the events
    that a reader gets from the second node."""
    answers: list[list[RunFrame]] = []

    async def ask() -> None:
        answers.append(await ClusterClient(nodes, "talk").ask(WRITE))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await until((workspace / "note.txt").exists, within=30)
        await nodes[0].kill()
    return answers[0]


async def answer_of(node: GatewayProcess, text: str, session: str = "talk") -> RunFrame:
    return (await ClusterClient([node], session).ask(text))[-1]


@pytest.mark.slow
async def test_with_a_shared_folder_a_session_continues_on_another_node_with_its_files(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    store = SharedStore(url=store_url(tmp_path), shared_folder=str(shared))
    async with FakeModel(Plan()) as model, cluster(tmp_path, store, model.base_url, 2) as nodes:
        frames = await killed_after_a_write(nodes, shared / "workspace")
        assert frames[-1].name == "run.completed"
        assert "remember-this" in (await answer_of(nodes[1], READ)).output


@pytest.mark.slow
async def test_without_a_shared_folder_a_session_waits_for_the_node_with_its_files(
    tmp_path: Path,
) -> None:
    store = SharedStore(url=store_url(tmp_path), folder_seconds=2.0)
    async with FakeModel(Plan()) as model, cluster(tmp_path, store, model.base_url, 2) as nodes:
        # This session uses no files, so it must not be bound to the node.
        assert (await answer_of(nodes[0], "hello", "other")).name == "run.completed"
        frames = await killed_after_a_write(nodes, nodes[0].workspace)
        assert frames[-1].name == "run.failed"
        ((node, host, reason),) = stored_rows(
            tmp_path,
            "select f.node, f.host, t.reason from turns t join folders f on f.id = t.folder",
        )
        assert f"on node {node} ({host})" in reason
        assert (await answer_of(nodes[1], "hello again", "other")).name == "run.completed"
        await nodes[0].start()
        assert "remember-this" in (await answer_of(nodes[1], READ)).output
        assert not (nodes[1].workspace / "note.txt").exists()
