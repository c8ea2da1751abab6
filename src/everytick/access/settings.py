"""Who may use the service: the settings for sign-in, proxies and OpenID Connect."""

from __future__ import annotations

import re
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

from everytick.domain.people import Role, role_of
from everytick.domain.values import value
from everytick.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Iterable

Network = IPv4Network | IPv6Network


class AuthMode(StrEnum):
    """Whether people sign in."""

    AUTO = "auto"
    """Where there is a user, all sign in. Without one this host's own requests are those of an admin."""
    USERS = "users"
    """All sign in. While there is no user, a link that is written at the start makes the first admin."""


@value(frozen=True)
class OidcSettings:
    """A provider of OpenID Connect. `claim` of its token is the full name of a user here.

    With `trust_email` an address also counts whose token does not say whether the provider has verified it.
    """

    issuer: str
    client_id: str
    client_secret: str
    claim: str = "email"
    trust_email: bool = False

    def __repr__(self) -> str:
        return f"OidcSettings({self.issuer!r}, {self.client_id!r})"


@value(frozen=True)
class AccessSettings:
    """How people come in. `hosts` are names of the service beside those of this host.

    `proxies` are the addresses of reverse proxies whose `X-Forwarded-…` headers are believed. With `proxy_header` such
    a proxy has signed the person in and names them in this header; `proxy_role` is what a person may who is no user
    here, None refuses them.
    """

    auth: AuthMode = AuthMode.AUTO
    hosts: tuple[str, ...] = ()
    proxies: tuple[Network, ...] = ()
    proxy_header: str | None = None
    proxy_role: Role | None = None
    oidc: OidcSettings | None = None

    @property
    def is_closed(self) -> bool:
        """Whether these settings alone refuse every request without a proof of who asks."""
        return self.auth is AuthMode.USERS or self.proxy_header is not None or self.oidc is not None

    def trusts(self, address: str) -> bool:
        """Tell whether this is the address of a proxy that is believed."""
        try:
            peer = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(peer, "ipv4_mapped", None)
        return any((mapped or peer) in network for network in self.proxies)


def access_settings(
    *,
    auth: str = "auto",
    hosts: Iterable[str] = (),
    proxies: Iterable[str] = (),
    proxy_header: str | None = None,
    proxy_role: str | None = None,
    oidc_issuer: str | None = None,
    oidc_client_id: str | None = None,
    oidc_client_secret: str | None = None,
    oidc_claim: str = "email",
    oidc_trust_email: bool = False,
) -> AccessSettings:
    """Return the settings, each checked. Raise InvalidSetting for those that would let every stranger in."""
    networks = tuple(map(_network, proxies))
    if proxy_header is not None:
        if re.fullmatch(r"[A-Za-z0-9-]{1,100}", proxy_header, re.ASCII) is None:
            raise InvalidSetting("web_proxy_header", proxy_header, "is no name of a header, such as X-Remote-User")
        if not networks:
            text = "needs web_proxies, the addresses of your proxies: else all could send this header"
            raise InvalidSetting("web_proxy_header", proxy_header, text)
    return AccessSettings(
        _auth(auth),
        tuple(host.strip().lower() for host in hosts),
        networks,
        None if proxy_header is None else proxy_header.lower(),
        None if proxy_role is None else role_of(proxy_role),
        _oidc(oidc_issuer, oidc_client_id, oidc_client_secret, claim=oidc_claim, trust_email=oidc_trust_email),
    )


def _auth(given: str) -> AuthMode:
    if given not in tuple(AuthMode):
        raise InvalidSetting("web_auth", given, "is neither auto nor users")
    return AuthMode(given)


def _network(given: str) -> Network:
    try:
        return ip_network(given.strip(), strict=False)
    except ValueError:
        text = "is neither an address nor a network, such as 10.0.0.7 or 10.0.0.0/24"
        raise InvalidSetting("web_proxies", given, text) from None


def _oidc(
    issuer: str | None, client: str | None, secret: str | None, *, claim: str, trust_email: bool
) -> OidcSettings | None:
    if issuer is None:
        return None
    if client is None or secret is None:
        text = "needs web_oidc_client_id and web_oidc_client_secret too"
        raise InvalidSetting("web_oidc_issuer", issuer, text)
    return OidcSettings(issuer.rstrip("/"), client, secret, claim, trust_email)
