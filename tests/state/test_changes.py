"""A reader that was not waiting is woken only once, no matter how many commits other processes have
made in the meantime."""

from collections.abc import AsyncIterator

import anyio

from hermes.state.changes import Changes


async def test_several_changes_wake_a_reader_once() -> None:
    changes = Changes()
    changes.notice()
    changes.notice()
    noticed = changes.noticed()
    with anyio.fail_after(5):
        await anext(noticed)
    with anyio.move_on_after(0.05) as quiet:
        await anext(noticed)
    assert quiet.cancelled_caught


async def test_each_reader_is_woken_again_by_a_later_change() -> None:
    changes = Changes()
    one, other = changes.noticed(), changes.noticed()
    changes.notice()
    with anyio.fail_after(5):
        await anext(one)
        await anext(other)
        async with anyio.create_task_group() as group:
            group.start_soon(wait_for, one)
            await anyio.wait_all_tasks_blocked()
            changes.notice()


async def wait_for(noticed: AsyncIterator[None]) -> None:
    await anext(noticed)
