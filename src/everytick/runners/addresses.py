"""Addresses: where a request may go.

A job's author may write any address, a name may resolve to any machine, and an answer may
redirect anywhere. Unless the node allows them, requests stay out of everything that is not
the public internet: the node's own machine, its network, and the services through which
clouds hand out credentials (threat model, S9).
"""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from everytick.errors import InvalidPolicies, shown

IpAddress: TypeAlias = IPv4Address | IPv6Address

# Written out rather than asked of `ipaddress`, whose answers differ between patch releases.
_HIDDEN = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",  # public by its number, and yet the way to the host of a virtual machine
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",
            "2001::/23",
            "2001:db8::/32",
            "3fff::/20",
        ),
    )
)
_PUBLIC = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


class Forbidden(Exception):
    """The request would go to an address that is not allowed."""


class Unresolved(Exception):
    """The name of the host cannot be resolved, or not at this moment."""


class AddressRules:
    """What a node allows beyond the public internet: networks such as `10.1.0.0/16`, or single addresses."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        try:
            self._allowed = tuple(ip_network(text) for text in allowed)
        except ValueError as error:
            instead = ('"10.1.0.0/16"', '"127.0.0.1"')
            raise InvalidPolicies("", f"an allowed address is not a network: {shown(str(error))}", instead) from None

    async def resolve(self, host: str, port: int) -> str:
        """Return the address to connect to. Every address of the name must be allowed; only this one is used."""
        try:
            entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise Unresolved(f"'{shown(host)}' was not found: {error}") from None
        addresses = [str(entry[4][0]).partition("%")[0] for entry in entries]
        for address in addresses:
            self.check(host, ip_address(address))
        return addresses[0]

    def check(self, host: str, address: IpAddress) -> None:
        """Raise Forbidden unless a request may go to this address."""
        for part in (address, *_inside(address)):
            if not self._may(part):
                raise Forbidden(
                    f"'{shown(host)}' is {address}, which is not on the public internet: a request goes there only if "
                    f'the node allows it, with allow_addresses=("{address}",)'
                )

    def _may(self, address: IpAddress) -> bool:
        if any(address in network for network in self._allowed):
            return True
        if isinstance(address, IPv6Address) and address not in _PUBLIC and address not in _NAT64:
            return False
        return not any(address in network for network in _HIDDEN)


def _inside(address: IpAddress) -> tuple[IpAddress, ...]:
    """Return the IPv4 addresses that are embedded in this address."""
    if isinstance(address, IPv4Address):
        return ()
    last = IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
    return tuple(part for part in (address.ipv4_mapped, address.sixtofour, last) if part is not None)
