"""The requests of a proxy's clients are parsed or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.boundary.proxy_requests import ProxyRefusal, parse_head, refusal_reply


def parsed(*lines: str) -> tuple[str, int, list[str]]:
    found = parse_head("\r\n".join([*lines, "", ""]).encode("latin-1"))
    return found.host, found.port, found.head.decode("latin-1").split("\r\n")


@pytest.mark.parametrize(
    ("target", "host", "port"),
    [
        ("example.org:443", "example.org", 443),
        ("Example.org.:443", "example.org", 443),
        ("[2606:4700::1]:443", "2606:4700::1", 443),
        ("93.184.216.34:8443", "93.184.216.34", 8443),
    ],
)
def test_connect_names_a_host_and_a_port(target: str, host: str, port: int) -> None:
    assert parsed(f"CONNECT {target} HTTP/1.1", f"Host: {target}") == (host, port, [""])


def test_a_request_with_an_absolute_url_is_rewritten_for_the_server() -> None:
    host, port, head = parsed(
        "GET http://Example.org:8080/a?b=c HTTP/1.0",
        "Host: other.example",
        "Accept: */*",
        "Proxy-Authorization: Basic x",
        "Connection: keep-alive",
    )
    assert (host, port) == ("example.org", 8080)
    assert head == [
        "GET /a?b=c HTTP/1.1",
        "Host: example.org:8080",
        "Connection: close",
        "Accept: */*",
        "",
        "",
    ]


def test_a_url_without_a_port_and_a_path_gets_the_defaults() -> None:
    assert parsed("GET http://example.org HTTP/1.1")[1:] == (
        80,
        ["GET / HTTP/1.1", "Host: example.org", "Connection: close", "", ""],
    )
    assert parsed("GET http://[2606::1]/ HTTP/1.1")[2][1] == "Host: [2606::1]"


@pytest.mark.parametrize(
    "lines",
    [
        ("GET / HTTP/1.1", "Host: example.org"),
        ("GET https://example.org/ HTTP/1.1",),
        ("GET ftp://example.org/ HTTP/1.1",),
        ("CONNECT example.org HTTP/1.1",),
        ("CONNECT example.org:x HTTP/1.1",),
        ("CONNECT example.org:99999 HTTP/1.1",),
        ("CONNECT :443 HTTP/1.1",),
        ("CONNECT [::1:443 HTTP/1.1",),
        ("CONNECT exa%6dple.org:443 HTTP/1.1",),
        ("CONNECT exämple.org:443 HTTP/1.1",),
        ("GET http:///path HTTP/1.1",),
        ("SSH-2.0-OpenSSH",),
        ("",),
        ("GET http://example.org/ HTTP/1.1", "Accept: a", " Host: other.example"),
        ("GET http://example.org/ HTTP/1.1", "Host : other.example"),
        ("GET http://example.org/ HTTP/1.1", "other.example"),
        ("GET http://example.org/ HTTP/1.1", "Accept: a\nHost: other.example"),
    ],
)
def test_other_requests_are_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(ProxyRefusal) as raised:
        parsed(*lines)
    assert raised.value.status == 400


@given(st.binary(max_size=200))
def test_any_request_line_is_parsed_or_refused(data: bytes) -> None:
    for head in (data, b"CONNECT " + data + b" HTTP/1.1", b"GET http://" + data + b" HTTP/1.1"):
        try:
            found = parse_head(head)
        except ProxyRefusal:
            continue
        assert found.host
        assert 0 < found.port < 65536


def test_the_reason_is_in_the_first_line_and_in_the_body() -> None:
    reply = refusal_reply(ProxyRefusal(403, "terminal.network does not allow ä.org")).decode()
    first, _, rest = reply.partition("\r\n")
    assert first == "HTTP/1.1 403 Forbidden: terminal.network does not allow ?.org"
    assert rest.endswith("\r\n\r\nForbidden: terminal.network does not allow ?.org\n")
