"""Reads pages and files from the web, at public addresses only."""

import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import aiohttp
import anyio
import anyio.to_thread
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.tracing import Trace
from yarl import URL

from hermes.boundary.addresses import is_public
from hermes.types.errors import Rejected, ToolFailed
from hermes.types.web import WebFile, WebPage

T = TypeVar("T")

CONNECT_SECONDS, SECONDS = 10.0, 30.0
"""Time limits in seconds: the first for a connection, the second for a whole page including
redirects."""
REDIRECTS = 5
LARGEST_PAGE = 5_000_000
"""Maximum number of bytes of a page after decompression. The page is not read beyond this size."""
LONGEST_URL = 4096
QUOTED = 200

IsAllowed = Callable[[str, int], bool]
"""Returns whether Hermes is allowed to connect to this address and port."""

# Ports above 1023 to which no request is sent, because the usual servers on these ports would
# interpret the lines of an HTTP request as commands.
_SERVICES = frozenset({1433, 2049, 3306, 3389, 5432, 5900, 6379, 11211, 27017})
_MOVED = frozenset({301, 302, 303, 307, 308})
_FILE_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; Hermes)",
    "Accept": "image/*, */*;q=0.1",
}
_HEADERS = {
    **_FILE_HEADERS,
    "Accept": "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.1",
}
_TEXTUAL = frozenset({"application/json", "application/xml", "application/xhtml+xml"})
_META = re.compile(rb"<meta[^>]{0,200}?charset\s{0,4}=\s{0,4}[\"']?([\w-]{1,40})", re.I)
# Only these encodings are accepted. Python has others, which the web does not use, and some of them
# are very slow.
_CHARSET = re.compile(
    r"(?:us-ascii|utf-?(?:8|16)|latin|iso|windows|cp12|koi8|gb|big5|euc|shift|mac)[\w-]*", re.I
)
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def may_reach(address: str, port: int) -> bool:
    """Returns whether the address is public and the port may belong to a web server: 80, 443, or a
    port above 1023 that no other well-known service uses."""
    common = port in (80, 443) or (port >= 1024 and port not in _SERVICES)
    return common and is_public(address)


class Egress:
    """Reads pages. The address of every connection is checked when the connection is made, so
    neither a host name nor a redirect can lead to an address that is not public."""

    def __init__(
        self,
        resolver: AbstractResolver | None = None,
        allowed: IsAllowed = may_reach,
        seconds: float = SECONDS,
    ) -> None:
        self._resolver = resolver or PageResolver()
        self._allowed = allowed
        self._seconds = seconds

    async def fetch(self, url: str) -> WebPage:
        """Returns the page at the URL. If the page can't be read, raises a ToolFailed that says
        why."""
        asked = _parsed(url)
        try:
            with anyio.fail_after(self._seconds):
                async with self._session(_HEADERS) as session:
                    return await _follow(session, asked, _read)
        except TimeoutError as error:
            raise ToolFailed(f"{_short(url)} did not answer in time.") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ToolFailed(f"{_short(url)} {_reason(error)}.") from error

    async def download(self, url: str, limit: int) -> WebFile:
        """Returns the file at the URL. If the file is larger than `limit` bytes or can't be
        fetched, raises a Rejected that says why.

        An address that is not public and an address that does not answer give the same error
        message, so callers can't find out which internal addresses exist.
        """
        try:
            with anyio.fail_after(self._seconds):
                async with self._session(_FILE_HEADERS) as session:
                    return await _follow(session, _parsed(url), partial(_file, limit))
        except ToolFailed as error:
            raise Rejected(str(error)) from error
        except TimeoutError as error:
            raise Rejected(f"{_short(url)} did not answer in time.") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise Rejected(
                f"{_short(url)} can't be fetched: it is not a public address, or nothing answers"
                " there."
            ) from error

    def _session(self, headers: Mapping[str, str]) -> aiohttp.ClientSession:
        # Each page has its own session, so that pages share no cookie and no connection.
        return aiohttp.ClientSession(
            connector=_GuardedConnector(self._resolver, self._allowed),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            trust_env=False,
        )


class PageResolver(AbstractResolver):
    """Resolves the host names of web pages one at a time, in a worker thread.

    Pages don't use the resolver of the event loop, because a slow name server would then also delay
    the connections to models.
    """

    def __init__(self, threads: anyio.CapacityLimiter | None = None) -> None:
        """`threads` limits the worker threads; None for the limit that all blocking work shares. A
        look-up that is cancelled occupies its thread until the name server answers."""
        self._one = anyio.Lock()
        self._threads = threads

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        look_up = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
        async with self._one:
            found = await anyio.to_thread.run_sync(
                look_up, abandon_on_cancel=True, limiter=self._threads
            )
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Does nothing, because there is nothing to close."""


class _NotPublic(OSError):
    """Raised if Hermes is not allowed to connect to an address."""


class _GuardedConnector(aiohttp.TCPConnector):
    """Opens sockets to allowed addresses only, and checks the peer address again afterwards."""

    def __init__(self, resolver: AbstractResolver | None, allowed: IsAllowed) -> None:
        self._allowed = allowed
        super().__init__(
            resolver=resolver, use_dns_cache=False, force_close=True, socket_factory=self._socket
        )

    def _socket(self, target: aiohttp.AddrInfoType) -> socket.socket:
        # `connect` uses this numeric address, so that no second look-up can return another address.
        family, kind, protocol, _, address = target
        self._check(address)
        return socket.socket(family, kind, protocol)

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> aiohttp.connector.Connection:
        connection = await super().connect(req, traces, timeout)
        transport = connection.transport
        try:
            self._check(transport.get_extra_info("peername") if transport else None)
        except _NotPublic as error:
            connection.close()
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        return connection

    def _check(self, address: tuple[Any, ...] | None) -> None:
        if address is None or not self._allowed(address[0], address[1]):
            raise _NotPublic("not a public address")


async def _follow(
    session: aiohttp.ClientSession,
    url: URL,
    read: Callable[[aiohttp.ClientResponse], Awaitable[T]],
) -> T:
    for _ in range(REDIRECTS + 1):
        async with session.get(url, allow_redirects=False) as response:
            location = response.headers.get("Location")
            if response.status not in _MOVED or location is None:
                return await read(response)
        url = _parsed(location, url)
    raise ToolFailed(
        f"{_short(str(url))} was not read, because it comes after more than {REDIRECTS} redirects."
    )


async def _read(response: aiohttp.ClientResponse) -> WebPage:
    url, media_type = str(response.url), response.content_type
    if response.status != 200:
        raise ToolFailed(f"{_short(url)} answered with status {response.status}.")
    if not _is_text(media_type):
        raise ToolFailed(f"{_short(url)} is {_short(media_type)}; only text can be read.")
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > LARGEST_PAGE:
            break
    text = _decoded(bytes(body[:LARGEST_PAGE]), response.charset)
    return WebPage(url=url, media_type=media_type, text=text, cut=len(body) > LARGEST_PAGE)


async def _file(limit: int, response: aiohttp.ClientResponse) -> WebFile:
    url = str(response.url)
    if response.status != 200:
        raise ToolFailed(f"{_short(url)} answered with status {response.status}.")
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > limit:
            raise ToolFailed(f"{_short(url)} is larger than {limit} bytes.")
    return WebFile(media_type=response.content_type.lower(), data=bytes(body))


def _is_text(media_type: str) -> bool:
    return (
        media_type.startswith("text/")
        or media_type in _TEXTUAL
        or media_type.endswith(("+json", "+xml"))
    )


def _decoded(body: bytes, charset: str | None) -> str:
    """Returns the decoded text. The byte order mark names the encoding. Without this mark, the
    header names it, and without the header the `<meta>` element. The default is UTF-8."""
    for mark, encoding in _MARKS:
        if body.startswith(mark):
            return body.decode(encoding, errors="replace")
    if charset is None and (meta := _META.search(body[:1024])):
        charset = meta[1].decode("ascii")
    try:
        return body.decode(_known(charset), errors="replace")
    except LookupError:
        return body.decode("utf-8", errors="replace")


def _known(charset: str | None) -> str:
    return charset if charset and _CHARSET.fullmatch(charset) else "utf-8"


def _parsed(text: str, base: URL | None = None) -> URL:
    """Returns the absolute URL of a web page. A relative URL is resolved against `base`. Raises
    ToolFailed if the text is not a web URL."""
    if len(text) > LONGEST_URL:
        raise ToolFailed(f"{_short(text)} is longer than {LONGEST_URL} characters.")
    try:
        url = URL(text.strip())
        url = base.join(url) if base else url
    except ValueError as error:
        raise ToolFailed(f"{_short(text)} is not a URL: {_short(str(error))}.") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolFailed(f"{_short(text)} is not a web page: give its full address with https://.")
    if url.raw_user is not None or url.raw_password is not None:
        raise ToolFailed(f"{_short(text)} contains a user name or a password: leave them out.")
    return url


def _reason(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return "has a certificate that can't be trusted"
        case aiohttp.ClientConnectorError(os_error=_NotPublic()):
            return "leads to a place that is not on the public web, and was not visited"
        case aiohttp.ClientConnectorError(os_error=trouble):
            return f"can't be reached: {trouble}"
        case _:
            return f"can't be read: {type(error).__name__}"


def _short(text: str) -> str:
    return repr(text if len(text) <= QUOTED else text[: QUOTED - 1] + "…")
