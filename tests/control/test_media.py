"""Files are fetched, stored and deleted without blocking the event loop."""

import time
from pathlib import Path

from hermes.control.maintenance import HOUR
from hermes.control.media import MediaIntake
from hermes.state.media import MediaCache
from hermes.types.web import WebFile


async def download(url: str, limit: int) -> WebFile:
    return WebFile(media_type="image/png", data=f"{url} {limit}".encode())


async def test_a_file_is_fetched_stored_and_deleted(tmp_path: Path) -> None:
    cache = MediaCache(tmp_path)
    intake = MediaIntake(cache, download)
    found = await intake.fetch("http://public.example/a.png", 7)
    name = await intake.keep(found.data, stateless=True)
    assert cache.read(name) == b"http://public.example/a.png 7"
    await intake.forget(requests=time.time() + 2 * HOUR, sessions=0.0)
    assert cache.read(name) is None
