"""Outgoing requests reach only public addresses, no matter which URL is requested, what a name
server answers, and where a page redirects."""

import gzip
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import anyio
import anyio.to_thread
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_reqrep import ConnectionKey

from hermes.boundary.egress import (
    LARGEST_PAGE,
    LONGEST_URL,
    REDIRECTS,
    Egress,
    IsAllowed,
    PageResolver,
    _reason,
    may_reach,
)
from hermes.testing.sites import Site, answer, serving
from hermes.types.errors import Rejected, ToolFailed

HERE = ("127.0.0.1", "::1")
words = str.split
NUMBERS = words("""
127.0.0.1 127.0.0.1. 127.1 127.0.1 127.0.0.2 127.255.255.254 127.127.127.127 0177.0.0.1 0177.0.0.01
0177.1 00000177.0.0.1 0x7f.0.0.1 0x7f.1 0x7f.0x0.0x0.0x1 0X7F000001 0x7f000001 2130706433
017700000001 127.0x1 127.0.0.0x1 0 0. 00 0x0 0.0 0.0.0.0 0.0.0.1 0.0.0.0. 2130706434
１２７.0.0.1 １２７．０．０．１ 127。0。0。1 127．0．0．1 127｡0｡0｡1
①②⑦.⓪.⓪.① ⑫7.0.0.1 𝟙𝟚𝟟.𝟘.𝟘.𝟙 ٠.٠.٠.٠
127.0.0.1%00 %31%32%37.0.0.1 %31%32%37%2e0%2e0%2e1 127.0.0.1%20 127.0.0.1%2f
10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.1.254 169.254.169.254
169.254.170.2 100.64.0.1 100.100.100.200 192.0.0.1 192.0.0.192 192.0.2.1 198.18.0.1 198.19.255.255
198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 168.63.129.16
192.88.99.1 2852039166 0xa9fea9fe 0xa9.0xfe.0xa9.0xfe 0251.0376.0251.0376 3232235521 167772161
[::1] [0:0:0:0:0:0:0:1] [::0001] [0000:0000:0000:0000:0000:0000:0000:0001] [::] [::2]
[::ffff:127.0.0.1] [::FFFF:7F00:1] [0:0:0:0:0:ffff:127.0.0.1] [::ffff:127.1] [::ffff:10.0.0.1]
[::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [::ffff:0.0.0.0] [::ffff:0:127.0.0.1] [::127.0.0.1]
[::7f00:1] [::169.254.169.254] [::10.0.0.1] [::8.8.8.8] [64:ff9b::127.0.0.1] [64:ff9b::7f00:1]
[64:ff9b::a9fe:a9fe] [64:ff9b::10.0.0.1] [64:ff9b:1::127.0.0.1] [64:ff9b:1::8.8.8.8]
[64:ff9b:1:fffe::1] [2002:7f00:1::] [2002:7f00:1::1] [2002:a9fe:a9fe::] [2002:c0a8:1::1]
[2002:a00:1::] [2002:808:808::1] [2001::] [2001:0:7f00:1::] [2001:0:4136:e378:8000:63bf:80ff:fffe]
[2001:2::1] [2001:10::1] [2001:20::1] [2001:db8::1] [3fff::1] [5f00::1] [100::1] [4000::1] [fc00::1]
[fd00::1] [fd00:ec2::254] [fe80::1] [fe80::1%25lo] [fe80::1%25eth0] [fe80::1%lo] [::1%25lo]
[febf::1] [fec0::1] [ff01::1] [ff02::1] [ff0e::1]
""")
NAMES = words("""
localhost LOCALHOST LocalHost localhost. localhost.. foo.localhost a.b.localhost
localhost.localdomain localhost6 ip6-localhost ip6-loopback broadcasthost metadata
instance-data metadata.google.internal metadata.azure.internal
kubernetes.default.svc router fritz.box printer.local ⓛⓞⓒⓐⓛⓗⓞⓢⓣ ｌｏｃａｌｈｏｓｔ
%6c%6f%63%61%6c%68%6f%73%74 loc%61lhost loopback.example 127.0.0.1.nip.example
localtest.example _under_score.example under_score.example - -a.example
xn--lcalhost-9ya.example bücher.example ˡocalhost a.example:0 rebind.example
""")
OTHER = words("""
http://public.example@{host}:{port}/ http://public.example:80@{host}:{port}/
http://{host}:{port}@public.example/ http://user:secret@{host}:{port}/ http://user@{host}:{port}/
http://:@{host}:{port}/ http://@{host}:{port}/ http://a@b@{host}:{port}/ http://{host}%40x:{port}/
http://public.example%2f@{host}:{port}/ http://public.example\\@{host}:{port}/
http://public.example\\.{host}:{port}/ http://{host}:{port}\\@public.example/
http://public.example#@{host}:{port}/ http://public.example?@{host}:{port}/
http://public.example/@{host}:{port}/ http://public.example;@{host}:{port}/
http://{host}:{port}#public.example http://{host}:{port}?public.example http://{host}:{port}
http:///{host}:{port}/ http:////{host}:{port}/ http:/{host}:{port}/ http:{host}:{port}/
http:\\\\{host}:{port}\\ https:{host}:{port} https:///{host}:{port}/ //{host}:{port}/ {host}:{port}
HTTP://{host}:{port}/ hTTps://{host}:{port}/ file:///etc/passwd file://{host}/etc/passwd
file:/etc/passwd gopher://{host}:{port}/_GET dict://{host}:{port}/info ftp://{host}:{port}/
tftp://{host}:{port}/ ldap://{host}:{port}/ sftp://{host}:{port}/ ws://{host}:{port}/
wss://{host}:{port}/ tcp://{host}:{port}/ unix:///var/run/docker.sock http+unix://%2Fvar%2Frun/
jar:http://{host}:{port}!/ netdoc:///etc/passwd data:text/html,hello javascript:alert(1) about:blank
blob:http://{host}:{port}/1 view-source:http://{host}:{port}/ url:http://{host}:{port}/
feed:http://{host}:{port}/ http://{host}:22/ http://{host}:25/ http://{host}:0/ http://{host}:65536/
http://{host}:-1/ http://{host}:{port}0000/ http://{host}:+{port}/ http://[{host}]:{port}/
http://{host}]:{port}/ http://[::1:{port}/ http:// https:// http://: http://? http://# : / ? ..
http://public.example:22/ http://public.example:6379/ http://public.example:25/
""")
SPACED = [
    "", " ", "\n", "\0", "http://{host}\t:{port}/", "ht\ntp://{host}:{port}/", " http://{host}:{port}/",
    "http://{host}\n:{port}/", "http://{host}:{port}/\r\nHost: x", "http://{host} :{port}/",
    "http://public.example {host}:{port}/", "http://\0{host}:{port}/", "http://{host}\0.example:{port}/",
    "http://\u200b{host}:{port}/", "http://{host}\u00ad:{port}/", "http://\ud800:{port}/",
    "http://" + "a" * 64 + ".example:{port}/", "http://" + "a." * 200 + "example:{port}/",
    "http://{host}:{port}/" + "x" * LONGEST_URL,
]  # fmt: skip


class Names(AbstractResolver):
    """A resolver that returns the prepared addresses of a name, one answer after the other. For a
    numeric host such as `0x7f.1`, it returns the address that the C library reads from the host.
    For every other name, it returns the address of this machine."""

    def __init__(self, **told: Sequence[Sequence[str]]) -> None:
        self._told = {f"{name}.example": list(lists) for name, lists in told.items()}
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: int = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self._addresses(host)
        ]

    async def close(self) -> None:
        pass

    def _addresses(self, host: str) -> Sequence[str]:
        if told := self._told.get(host):
            return told.pop(0) if len(told) > 1 else told[0]
        try:
            found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
        except (OSError, UnicodeError):
            return HERE
        return [str(address[0]) for *_, address in found]


def hostile(port: int) -> list[str]:
    """Returns URLs that name this machine or another private address, in all known notations."""
    hosts = [*NUMBERS, *NAMES]
    plain = [f"http://{host}:{port}/" for host in hosts]
    secure = [f"https://{host}:{port}/latest/meta-data/" for host in hosts]
    patterns = [*OTHER, *SPACED]
    return plain + secure + [one.format(host="127.0.0.1", port=port) for one in patterns]


def lets(*sites: Site) -> IsAllowed:
    """Returns a rule that allows the same addresses as the gateway's rule, and the addresses of
    these sites."""
    places = {(site.host, site.port) for site in sites}
    return lambda address, port: (address, port) in places or may_reach(address, port)


def only(site: Site) -> Egress:
    return Egress(Names(public=[["127.0.0.1"]]), lets(site))


@asynccontextmanager
async def forbidden() -> AsyncIterator[list[Site]]:
    """Yields servers on this machine that no request may reach: two pairs, each with a server for
    IPv4 and a server for IPv6 on the same port."""
    async with AsyncExitStack() as stack:
        sites: list[Site] = []
        while len(sites) < 4:
            first = await stack.enter_async_context(serving({"/": answer("secret")}))
            try:
                second = serving({"/": answer("secret")}, host="::1", port=first.port)
                sites += [first, await stack.enter_async_context(second)]
            except OSError:
                continue  # another program uses this port in the other address family
        yield sites


async def reason(egress: Egress, url: str) -> str:
    with pytest.raises(ToolFailed) as failed:
        await egress.fetch(url)
    return str(failed.value)


async def test_no_url_reaches_a_private_address() -> None:
    async with forbidden() as sites:
        urls = {url for site in sites for url in hostile(site.port)}
        reasons = [await reason(Egress(Names()), url) for url in sorted(urls)]
    assert len(urls) > 800
    assert [site.accepted for site in sites] == [0, 0, 0, 0]
    assert not [one for one in reasons if "can't be reached" in one], "none was even tried"


async def test_no_redirect_reaches_a_private_address() -> None:
    async with forbidden() as sites:
        urls = [url for url in hostile(sites[0].port) if url.isprintable()]
        moved = {
            f"/{number}": answer(status=302, headers={"Location": url})
            for number, url in enumerate(urls)
        }
        async with serving(moved) as public:
            start = f"http://public.example:{public.port}"
            reasons = [
                await reason(only(public), f"{start}/{number}") for number in range(len(urls))
            ]
    assert len(urls) > 400
    assert public.accepted >= len(urls)
    assert [site.accepted for site in sites] == [0, 0, 0, 0]
    assert not [one for one in reasons if "can't be reached" in one]


async def test_without_the_check_of_addresses_the_listeners_would_have_been_reached() -> None:
    async with forbidden() as sites:
        open_door = Egress(Names(), lambda address, port: True)
        for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "１２７。1.example"):
            assert (await open_door.fetch(f"http://{host}:{sites[0].port}/")).text == "secret"
    assert sum(site.accepted for site in sites) == 5


async def test_a_name_that_changes_its_address_is_looked_up_once_for_each_connection() -> None:
    async with forbidden() as [first, second, *_]:
        names = Names(rebind=[["127.0.0.1"], ["::1"]])
        egress = Egress(names, lets(first))
        url = f"http://rebind.example:{first.port}/"
        assert (await egress.fetch(url)).text == "secret"
        assert names.asked == ["rebind.example"]
        assert "not on the public web" in await reason(egress, url)
        assert second.accepted == 0


async def test_a_redirect_to_the_same_name_is_looked_up_and_checked_again() -> None:
    async with forbidden() as [_, inside, *_]:
        again = {"/": answer(status=307, headers={"Location": "/again"})}
        async with serving(again, host="::1") as public:
            names = Names(rebind=[["::1"], ["127.0.0.1"]])
            told = await reason(
                Egress(names, lets(public)), f"http://rebind.example:{public.port}/"
            )
    assert "not on the public web" in told
    assert names.asked == ["rebind.example"] * 2
    assert inside.accepted == 0


@pytest.mark.parametrize("addresses", [HERE, HERE[::-1], ("10.0.0.1", "127.0.0.1", "::1")])
async def test_of_several_addresses_only_the_public_one_is_used(addresses: Sequence[str]) -> None:
    async with forbidden() as [first, second, *_]:
        egress = Egress(Names(mixed=[addresses]), lets(first))
        page = await egress.fetch(f"http://mixed.example:{first.port}/")
        assert page.text == "secret"
        assert (first.accepted, second.accepted) == (1, 0)


async def test_a_connection_to_a_wrong_peer_is_dropped_before_anything_is_sent() -> None:
    async with serving({"/": answer("secret")}) as site:
        egress = Egress(Names(), lambda address, port: address == "0.0.0.0")
        assert "not on the public web" in await reason(egress, f"http://0.0.0.0:{site.port}/")
    assert site.heard == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://me:secret@public.example:{port}/", "contains a user name or a password"),
        ("http://me@public.example:{port}/", "contains a user name or a password"),
        ("ftp://public.example:{port}/", "give its full address with https"),
        ("public.example:{port}", "give its full address with https"),
        ("http://[public.example:{port}/", "is not a URL"),
        ("http://public.example:{port}/" + "x" * LONGEST_URL, f"longer than {LONGEST_URL}"),
    ],
)
async def test_a_url_with_a_password_or_without_http_is_not_visited(
    url: str, expected: str
) -> None:
    async with serving({}) as public:
        told = await reason(only(public), url.format(port=public.port))
    assert expected in told
    assert len(told) < 400
    assert public.accepted == 0


@pytest.mark.parametrize(
    ("port", "expected"),
    [(80, True), (443, True), (8080, True), (8443, True), (1024, True), (65535, True), (0, False)]
    + [(port, False) for port in (21, 22, 23, 25, 53, 110, 587, 993, 3306, 5432, 6379, 11211)],
)
def test_only_ports_of_web_servers_are_visited(port: int, expected: bool) -> None:
    assert may_reach("1.1.1.1", port) is expected
    assert not may_reach("127.0.0.1", port)


async def test_a_page_is_returned_with_its_final_address() -> None:
    answers = {
        "/old": answer(status=301, headers={"Location": "new?x=1#part"}),
        "/new": answer("<p>Grüße", headers={"Set-Cookie": "a=1"}),
    }
    async with serving(answers) as public:
        page = await only(public).fetch(f" http://public.example:{public.port}/old ")
    assert page.url == f"http://public.example:{public.port}/new?x=1"
    assert (page.media_type, page.text, page.cut) == ("text/html", "<p>Grüße", False)


async def test_requests_have_only_the_usual_headers_and_use_no_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = {
        "/a": answer(status=302, headers={"Location": "/b", "Set-Cookie": "a=1; Path=/"}),
        "/b": answer("b"),
    }
    async with serving(answers) as public, serving({}) as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await only(public).fetch(f"http://public.example:{public.port}/a")
    names = {
        line.split(b":")[0].lower() for head in public.heard for line in head.split(b"\r\n")[1:]
    }
    assert names == {b"host", b"user-agent", b"accept", b"accept-encoding", b"connection", b""}
    assert proxy.accepted == 0


async def test_the_number_of_redirects_is_limited() -> None:
    def hops(count: int) -> dict[str, bytes]:
        moved = {
            f"/{number}": answer(status=303, headers={"Location": f"/{number + 1}"})
            for number in range(count)
        }
        return {**moved, f"/{count}": answer("there")}

    async with serving(hops(REDIRECTS)) as public:
        page = await only(public).fetch(f"http://public.example:{public.port}/0")
        assert page.text == "there"
    async with serving(hops(REDIRECTS + 1)) as public:
        told = await reason(only(public), f"http://public.example:{public.port}/0")
        assert "more than 5 redirects" in told


@pytest.mark.parametrize("packed", [False, True])
async def test_a_page_is_read_up_to_a_limit(packed: bool) -> None:
    body = b"x" * (LARGEST_PAGE + 100_000_000 * packed + 1)
    headers = {"Content-Encoding": "gzip"} if packed else {}
    data = gzip.compress(body, 1) if packed else body
    async with serving({"/": answer(data, media_type="text/plain", headers=headers)}) as public:
        page = await only(public).fetch(f"http://public.example:{public.port}/")
    assert page.cut
    assert len(page.text) == LARGEST_PAGE


async def test_the_part_of_a_page_after_the_limit_is_not_read() -> None:
    endless = answer(
        b"x" * (LARGEST_PAGE + 100_000), headers={"Content-Length": str(10 * LARGEST_PAGE)}
    )
    async with serving({"/": endless}) as public:
        page = await only(public).fetch(f"http://public.example:{public.port}/")
    assert page.cut


async def test_a_page_of_exactly_the_limit_is_read_completely() -> None:
    async with serving({"/": answer(b"x" * LARGEST_PAGE, media_type="text/plain")}) as public:
        page = await only(public).fetch(f"http://public.example:{public.port}/")
    assert not page.cut


@pytest.mark.parametrize(
    "media_type",
    ["application/pdf", "image/png", "application/octet-stream", "application/zip", "nonsense"],
)
async def test_a_page_that_is_not_text_is_refused(media_type: str) -> None:
    async with serving({"/": answer("%PDF", media_type=media_type)}) as public:
        told = await reason(only(public), f"http://public.example:{public.port}/")
    assert told.endswith("only text can be read.")


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "text/markdown", "application/json", "application/ld+json", "application/xml",
     "application/rss+xml", "application/xhtml+xml"],
)  # fmt: skip
async def test_a_text_page_is_read(media_type: str) -> None:
    async with serving({"/": answer("{}", media_type=media_type)}) as public:
        page = await only(public).fetch(f"http://public.example:{public.port}/")
    assert (page.media_type, page.text) == (media_type, "{}")


@pytest.mark.parametrize(
    ("media_type", "body", "text"),
    [
        ("text/html; charset=iso-8859-1", "Grüße".encode("latin-1"), "Grüße"),
        ("text/html; charset=shift_jis", "日本".encode("shift_jis"), "日本"),
        ("text/html", '<meta charset="windows-1251">Привет'.encode("cp1251"), "Привет"),
        ("text/html", "\ufeffhé".encode("utf-16"), "hé"),
        ("text/html; charset=latin-1", "hé".encode("utf-8-sig"), "hé"),
        ("text/html; charset=punycode", b"h\xc3\xa9-", "hé-"),
        ("text/html; charset=windows-9999", "hé".encode(), "hé"),
        ("text/html", b"h\xff", "h\ufffd"),
    ],
)
async def test_pages_are_read_in_their_charset(media_type: str, body: bytes, text: str) -> None:
    async with serving({"/": answer(body, media_type=media_type)}) as public:
        page = await only(public).fetch(f"http://public.example:{public.port}/")
    assert page.text.endswith(text)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (answer(status=404), "answered with status 404"),
        (answer(status=302), "answered with status 302"),
        (b"nonsense\r\n\r\n", "can't be read"),
        (answer(b"x", headers={"Content-Length": "9"}), "can't be read"),
        (answer(b"no gzip at all", headers={"Content-Encoding": "gzip"}), "can't be read"),
        (b"", "did not answer in time"),
    ],
)  # fmt: skip
async def test_each_error_is_one_sentence(said: bytes, expected: str) -> None:
    async with serving({"/": said}) as public:
        names = Names(public=[["127.0.0.1"]])
        egress = Egress(names, lets(public), seconds=5.0 if said else 0.05)
        told = await reason(egress, f"http://public.example:{public.port}/")
    assert told.startswith(f"'http://public.example:{public.port}/' ")
    assert expected in told


async def test_the_error_for_a_missing_server_is_one_sentence() -> None:
    async with serving({}) as public:
        egress = only(public)
        url = f"http://public.example:{public.port}/"
    assert "can't be reached" in await reason(egress, url)


def test_the_error_for_a_bad_certificate_is_one_sentence() -> None:
    key = ConnectionKey("public.example", 443, True, True, None, None, None)
    error = aiohttp.ClientConnectorCertificateError(key, ValueError("self-signed"))
    assert _reason(error) == "has a certificate that can't be trusted"


async def test_visiting_stops_when_it_is_cancelled() -> None:
    async with serving({"/": b""}) as public:
        with anyio.move_on_after(0.05) as scope:
            await only(public).fetch(f"http://public.example:{public.port}/")
    assert scope.cancelled_caught
    assert public.accepted == 1


async def not_downloaded(egress: Egress, url: str, limit: int = 100) -> str:
    with pytest.raises(Rejected) as failed:
        await egress.download(url, limit)
    return str(failed.value)


async def test_a_file_is_downloaded_with_its_type() -> None:
    moved = answer(status=302, headers={"Location": "/b.png"})
    file = answer(b"\x89PNG\0", media_type="Image/PNG; x=1")
    async with serving({"/a": moved, "/b.png": file}) as public:
        found = await only(public).download(f"http://public.example:{public.port}/a", 5)
    assert (found.media_type, found.data) == ("image/png", b"\x89PNG\0")


@pytest.mark.parametrize("packed", [False, True])
async def test_a_file_over_the_limit_is_not_read_to_its_end(packed: bool) -> None:
    body = b"x" * 1_000_000
    headers = {"Content-Encoding": "gzip"} if packed else {"Content-Length": "9000000"}
    data = gzip.compress(body) if packed else body
    async with serving({"/": answer(data, headers=headers)}) as public:
        url = f"http://public.example:{public.port}/"
        assert "larger than 1000 bytes" in await not_downloaded(only(public), url, 1000)


async def test_no_download_reaches_a_private_address() -> None:
    async with forbidden() as sites:
        urls = {url for site in sites for url in hostile(site.port)}
        for url in sorted(urls):
            await not_downloaded(Egress(Names()), url)
    assert [site.accepted for site in sites] == [0, 0, 0, 0]


async def test_a_private_address_gives_the_same_error_as_an_address_that_does_not_answer() -> None:
    async with serving({"/": answer(b"x")}) as site:
        private = await not_downloaded(Egress(Names()), f"http://a.example:{site.port}/")
        nobody = Egress(Names(), lambda address, port: True)
    gone = await not_downloaded(nobody, f"http://a.example:{site.port}/")
    assert private == gone
    assert site.accepted == 0


async def test_the_error_of_a_download_contains_the_status_of_a_public_server() -> None:
    async with serving({"/slow": b""}) as public:
        url = f"http://public.example:{public.port}"
        assert "status 404" in await not_downloaded(only(public), f"{url}/none")
        hasty = Egress(Names(public=[["127.0.0.1"]]), lets(public), seconds=0.05)
        assert "did not answer in time" in await not_downloaded(hasty, f"{url}/slow")
        assert "not a web page" in await not_downloaded(only(public), "ftp://public.example/")


async def test_a_resolver_with_threads_of_its_own_does_not_wait_for_other_work() -> None:
    shared = anyio.to_thread.current_default_thread_limiter()
    before = shared.total_tokens
    shared.total_tokens = 1
    try:
        async with shared:
            with anyio.fail_after(60):
                (found,) = await PageResolver(anyio.CapacityLimiter(1)).resolve("127.0.0.1", 80)
    finally:
        shared.total_tokens = before
    assert found["host"] == "127.0.0.1"
