"""A store loses nothing that was synced, and the checks detect a missing sync."""

import random
from pathlib import Path

import pytest

from hermes.state.paths import STORE_NAME
from hermes.testing.crash_images import image, problems_of, record, try_images


@pytest.mark.slow
async def test_every_acknowledged_transaction_is_complete_after_a_power_cut(tmp_path: Path) -> None:
    operations, problems = await try_images(tmp_path, 60, seed=2)
    assert operations > 200
    assert problems == []


async def test_the_recording_has_checkpoints_and_syncs_of_both_files(tmp_path: Path) -> None:
    recording = await record(tmp_path, 60, seed=3)
    done = {(one.kind, one.file) for one in recording.operations}
    assert {(kind, STORE_NAME) for kind in ("write", "sync")} <= done
    assert {(kind, f"{STORE_NAME}-wal") for kind in ("write", "sync")} <= done
    assert sorted(number for number, _ in recording.acknowledged) == list(range(60))
    assert not any(path.name.endswith("-shm") for path in Path.cwd().iterdir())


async def test_the_checks_detect_a_store_that_does_not_sync(tmp_path: Path) -> None:
    (tmp_path / "recorded").mkdir()
    (tmp_path / "image").mkdir()
    recording = await record(tmp_path / "recorded", 20, seed=4)
    last_sync = max(
        n
        for n, one in enumerate(recording.operations)
        if one.kind == "sync" and one.file.endswith("-wal")
    )
    operations = [one for n, one in enumerate(recording.operations) if n != last_sync]
    files = image(operations, random.Random(5), share=0.0)
    safe = {number for number, _ in recording.acknowledged}
    (problem,) = problems_of(tmp_path / "image", files, safe)
    assert problem.startswith("acknowledged and lost")
