"""Connections to model providers."""

from functools import partial

import aiohttp
from aiohttp.client_proto import ResponseHandler


class ModelConnector(aiohttp.TCPConnector):
    """A connector without a limit on the number of connections. It is optimized for answers that
    arrive in many small chunks."""

    def __init__(self) -> None:
        super().__init__(limit=0, ttl_dns_cache=300)
        connection: type[ResponseHandler] = _Connection
        self._factory = partial(connection, loop=self._loop)


class _Connection(ResponseHandler):
    def resume_reading(self, resume_parser: bool = True) -> None:
        # aiohttp calls this method after each chunk that is read. A connection that is not paused
        # is not resumed, because that would cost several calls for each chunk and have no effect.
        if self._reading_paused:
            super().resume_reading(resume_parser)
