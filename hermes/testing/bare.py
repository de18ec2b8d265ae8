"""HTTP over a plain socket: for requests that client libraries refuse to send, and for parts of a
response that client libraries do not show."""

import anyio

from hermes.testing.service import SERVICE_KEY


async def request(
    port: int, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Sends one request over a plain socket. Returns the status, the headers and the decoded
    body."""
    given = {"host": "127.0.0.1", "authorization": f"Bearer {SERVICE_KEY}", "connection": "close"}
    lines = {**given, **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    stream = await anyio.connect_tcp("127.0.0.1", port)
    async with stream:
        await stream.send(
            f"{method} {path} HTTP/1.1\r\n{head}content-length: {len(body)}\r\n\r\n".encode() + body
        )
        data = b""
        try:
            while True:
                data += await stream.receive()
        except anyio.EndOfStream:
            pass
    top, _, rest = data.partition(b"\r\n\r\n")
    first, *others = top.decode("latin-1").split("\r\n")
    found = {name.lower(): value for name, _, value in (line.partition(": ") for line in others)}
    chunked = found.get("transfer-encoding") == "chunked"
    return int(first.split()[1]), found, unchunked(rest) if chunked else rest


def unchunked(data: bytes) -> bytes:
    whole = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        count = int(size or b"0", 16)
        whole, data = whole + data[:count], data[count + 2 :]
    return whole
