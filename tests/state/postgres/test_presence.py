"""Processes prove that they are alive, and are notified of each other's commits."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import psycopg
import pytest

from hermes.state.postgres import presence
from hermes.state.postgres.pool import application_name
from hermes.state.postgres.store import open_postgres
from hermes.testing.cutting_proxy import cutting_proxy
from hermes.testing.postgres import shared_databases
from hermes.testing.rows import names, put
from hermes.testing.running import until
from hermes.types.errors import StoreUnavailable

ALIVE = """
import sys

import anyio

from hermes.state.postgres.store import open_postgres


async def main() -> None:
    async with open_postgres(sys.argv[1], "gateway") as store:
        print(store.owner, flush=True)
        await anyio.sleep_forever()


anyio.run(main)
"""


async def test_a_killed_process_is_dead_at_once(url: str) -> None:
    async with open_postgres(url, "gateway") as store:
        command = [sys.executable, "-c", ALIVE, url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            owner = await anyio.to_thread.run_sync(process.stdout.readline)
            assert await store.dead() == []
            os.kill(process.pid, signal.SIGKILL)
        dead: list[str] = []
        with anyio.fail_after(5):
            while not dead:
                dead += await store.dead()
        assert dead == [owner.strip()]


async def test_a_heartbeat_has_the_time_of_the_database(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "BEAT_SECONDS", 0.05)
    databases = shared_databases()

    def beat() -> tuple[float, float]:
        ((at, now),) = databases.server.execute(
            "select beat_at, extract(epoch from clock_timestamp())::double precision from owners",
            databases.name_of(tmp_path),
        )
        return at, now

    async with open_postgres(url, "gateway"):
        first, now = beat()
        assert 0 <= now - first < 5
        await until(lambda: beat()[0] > first)


async def test_a_process_that_others_have_forgotten_registers_again(
    tmp_path: Path, url: str
) -> None:
    databases = shared_databases()
    name = databases.name_of(tmp_path)
    async with open_postgres(url, "gateway") as store:
        databases.server.execute("delete from owners", name)
        databases.server.execute(
            "select pg_terminate_backend(pid) from pg_locks where objsubid = 2", name
        )
        await until(lambda: databases.server.execute("select id from owners", name))
        assert databases.server.execute("select id from owners", name) == [(store.owner,)]


async def test_changes_are_noticed_by_polling_while_notifications_are_lost(
    tmp_path: Path, url: str
) -> None:
    databases = shared_databases()
    async with cutting_proxy(databases.server.socket) as proxy:
        direct = proxy.url(databases.name_of(tmp_path))
        async with open_postgres(url, "gateway", direct) as one, open_postgres(url) as other:
            changes = one.changes()
            with anyio.fail_after(5):
                await anext(changes)
            proxy.refusing = True
            proxy.cut_all()
            await other.run(put, "a")
            with anyio.fail_after(5):
                await anext(changes)
                await anext(changes)
            assert "lost" in (one.trouble or "")
            proxy.refusing = False
            await until(lambda: one.trouble is None)
            await other.run(put, "b")
            with anyio.fail_after(5):
                await anext(changes)


async def test_the_permission_to_run_turns_follows_the_lock(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "LOST_SECONDS", 0.2)
    databases = shared_databases()
    async with cutting_proxy(databases.server.socket) as proxy:
        direct = proxy.url(databases.name_of(tmp_path))
        async with open_postgres(url, "gateway", direct) as store:
            permission = store.permission()
            with anyio.fail_after(10):
                assert await anext(permission)
                proxy.refusing = True
                proxy.cut_all()
                assert not await anext(permission)
                proxy.refusing = False
                assert await anext(permission)


async def test_a_process_that_hangs_loses_its_connections_and_is_dead(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(presence, "BEAT_SECONDS", 0.2)
    async with open_postgres(url, "gateway") as store:
        command = [sys.executable, "-c", ALIVE, url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            owner = (await anyio.to_thread.run_sync(process.stdout.readline)).strip()
            process.send_signal(signal.SIGSTOP)
            assert await store.dead() == []
            # This connection has the application name of the hanging process, as if the hanging
            # process had an open transaction.
            with psycopg.connect(url, application_name=application_name(owner)) as left_open:
                left_open.execute("select pg_advisory_xact_lock(1)")
                monkeypatch.setattr(presence, "STALE_SECONDS", 2.0)
                dead: list[str] = []
                with anyio.fail_after(20):
                    while not dead:
                        dead += await store.dead()
                assert dead == [owner]
                with pytest.raises(psycopg.OperationalError):
                    left_open.execute("select 1")
            process.kill()
        assert f"process {owner} hangs" in caplog.text


async def test_after_a_long_pause_nothing_is_committed_before_the_lock_is_held_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_postgres(url, "gateway") as store:
        await store.run(put, "before")
        monkeypatch.setattr(presence, "STALE_SECONDS", 0.0)
        with pytest.raises(StoreUnavailable, match="not confirmed"):
            await store.run(put, "late")
        monkeypatch.undo()
        await store.run(put, "after")
        assert await store.read(names) == ["after", "before"]
