"""Connections to model servers that read an answer of many small chunks at little cost."""

from functools import partial

import aiohttp
from aiohttp.client_proto import ResponseHandler


class ModelConnector(aiohttp.TCPConnector):
    """aiohttp's connector, without a limit on connections."""

    def __init__(self) -> None:
        super().__init__(limit=0, ttl_dns_cache=300)
        # aiohttp has no public way to choose the protocol of its connections.
        protocol: type[ResponseHandler] = _Protocol
        self._factory = partial(protocol, loop=self._loop)


class _Protocol(ResponseHandler):
    def resume_reading(self, resume_parser: bool = True) -> None:
        # aiohttp calls this for each chunk that is read, and each time it calls the parser and the
        # transport, even if nothing is paused. An answer has a chunk for every word.
        if self._reading_paused:
            super().resume_reading(resume_parser)
