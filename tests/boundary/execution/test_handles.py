"""Handles of commands: what a later gateway may end by them, and what it must leave alone."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.boundary.execution.handles import CALL_MARK, boot_id, end_handle, handle_of
from hermes.boundary.execution.process import Gated, spawn_gated
from hermes.testing.commands import lives
from hermes.testing.running import until

MARK = "0191-mark"


@pytest.fixture
async def sleeping(tmp_path: Path) -> AsyncIterator[Gated]:
    """A command whose child has left the process group."""
    environment = {CALL_MARK: MARK, "PATH": os.defpath}
    command = ["/bin/sh", "-c", "setsid sleep 600 & echo $! > away; wait"]
    gated = await spawn_gated(command, tmp_path, environment)
    gated.release()
    away = tmp_path / "away"
    await until(lambda: away.exists() and away.read_text().endswith("\n"))
    await until(lambda: os.getpgid(int(away.read_text())) == int(away.read_text()))
    yield gated
    end_handle(handle_of(gated.record, MARK))
    await gated.end()


async def test_the_group_and_all_that_left_it_are_ended(sleeping: Gated, tmp_path: Path) -> None:
    away = int((tmp_path / "away").read_text())
    handle = handle_of(sleeping.record, MARK)
    assert handle.startswith(f"local:{boot_id()}:{sleeping.record.group}:")
    assert end_handle(handle)
    await until(lambda: not lives(away))
    assert await sleeping.process.wait() != 0
    assert not end_handle(handle)


async def test_a_handle_without_a_boot_id_is_from_an_older_version(sleeping: Gated) -> None:
    record = sleeping.record
    assert end_handle(f"local::{record.group}:{record.started}:{MARK}")
    assert await sleeping.process.wait() != 0


async def test_nothing_is_ended_by_any_other_handle(sleeping: Gated) -> None:
    record = sleeping.record
    for wrong in (
        f"local:another-boot:{record.group}:{record.started}:{MARK}",
        f"local:{boot_id()}:{record.group}:{record.started - 1}:another mark",
        f"docker:{boot_id()}:{record.group}:{record.started}:{MARK}",
        f"local:{boot_id()}:{record.group}:{record.started}",
        f"local:{boot_id()}:{record.group}:{record.started}:",
        f"local:{boot_id()}:-{record.group}:{record.started}:{MARK}",
        f"local:{boot_id()}:0:0:{MARK}",
        f"local:{boot_id()}:1:1:{MARK}",
        "local",
        "",
    ):
        assert not end_handle(wrong), wrong
    assert sleeping.process.returncode is None
