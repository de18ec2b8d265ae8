"""Every message is answered once, despite faults of PostgreSQL and of the connection."""

import itertools
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from os import defpath
from pathlib import Path

import aiohttp
import anyio
import anyio.abc
import anyio.to_thread
import pytest

from hermes.control.gateway import Gateway
from hermes.testing.cluster import ClusterClient
from hermes.testing.cutting_proxy import Moment, cutting_proxy
from hermes.testing.gateway_process import SharedStore, gateway_process
from hermes.testing.model import FakeModel
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.postgres import PostgresProcess, running_postgres, shared_databases
from hermes.testing.running import held, running, until
from hermes.testing.scripted import Plan, ScriptedModel, calls, says
from hermes.testing.service import SERVICE_KEY, serving
from hermes.testing.stores import store_reached_by, store_url
from hermes.types.messages import AssistantMessage, ToolMessage, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit

FAIL_SOMETIMES = """
create sequence commits;
create function fail_sometimes() returns trigger language plpgsql as $$ begin
    if nextval('commits') % 3 = 0 then
        raise exception 'one in three' using errcode = 'serialization_failure';
    end if;
    return null;
end $$;
create constraint trigger sometimes after insert or update on turns
    deferrable initially deferred for each row execute function fail_sometimes();
create constraint trigger sometimes after insert or update on deliveries
    deferrable initially deferred for each row execute function fail_sometimes();
"""
"""Triggers that make one in three commits of a turn or a delivery fail."""


class Appender:
    """A model that calls a tool which must not run twice, and then answers."""

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        said = [one.text for one in request.messages if isinstance(one, UserMessage)][-1]
        if isinstance(request.messages[-1], ToolMessage):
            return await says(f"done {said}")(request, emit)
        return await calls(("append", {"token": said}))(request, emit)


async def one_turn(server: ChatServer, text: str, chat: str = "1") -> None:
    server.says(text, chat)
    await until(lambda: f"done {text}" in server.texts(chat), within=20)


def check(server: ChatServer, home: Path, messages: int) -> None:
    """Checks that every message was answered once, and that the tool ran once for each message."""
    answers = Counter(shown.text for shown in server.messages.values())
    assert set(answers.values()) == {1}
    appended = (home / "workspace" / "appended").read_text().split()
    assert set(Counter(appended).values()) == {1}
    assert len(appended) == len(answers) == messages


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_the_connection_may_be_cut_at_every_statement_of_a_turn(
    tmp_path: Path, moment: Moment
) -> None:
    databases = shared_databases()
    async with cutting_proxy(databases.server.socket) as proxy:
        address = proxy.url(databases.name_of(tmp_path))
        server = ChatServer()
        with store_reached_by(tmp_path, address, store_url(tmp_path)):
            async with running(tmp_path, [PlainAdapter(server)], Appender()):
                await one_turn(server, "first")
                before = proxy.statements
                await one_turn(server, "second")
                count = proxy.statements - before
                for number in range(1, count + 1):
                    proxy.arm(number, moment)
                    await one_turn(server, f"m{number}")
                    # The proxy may cut the connection at a statement that follows the delivery of
                    # the answer. So the test waits for the cut.
                    await until(lambda n=number: proxy.cuts == n)  # type: ignore[misc]
    check(server, tmp_path, count + 2)


async def test_one_in_three_commits_may_fail_with_a_conflict(tmp_path: Path) -> None:
    databases = shared_databases()
    # This test has a database of its own, because the triggers stay in the database.
    databases.server.execute("create database conflicts template hermes_template")
    databases.server.execute(FAIL_SOMETIMES, "conflicts")
    server = ChatServer()
    with store_reached_by(tmp_path, databases.server.url("conflicts")):
        async with running(tmp_path, [PlainAdapter(server)], Appender()):
            for number in range(10):
                await one_turn(server, f"m{number}")
    check(server, tmp_path, 10)
    ((commits,),) = databases.server.execute("select last_value from commits", "conflicts")
    assert commits >= 30


async def test_the_connection_that_holds_the_lock_may_be_ended_while_a_turn_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    databases = shared_databases()
    name = databases.name_of(tmp_path)
    go = anyio.Event()
    server = ChatServer()
    model = ScriptedModel([held(go, says("an answer"))])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("hi")
        await until(lambda: gateway.busy)
        databases.server.execute(
            "select pg_terminate_backend(l.pid) from pg_locks l join pg_database d"
            f" on d.oid = l.database where l.objsubid = 2 and d.datname = '{name}'"
        )
        await until(lambda: "is lost" in caplog.text)
        await until(lambda: "again" in caplog.text)
        assert gateway.trouble is None
        go.set()
        await until(lambda: server.texts() == ["an answer"])


@pytest.mark.slow
async def test_a_gateway_without_its_lock_stops_its_turns_and_later_resumes_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    databases = shared_databases()
    go = anyio.Event()
    server = ChatServer()
    model = ScriptedModel([held(go, says("lost")), says("an answer"), says("another")])
    async with cutting_proxy(databases.server.socket) as proxy:
        direct = proxy.url(databases.name_of(tmp_path))
        with store_reached_by(tmp_path, store_url(tmp_path), direct):
            async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
                server.says("hi")
                await until(lambda: gateway.busy)
                proxy.refusing = True
                proxy.cut_all()
                with anyio.fail_after(10):
                    await until(lambda: not gateway.busy, within=10)
                assert "stops its turns" in caplog.text
                assert "the lock of this process is lost" in (gateway.trouble or "")
                proxy.refusing = False
                await until(lambda: server.texts() == ["an answer"], within=10)
                assert gateway.trouble is None
                server.says("and now?")
                await until(lambda: server.texts() == ["an answer", "another"])


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_the_server_may_be_restarted_under_load(tmp_path: Path, how: signal.Signals) -> None:
    with running_postgres() as postgres:
        postgres.execute("create database hermes")
        server = ChatServer()
        with store_reached_by(tmp_path, postgres.url("hermes")):
            async with running(tmp_path, [PlainAdapter(server)], Appender()) as gateway:
                await one_turn(server, "first")
                async with anyio.create_task_group() as group:
                    group.start_soon(_talk, server)
                    for _ in range(2):
                        await anyio.sleep(0.5)
                        await _restart(postgres, gateway, how)
    check(server, tmp_path, 41)


async def _talk(server: ChatServer) -> None:
    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(one_turn, server, f"m{number}", str(number))
            await anyio.sleep(0.05)


async def _restart(postgres: PostgresProcess, gateway: Gateway, how: signal.Signals) -> None:
    await anyio.to_thread.run_sync(postgres.stop, how)
    await until(lambda: gateway.trouble)
    # The kernel ends the server when the thread that started it ends. So the server is started in
    # the main thread and not in a worker thread.
    postgres.start()
    await until(lambda: gateway.trouble is None, within=10)


async def stopped_and_started(folder: Path, postgres: PostgresProcess) -> None:
    """Stops the PostgreSQL server of a running service and starts it again. Checks the answers that
    clients get meanwhile."""
    headers = {"Authorization": f"Bearer {SERVICE_KEY}"}
    async with (
        serving(folder) as service,
        aiohttp.ClientSession(service.base_url, headers=headers) as client,
    ):
        body = {"messages": [{"role": "user", "content": "hi"}]}
        async with client.post("/v1/chat/completions", json=body) as response:
            assert response.status == 200
        postgres.stop()
        async with client.post("/v1/chat/completions", json=body) as response:
            assert response.status == 503
            assert int(response.headers["Retry-After"]) > 0
            assert postgres.folder.name not in await response.text()
        async with client.get("/ready") as response:
            assert response.status == 503
        postgres.start()
        await until(lambda: service.gateway.trouble is None, within=10)
        async with client.get("/ready") as response:
            assert response.status == 200
        async with client.post("/v1/chat/completions", json=body) as response:
            assert response.status == 200


@pytest.mark.slow
async def test_requests_get_503_while_the_server_is_down_and_succeed_after_its_restart(
    tmp_path: Path,
) -> None:
    with running_postgres() as postgres:
        postgres.execute("create database hermes")
        with store_reached_by(tmp_path, postgres.url("hermes")):
            await stopped_and_started(tmp_path, postgres)


@pytest.mark.slow
async def test_a_gateway_that_starts_while_the_server_is_down_waits_for_it(tmp_path: Path) -> None:
    with running_postgres() as postgres:
        postgres.execute("create database hermes")
        postgres.stop()
        port = await _free_port()
        environ = {
            "PATH": defpath,
            "HOME": str(tmp_path),
            "HERMES_STORE_URL": postgres.url("hermes"),
            "HERMES_CUSTOM_BASE_URL": "http://127.0.0.1:9/v1",
            "HERMES_MODEL": "none",
        }
        command = [sys.executable, "-m", "hermes", "gateway", "run", "--port", str(port)]
        log = (tmp_path / "log").open("wb")
        with log, subprocess.Popen(command, env=environ, stdout=log, stderr=log) as process:
            try:
                async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client:
                    await _ready(client, 503)
                    postgres.start()
                    await _ready(client, 200)
            finally:
                process.terminate()
    logged = (tmp_path / "log").read_text()
    assert "nothing is accepted until the store can be opened" in logged
    assert "Traceback" not in logged


@pytest.mark.slow
async def test_a_gateway_can_be_stopped_although_its_database_server_is_gone(
    tmp_path: Path,
) -> None:
    (tmp_path / ".hermes").mkdir()
    (tmp_path / ".hermes" / "config.yaml").write_text("agent:\n  restart_drain_timeout: 0\n")
    plan = Plan(tokens=20, delay=0.02)
    with running_postgres() as postgres:
        postgres.execute("create database hermes")
        store = SharedStore(url=postgres.url("hermes"))
        async with (
            FakeModel(plan) as model,
            gateway_process(tmp_path, model.base_url, store=store) as gateway,
            anyio.create_task_group() as group,
        ):
            for number in range(8):
                group.start_soon(_ask_for_ever, ClusterClient([gateway], f"s{number}"))
            await until(lambda: gateway.log.count(" completed in ") > 20, within=60)
            # The clients send requests all the time, so the crash of the server hits transactions
            # that are being committed.
            postgres.stop(signal.SIGQUIT)
            await until(lambda: "is lost" in gateway.log, within=20)
            with anyio.fail_after(30):
                assert await gateway.terminate() == 0
            group.cancel_scope.cancel()


async def _ask_for_ever(client: ClusterClient) -> None:
    for number in itertools.count():
        await client.ask(f"hello {number}")


async def _ready(client: aiohttp.ClientSession, wanted: int) -> None:
    """Waits until `GET /ready` answers with the wanted status."""
    with anyio.fail_after(30):
        status = 0
        while status != wanted:
            await anyio.sleep(0.05)
            with suppress(aiohttp.ClientError):
                async with client.get("/ready") as response:
                    status = response.status


async def _free_port() -> int:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port: int = listener.extra(anyio.abc.SocketAttribute.local_port)
        return port
