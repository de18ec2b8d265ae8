"""Asks providers which models they have; the lists are kept for when the network is away."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

import aiohttp
import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from hermes.core.models.model_cache import Listed, Lists, ModelList
from hermes.core.models.provider_errors import refusal, unreachable
from hermes.text.redact import hide
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.profile import ModelChoice, Price

log = logging.getLogger(__name__)

FRESH = 24 * 3600.0
"""Seconds for which a list is not asked for again."""
PERIOD = 6 * 3600.0
"""Seconds between two rounds in the background."""
MILLION = 1_000_000
_TIMEOUT = aiohttp.ClientTimeout(total=20.0)


async def ask(
    session: aiohttp.ClientSession, lists: Lists, place: ModelChoice, *, age: float = FRESH
) -> ModelList:
    """The list, renewed when it is older than `age`; the old one when that fails."""
    if current := lists.current(place, age):
        return current
    try:
        return await renew(session, lists, place)
    except (RateLimited, Disconnected, AuthFailed, Rejected):
        if kept := lists.kept(place):
            return kept
        raise


async def renew(session: aiohttp.ClientSession, lists: Lists, place: ModelChoice) -> ModelList:
    """Asks the provider, and keeps what it says."""
    models = await fetch(session, place)
    return await anyio.to_thread.run_sync(lists.keep, place, models)


async def refresh_lists(
    session: aiohttp.ClientSession,
    lists: Lists,
    places: Sequence[ModelChoice],
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> None:
    """Keeps the lists of the places current, until cancelled."""
    while True:
        for place in places:
            try:
                await ask(session, lists, place, age=PERIOD)
            except (HermesError, OSError) as error:
                log.debug("no list of models from %s: %s", place.provider, error)
        await sleep(PERIOD)


async def fetch(session: aiohttp.ClientSession, place: ModelChoice) -> tuple[Listed, ...]:
    """Asks the provider for its models; one of our errors when it does not say."""
    try:
        async with session.get(
            _url(place),
            headers=_headers(place),
            timeout=_TIMEOUT,
            # A redirect would carry the key to another host.
            allow_redirects=False,
        ) as response:
            body = await response.read()
            if response.status not in (200, 404):
                raise refusal(place, response.status, response.headers, body)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise unreachable(place, error) from error
    try:
        page = _pages.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        where = hide(place.base_url)
        raise Rejected(f"{place.provider} has no list of models at {where!r}") from error
    entries = page if isinstance(page, list) else page.data
    return tuple(one for raw in entries if (one := read_entry(raw)) is not None)


def _url(place: ModelChoice) -> str:
    if place.wire == "anthropic":
        return f"{place.base_url.removesuffix('/v1')}/v1/models?limit=1000"
    return f"{place.base_url}/models"


def _headers(place: ModelChoice) -> Mapping[str, str]:
    if place.wire == "anthropic":
        key = {"x-api-key": place.api_key} if place.api_key else {}
        return {**key, "anthropic-version": "2023-06-01"}
    return {"Authorization": f"Bearer {place.api_key}"} if place.api_key else {}


class _Pricing(Struct):
    """Dollars for one token, as text."""

    prompt: str
    completion: str
    input_cache_read: str | None = None


class _Entry(Struct):
    id: str
    context_length: int | None = None
    """Of OpenRouter and Together; Groq, Mistral, vLLM and Anthropic each have another word."""
    context_window: int | None = None
    max_context_length: int | None = None
    max_model_len: int | None = None
    max_input_tokens: int | None = None
    pricing: object = None


class _Page(Struct):
    data: list[msgspec.Raw]


_pages = msgspec.json.Decoder(_Page | list[msgspec.Raw])
_entries = msgspec.json.Decoder(_Entry)


def read_entry(raw: msgspec.Raw) -> Listed | None:
    """The model that an entry of a list describes; None for one that describes none."""
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
    # Gemini lists `models/gemini-x` and wants `gemini-x`.
    name = entry.id.removeprefix("models/")
    return Listed(id=name, context_length=length, price=_price(entry.pricing))


def _price(said: object) -> Price | None:
    try:
        pricing = msgspec.convert(said, _Pricing)
        dollars = [float(pricing.prompt), float(pricing.completion)]
        cached = pricing.input_cache_read
        dollars += [float(cached)] if cached else []
    except (msgspec.ValidationError, ValueError):
        return None
    # OpenRouter says -1 where it depends.
    if not all(0 <= one < 1 for one in dollars):
        return None
    read, written, *reused = (round(one * MILLION, 6) for one in dollars)
    return Price(input=read, output=written, cached=next(iter(reused), None))
