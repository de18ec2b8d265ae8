"""Maintenance runs periodically, in only one process at a time."""

import operator
import time
from pathlib import Path

import anyio
import anyio.lowlevel

from hermes.control.maintenance import HOUR, Maintenance, Retention
from hermes.state.owners import claim_lease
from hermes.testing.running import DRAINING, QUIET, rows, running, until, until_rows
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.identity import OWNER, Principal, Source
from hermes.types.messages import Asked, MessageEvent, Origin, UserMessage


def request(number: int) -> MessageEvent:
    return MessageEvent(
        dedupe_key=f"api:{number}",
        source=Source(platform="api", account="api", chat_kind="private", chat_id="", user_id="k"),
        origin=Origin(trigger="api", principal=Principal(name="api", person=OWNER)),
        received_at=time.time(),
        body=Asked(messages=(UserMessage(text="hi"),), detached=True),
    )


async def test_the_maintenance_deletes_old_requests(tmp_path: Path) -> None:
    swept: list[float] = []

    async def sweep() -> None:
        swept.append(time.time())

    async with running(tmp_path, [], ScriptedModel([says("done")]), DRAINING) as gateway:
        await gateway.accept(request(1))
        await until(lambda: not gateway.busy)
        assert await rows(gateway._store, "select 1 from turns")
        at_once = Retention(requests=-60.0, messages=-60.0)
        async with anyio.create_task_group() as group:
            maintenance = Maintenance(
                gateway._store, gateway._recovery, at_once, sweep, gateway.media
            )
            group.start_soon(maintenance.run)
            with anyio.fail_after(10):
                await until_rows(gateway._store, "select 1 from turns", operator.not_)
            group.cancel_scope.cancel()
    assert swept == []


async def test_only_one_process_at_a_time_does_the_maintenance(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([]), QUIET) as one:
        assert await one._recovery.lease("scheduler")
        async with running(tmp_path, [], ScriptedModel([]), QUIET) as other:
            assert await other._recovery.lease("scheduler") is None
            assert await one._recovery.lease("scheduler")


async def test_a_process_that_lost_the_lease_stops_the_maintenance(tmp_path: Path) -> None:
    async with (
        running(tmp_path, [], ScriptedModel([]), QUIET) as one,
        running(tmp_path, [], ScriptedModel([]), QUIET) as other,
    ):
        store, maintenance = one._store, one._maintenance
        assert await store.run(claim_lease, "scheduler", store.owner, {other._store.owner}, 0.0)
        maintenance._lease = None
        assert await maintenance._holds_lease()
        assert await maintenance._holds_lease()
        # The other process considers this process dead, for example because this process was
        # paused. So the other process takes the lease.
        theirs = other._store.owner
        assert await store.run(claim_lease, "scheduler", theirs, {store.owner}, 0.0)
        assert not await maintenance._holds_lease()


async def test_the_maintenance_deletes_old_files_of_messages(tmp_path: Path) -> None:
    async def sweep() -> None:
        raise AssertionError("nothing has expired")

    async with running(tmp_path, [], ScriptedModel([]), DRAINING) as gateway:
        request = await gateway.media.keep(b"of a request", stateless=True)
        session = await gateway.media.keep(b"of a session", stateless=False)
        folder, keeping = tmp_path / "media", Retention(requests=-2 * HOUR)
        async with anyio.create_task_group() as group:
            maintenance = Maintenance(
                gateway._store, gateway._recovery, keeping, sweep, gateway.media
            )
            group.start_soon(maintenance.run)
            await until(lambda: not (folder / request).exists())
            group.cancel_scope.cancel()
        assert (folder / session).exists()
