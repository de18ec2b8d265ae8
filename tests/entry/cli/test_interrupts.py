"""Signals interrupt the code that waits, not the process."""

import os
import signal

import anyio

from hermes.entry.cli.interrupts import Interrupts
from hermes.testing.running import until


async def test_ctrl_c_calls_the_function_of_the_block() -> None:
    interrupts, called = Interrupts(), anyio.Event()
    async with interrupts.handled():
        with interrupts.calls(called.set):
            os.kill(os.getpid(), signal.SIGINT)
            with anyio.fail_after(10):
                await called.wait()
    assert not interrupts.leaving


async def test_sigterm_cancels_the_scope_and_requests_the_exit() -> None:
    interrupts = Interrupts()
    async with interrupts.handled():
        with anyio.fail_after(10), interrupts.cancels() as scope:
            os.kill(os.getpid(), signal.SIGTERM)
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert interrupts.leaving


async def test_a_signal_that_nothing_waits_for_is_ignored() -> None:
    interrupts, called = Interrupts(), anyio.Event()
    async with interrupts.handled():
        with interrupts.calls(called.set):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: interrupts.leaving)
    assert not called.is_set()
