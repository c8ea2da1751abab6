"""Reverse proxies: whose word about the client is believed.

Only a proxy whose address is in `web_proxies` may say where a request came from and that it came by HTTPS. All others
could write what they like into these headers.
"""

from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from everytick.access.settings import AccessSettings

PEER = "everytick_peer"
"""The name in a request's state under which stands the address that the connection itself has."""

_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"via")
_HOPS_READ = 20
"""How many hops of a forwarded chain are read, from the nearest on."""


class TrustedProxies:
    """Sets the client and the scheme of a request to what a trusted proxy says."""

    def __init__(self, app: ASGIApp, settings: AccessSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http":
            peer = (scope.get("client") or ("", 0))[0]
            scope = {**scope, "state": {**(scope.get("state") or {}), PEER: peer}}
            if self._settings.trusts(peer):
                scope = self._forwarded(scope)
        await self._app(scope, receive, send)

    def _forwarded(self, scope: Scope) -> Scope:
        scheme = _last(scope, b"x-forwarded-proto").lower()
        found = {"scheme": scheme} if scheme in ("http", "https") else {}
        client = self._client(_all(scope, b"x-forwarded-for"))
        return {**scope, **found, **({} if client is None else {"client": (client, 0)})}

    def _client(self, chain: str) -> str | None:
        """Return the last address of the chain that is no proxy of ours: what stands before it, the client wrote."""
        hops = [hop.strip() for hop in chain.split(",")[-_HOPS_READ:]]
        for hop in reversed(hops):
            if not _is_address(hop):
                return None
            if not self._settings.trusts(hop):
                return hop
        return None


def is_forwarded(scope: Scope) -> bool:
    """Whether a proxy has passed the request on, as it says itself."""
    return any(name in _FORWARDED for name, _ in scope["headers"])


def _all(scope: Scope, wanted: bytes) -> str:
    return ",".join(said.decode("latin-1") for name, said in scope["headers"] if name == wanted)


def _last(scope: Scope, wanted: bytes) -> str:
    return _all(scope, wanted).rpartition(",")[2].strip()


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
