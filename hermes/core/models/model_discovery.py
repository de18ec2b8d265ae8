"""Requests the model lists of providers, and caches them."""

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
from hermes.core.models.provider_errors import address_advice, refusal, unreachable
from hermes.core.models.wires import WireFormats, find_wire
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.messages import AttachmentKind
from hermes.types.profile import ModelChoice, Price

log = logging.getLogger(__name__)

FRESH_LIST = 24 * 3600.0
"""A cached list that is older than this number of seconds is requested again."""
REFRESH_PERIOD = 6 * 3600.0
"""Seconds between two refreshes in the background."""
_TIMEOUT = aiohttp.ClientTimeout(total=20.0)


class ModelDiscovery:
    """Requests model lists over HTTP. The methods ignore the model of the parameter `endpoint`."""

    def __init__(
        self, session: aiohttp.ClientSession, wires: WireFormats, cache: ModelCache
    ) -> None:
        self._session = session
        self._wires = wires
        self._cache = cache

    async def current(self, endpoint: ModelChoice, *, age: float = FRESH_LIST) -> CachedList:
        """Returns the cached list if it is younger than `age` seconds, and otherwise requests a new
        list. If the request fails, returns the cached list, however old it is."""
        if current := self._cache.current(endpoint, age):
            return current
        try:
            return await self.renew(endpoint)
        except (RateLimited, Disconnected, AuthFailed, Rejected):
            if last := self._cache.last(endpoint):
                return last
            raise

    async def renew(self, endpoint: ModelChoice) -> CachedList:
        """Requests the list and caches it."""
        models = await self.fetch(endpoint)
        return await anyio.to_thread.run_sync(self._cache.save, endpoint, models)

    async def refresh(
        self,
        endpoints: Sequence[ModelChoice],
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """Refreshes the lists of the endpoints every REFRESH_PERIOD seconds, until the call is
        cancelled."""
        while True:
            for endpoint in endpoints:
                try:
                    await self.current(endpoint, age=REFRESH_PERIOD)
                except (HermesError, OSError) as error:
                    log.debug("no list of models from %s: %s", endpoint.provider, error)
            await sleep(REFRESH_PERIOD)

    async def fetch(self, endpoint: ModelChoice) -> tuple[ListedModel, ...]:
        """Requests the list. Raises a HermesError if the request fails or the provider has no
        list."""
        wire = find_wire(self._wires, endpoint.wire)
        try:
            async with self._session.get(
                wire.list_url(endpoint),
                headers=wire.headers(endpoint),
                timeout=_TIMEOUT,
                # Redirects are not followed, because they would carry the key to another host.
                allow_redirects=False,
            ) as response:
                body = await response.read()
                if response.status not in (200, 404):
                    raise refusal(endpoint, response.status, response.headers, body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(endpoint, error) from error
        except ValueError as error:
            # aiohttp can't build the request, for example because both the address and the settings
            # have a credential.
            raise Rejected(
                f"{endpoint.provider} can't be called at its base_url: {error}"
            ) from error
        try:
            page = _pages.decode(body)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Rejected(
                f"{endpoint.provider} did not return a list of models; {address_advice(endpoint)}"
            ) from error
        entries = page if isinstance(page, list) else page.data
        prefix = endpoint.quirks.list_prefix
        return tuple(one for raw in entries if (one := read_entry(raw, prefix)) is not None)


class _Pricing(Struct):
    """Prices in dollars per token, as text."""

    prompt: str
    completion: str
    input_cache_read: str | None = None


class _Entry(Struct):
    id: str
    context_length: int | None = None
    """The context length. Servers use different names for this value: the name of this field, or
    the name of one of the next four fields."""
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
    """Parses an entry of a list, and removes the prefix from its name. Returns None for an invalid
    entry."""
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
    # A router sends -1 if the price depends on the provider behind it. Such a price counts as
    # unknown.
    if not all(0 <= one < 1 for one in dollars):
        return None
    read, written, *reused = (round(one * MILLION, 6) for one in dollars)
    return Price(input=read, output=written, cached=next(iter(reused), None))
