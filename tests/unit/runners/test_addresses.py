"""Where a request may go (S9)."""

from ipaddress import ip_address

import pytest

from everytick.errors import InvalidPolicies
from everytick.runners.addresses import AddressRules, Forbidden, Unresolved

HIDDEN = [
    "127.0.0.1",
    "127.8.9.10",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.5.5",
    "192.168.1.1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "224.0.1.1",
    "239.1.1.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff0e::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2001:0:7f00:1::1",
]


@pytest.mark.parametrize("address", HIDDEN)
def test_what_is_not_the_public_internet_is_refused(address: str) -> None:
    with pytest.raises(Forbidden, match="not on the public internet"):
        AddressRules().check("host", ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_the_public_internet_is_allowed(address: str) -> None:
    AddressRules().check("host", ip_address(address))


def test_a_node_may_allow_more() -> None:
    rules = AddressRules(["10.1.0.0/16", "127.0.0.1", "fd00::/8"])

    rules.check("host", ip_address("10.1.2.3"))
    rules.check("host", ip_address("127.0.0.1"))
    rules.check("host", ip_address("fd00:ec2::254"))
    for still in ("10.2.0.1", "127.0.0.2", "fe80::1"):
        with pytest.raises(Forbidden):
            rules.check("host", ip_address(still))


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0177.0.0.1", "0x7f.1", "127.1", "0", "localhost", "::1"])
async def test_every_way_to_write_this_machine_is_refused(host: str) -> None:
    """S9: decimal, octal and short forms are resolved as the system resolves them, and then looked at."""
    with pytest.raises(Forbidden):
        await AddressRules().resolve(host, 80)


async def test_a_name_that_means_nothing_says_so() -> None:
    with pytest.raises(Unresolved, match="was not found"):
        await AddressRules().resolve("no-such-host.invalid", 80)
    with pytest.raises(Unresolved, match="was not found"):
        await AddressRules().resolve("a" * 300, 80)


def test_a_network_that_is_none_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidPolicies, match="is not a network"):
        AddressRules(["10.1.0.5/16"])
