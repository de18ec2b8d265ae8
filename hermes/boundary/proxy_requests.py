"""Parses the requests that clients send to a proxy, and writes the answers of the proxy itself."""

import re
from urllib.parse import urlsplit

from hermes.types.errors import Rejected
from hermes.types.value import Value

LARGEST_HEAD = 65_536
"""Maximum number of bytes of a request line with its headers."""
HEAD_END = b"\r\n\r\n"
_REQUEST = re.compile(rb"([A-Z]{1,20}) (\S{1,32768}) HTTP/1\.[01]")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\]")
_HEADER = re.compile(rb"[\w!#$%&'*+.^`|~-]+:[^\r\n\0]*")
"""A header that all servers read in the same way. Other headers could hide a second `Host`."""
_DROPPED = (b"proxy-", b"connection:", b"keep-alive:", b"host:", b"upgrade:")
"""Headers that the proxy does not pass on. Some of these headers are meant for the proxy, and the
proxy sets the others itself."""
_REASONS = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway", 503: "Service Unavailable"}


class ProxyRefusal(Rejected):
    """A request that the proxy does not pass on. The text says why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ProxyRequest(Value):
    """The request of a client."""

    host: str
    """The host name in lower case, or an IP address without brackets."""
    port: int
    head: bytes
    """The head that is sent to the server; empty for CONNECT."""


def parse_head(head: bytes) -> ProxyRequest:
    """Reads the request line and the headers, which end with an empty line. Raises ProxyRefusal if
    the proxy can't pass the request on."""
    first, *headers = head.removesuffix(HEAD_END).split(b"\r\n")
    found = _REQUEST.fullmatch(first)
    if found is None or not all(map(_HEADER.fullmatch, headers)):
        raise ProxyRefusal(400, "this is not a request for an HTTP proxy")
    method, target = found[1], found[2].decode("latin-1")
    if method == b"CONNECT":
        host, port = _place(f"//{target}", None)
        return ProxyRequest(host=host, port=port, head=b"")
    if not target.lower().startswith("http://"):
        raise ProxyRefusal(400, "the address must begin with http://; use CONNECT for https")
    host, port = _place(target, 80)
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [line for line in headers if not line.lower().startswith(_DROPPED)]
    place = f"[{host}]" if ":" in host else host
    own = [f"Host: {place}{'' if port == 80 else f':{port}'}".encode(), b"Connection: close"]
    line = method + b" " + path.encode("latin-1") + b" HTTP/1.1"
    return ProxyRequest(host=host, port=port, head=b"\r\n".join([line, *own, *kept]) + HEAD_END)


def _place(url: str, usual: int | None) -> tuple[str, int]:
    """Returns the host and the port of the URL. `usual` is the port to use if the URL names no
    port; None if the URL must name one."""
    try:
        parts = urlsplit(url)
        port = parts.port or usual
        _, _, place = parts.netloc.rpartition("@")
    except ValueError:
        raise ProxyRefusal(400, "the address is not valid") from None
    host = place.partition("]")[0] + "]" if place.startswith("[") else place.partition(":")[0]
    if port is None or not _HOST.fullmatch(host):
        raise ProxyRefusal(400, "the address must name a host and a port")
    return host.strip("[]").lower().rstrip("."), port


def refusal_reply(refusal: ProxyRefusal) -> bytes:
    """Returns the answer to a request that the proxy does not pass on. Many clients show only the
    first line of an answer, so the reason is also in the first line."""
    text = f"{_REASONS[refusal.status]}: {refusal}"
    body = f"{text}\n".encode("ascii", "replace")
    lines = (
        f"HTTP/1.1 {refusal.status} {text}",
        "Content-Type: text/plain",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join(lines).encode("ascii", "replace") + HEAD_END + body
