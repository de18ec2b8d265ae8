"""A timer wakes the gateway when a message has waited long enough for its further parts."""

import time
from pathlib import Path

import anyio

from hermes.control.part_timer import PartTimer
from hermes.state import inbox, message_parts
from hermes.testing.rows import US, said, session
from hermes.testing.running import until
from hermes.testing.stores import open_test_store


async def test_each_time_wakes_the_gateway_once(tmp_path: Path) -> None:
    woken: list[int] = []
    async with open_test_store(tmp_path) as store, anyio.create_task_group() as group:
        timer = PartTimer(store, group, lambda: woken.append(1))
        await timer.look(time.time())
        past, soon = time.time() - 1, time.time() + 0.05
        for due in (past, past, soon):
            timer.set(due)
        await until(lambda: len(woken) == 2)
        await store.run(inbox.insert, "m", said("k"), session(), None, US)
        began = time.time()
        await store.run(message_parts.wait, "m", "cut", began + 60)
        await timer.look(began + 60)
        assert len(timer._due) == 0
        await store.run(message_parts.wait, "m", "cut", began + 0.05)
        await timer.look(began)
        await until(lambda: len(woken) == 3)
        group.cancel_scope.cancel()
    assert len(woken) == 3
