"""Requests the providers' lists of models, and caches them for use without a network."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import get_args

import aiohttp
import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from hermes.core.models.model_cache import CachedList, ListedModel, ModelCache
from hermes.core.models.prices import MILLION
from hermes.core.models.provider_errors import refusal, unreachable
from hermes.core.models.wires import WireFormats, find_wire
from hermes.text.redact import redact_tokens
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.messages import AttachmentKind
from hermes.types.profile import ModelChoice, Price

log = logging.getLogger(__name__)

FRESH_LIST = 24 * 3600.0
"""Seconds for which a list is not requested again."""
REFRESH_PERIOD = 6 * 3600.0
"""Seconds between two refreshes in the background."""
_TIMEOUT = aiohttp.ClientTimeout(total=20.0)


class ModelDiscovery:
    """Reads lists of models over HTTP. A `endpoint` is a choice whose provider and address count."""

    def __init__(
        self, session: aiohttp.ClientSession, wires: WireFormats, cache: ModelCache
    ) -> None:
        self._session = session
        self._wires = wires
        self._cache = cache

    async def current(self, endpoint: ModelChoice, *, age: float = FRESH_LIST) -> CachedList:
        """The list, renewed if it is older than `age`; the old one if that fails."""
        if current := self._cache.current(endpoint, age):
            return current
        try:
            return await self.renew(endpoint)
        except (RateLimited, Disconnected, AuthFailed, Rejected):
            if last := self._cache.last(endpoint):
                return last
            raise

    async def renew(self, endpoint: ModelChoice) -> CachedList:
        """Requests the list, and keeps it."""
        models = await self.fetch(endpoint)
        return await anyio.to_thread.run_sync(self._cache.save, endpoint, models)

    async def refresh(
        self,
        endpoints: Sequence[ModelChoice],
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """Keeps the lists of the endpoints current, until cancelled."""
        while True:
            for endpoint in endpoints:
                try:
                    await self.current(endpoint, age=REFRESH_PERIOD)
                except (HermesError, OSError) as error:
                    log.debug("no list of models from %s: %s", endpoint.provider, error)
            await sleep(REFRESH_PERIOD)

    async def fetch(self, endpoint: ModelChoice) -> tuple[ListedModel, ...]:
        """Requests the list; raises one of our errors if the provider has none."""
        wire = find_wire(self._wires, endpoint.wire)
        try:
            async with self._session.get(
                wire.list_url(endpoint),
                headers=wire.headers(endpoint),
                timeout=_TIMEOUT,
                # A redirect would carry the key to another host.
                allow_redirects=False,
            ) as response:
                body = await response.read()
                if response.status not in (200, 404):
                    raise refusal(endpoint, response.status, response.headers, body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(endpoint, error) from error
        try:
            page = _pages.decode(body)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            where = redact_tokens(endpoint.base_url)
            raise Rejected(f"{endpoint.provider} has no list of models at {where!r}") from error
        entries = page if isinstance(page, list) else page.data
        prefix = endpoint.quirks.list_prefix
        return tuple(one for raw in entries if (one := read_entry(raw, prefix)) is not None)


class _Pricing(Struct):
    """Dollars for one token, as text."""

    prompt: str
    completion: str
    input_cache_read: str | None = None


class _Entry(Struct):
    id: str
    context_length: int | None = None
    """Servers have five names for it."""
    context_window: int | None = None
    max_context_length: int | None = None
    max_model_len: int | None = None
    max_input_tokens: int | None = None
    pricing: object = None
    architecture: object = None


class _Architecture(Struct):
    input_modalities: list[str]


class _Page(Struct):
    data: list[msgspec.Raw]


_pages = msgspec.json.Decoder(_Page | list[msgspec.Raw])
_entries = msgspec.json.Decoder(_Entry)


def read_entry(raw: msgspec.Raw, prefix: str = "") -> ListedModel | None:
    """The model that an entry of a list describes, without the prefix; None if it is not one."""
    try:
        entry = _entries.decode(raw)
    except msgspec.DecodeError:
        return None
    length = (
        entry.context_length
        or entry.context_window
        or entry.max_context_length
        or entry.max_model_len
        or entry.max_input_tokens
    )
    name = entry.id.removeprefix(prefix)
    return ListedModel(
        id=name,
        context_length=length,
        price=_price(entry.pricing),
        attachments=_attachments(entry.architecture),
    )


def _attachments(said: object) -> tuple[AttachmentKind, ...] | None:
    try:
        given = msgspec.convert(said, _Architecture).input_modalities
    except msgspec.ValidationError:
        return None
    kinds: tuple[AttachmentKind, ...] = get_args(AttachmentKind)
    return tuple(kind for kind in kinds if kind in given)


def _price(said: object) -> Price | None:
    try:
        pricing = msgspec.convert(said, _Pricing)
        dollars = [float(pricing.prompt), float(pricing.completion)]
        cached = pricing.input_cache_read
        dollars += [float(cached)] if cached else []
    except (msgspec.ValidationError, ValueError):
        return None
    # A router says -1 if the price depends on the provider behind it.
    if not all(0 <= one < 1 for one in dollars):
        return None
    read, written, *reused = (round(one * MILLION, 6) for one in dollars)
    return Price(input=read, output=written, cached=next(iter(reused), None))
