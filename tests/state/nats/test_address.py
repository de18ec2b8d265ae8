"""The address of NATS is read, and errors do not quote its password."""

import pytest

from hermes.state.nats.address import NatsAddress, nats_addresses
from hermes.types.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("nats://host", NatsAddress(host="host", port=4222)),
        ("nats://host:5000/", NatsAddress(host="host", port=5000)),
        ("nats://[::1]:5000", NatsAddress(host="::1", port=5000)),
        ("nats://a:p%40%2Fw@host", NatsAddress(host="host", user="a", password="p@/w")),
        ("nats://a%20b@host", NatsAddress(host="host", token="a b")),
    ],
)
def test_host_port_and_credentials_are_read(url: str, address: NatsAddress) -> None:
    assert nats_addresses(url) == [address]


def test_several_servers_are_separated_by_commas() -> None:
    found = nats_addresses("nats://a:1, nats://u:p@b:2")
    assert [one.place for one in found] == ["a:1", "b:2"]
    assert [one.password for one in found] == [None, "p"]


@pytest.mark.parametrize(
    "url",
    [
        "nats://hermes:secret-word/part@host",
        "nats://hermes:secret-word@",
        "nats://hermes:secret-word@host:port",
        "nats://hermes:secret-word@host:99999",
        "nats://hermes:secret-word@[host",
        "nats://hermes:secret,word@host",
        "nats://host?password=secret-word",
        "hermes:secret-word@host",
        "secret-word",
        "",
    ],
)
def test_an_address_that_cannot_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(ConfigError, match=r"bus\.url can't be read: .*nats://") as raised:
        nats_addresses(url)
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("scheme", ["redis", "tls", "ws", "postgresql"])
def test_an_unknown_scheme_is_named(scheme: str) -> None:
    with pytest.raises(ConfigError, match=rf"begins with '{scheme}'.*use nats://") as raised:
        nats_addresses(f"{scheme}://hermes:secret-word@host")
    assert "secret" not in str(raised.value)


def test_an_address_shows_no_credentials() -> None:
    (address,) = nats_addresses("nats://hermes:secret-word@host")
    assert "secret" not in f"{address!r} {address.place} {address.url}"
