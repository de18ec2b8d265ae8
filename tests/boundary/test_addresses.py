"""An address is public or private, in every notation."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.boundary.addresses import is_public

words = str.split
PUBLIC = words("""
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255
128.0.0.0 168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0
191.255.255.255 192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0
198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255
2606:4700::1111 2001:200::1 2001:4860:4860::8888 2003::1 2a00:1450:4001::1 3ffe::1
::ffff:8.8.8.8 ::ffff:808:808 64:ff9b::8.8.8.8
""")
NOT_PUBLIC = words("""
0.0.0.0 0.1.2.3 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255
127.0.0.0 127.0.0.1 127.255.255.255 168.63.129.16 169.254.0.0 169.254.169.254 169.254.255.255
172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.192 192.0.0.255 192.0.2.0 192.0.2.255 192.88.99.1
192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255 203.0.113.0
203.0.113.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.254 255.255.255.255
:: ::1 ::2 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0
::127.0.0.1 ::8.8.8.8 ::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::a9fe:a9fe
64:ff9b:1::8.8.8.8 64:ff9b:1:ffff::1 100::1 1fff::1 2001::1 2001:0:7f00:1:: 2001:2::1 2001:10::1
2001:20::1 2001:1ff:ffff::1 2001:db8::1 2001:db8:ffff::1 2002:: 2002:7f00:1:: 2002:808:808::1
3fff::1 3fff:fff::1 4000::1 5f00::1 8000::1 fc00::1 fd00::1 fd00:ec2::254 fe80::1 febf::1 fec0::1
feff::1 ff00::1 ff02::1 ff0e::1
fe80::1%eth0 fe80::1%1 2606:4700::1111%eth0 ::ffff:8.8.8.8%1
""")
NO_ADDRESSES = ["", "localhost", "127.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "1.1.1.1 ",
                "1.1.1.1.", "8.8.8.08", "[::1]", "1.1.1.1/32", "１.1.1.1", "8.8.8.8\n"]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_a_global_unicast_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", [*NOT_PUBLIC, *NO_ADDRESSES])
def test_no_other_address_is_public(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses())
def test_an_address_that_python_calls_local_is_not_public(
    address: IPv4Address | IPv6Address,
) -> None:
    local = address.is_private or address.is_loopback or address.is_link_local
    if local or address.is_multicast or address.is_reserved or address.is_unspecified:
        assert not is_public(str(address)) or carries_public(address)


def carries_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return False
    return address in (
        ip_address(f"64:ff9b::{last(address)}"),
        ip_address(f"::ffff:{last(address)}"),
    )


def last(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_inside_an_ipv6_address_is_checked_itself(
    address: IPv4Address | IPv6Address,
) -> None:
    alone = is_public(str(address))
    assert is_public(f"::ffff:{address}") == alone
    assert is_public(f"64:ff9b::{address}") == alone
    assert not is_public(f"::{address}")
