"""Stores the files that come with messages, and deletes them when their retention ends."""

from collections.abc import Awaitable, Callable
from functools import partial

import anyio.to_thread
from msgspec.structs import replace

from hermes.state.media import MediaCache
from hermes.types.messages import Attachment
from hermes.types.web import WebFile

Download = Callable[[str, int], Awaitable[WebFile]]
"""Fetches the file at a public URL. The number is the maximum size of the file in bytes. If the
file is larger or can't be fetched, raises a Rejected that says why."""


class MediaIntake:
    def __init__(self, cache: MediaCache, download: Download) -> None:
        self._cache = cache
        self._download = download

    async def fetch(self, url: str, limit: int) -> WebFile:
        """Returns the file at the URL. Raises Rejected if it can't be fetched or is larger than
        `limit` bytes."""
        return await self._download(url, limit)

    async def keep(self, data: bytes, *, stateless: bool) -> str:
        """Stores the content durably; returns the path for an `Attachment`."""
        return await anyio.to_thread.run_sync(partial(self._cache.keep, data, stateless=stateless))

    def located(self, attachment: Attachment) -> Attachment:
        """Returns the attachment with the path of its stored file, so that an adapter can read
        it."""
        path = self._cache.locate(attachment.path)
        return attachment if path is None else replace(attachment, path=str(path))

    async def forget(self, requests: float, sessions: float) -> None:
        """Deletes files that were not used for a while. A file of a session is deleted if it was
        last used before the time `sessions`. A file of a request without a session is deleted if it
        was last used before the time `requests`."""
        forget = partial(self._cache.forget, requests, sessions)
        await anyio.to_thread.run_sync(forget, abandon_on_cancel=True)
