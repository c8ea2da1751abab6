"""How often one address, and one person, may ask. One request too many is refused before anything is done for it."""

from ipaddress import IPv6Address, ip_address

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from everytick.access.people import Person
from everytick.access.throttle import Throttle
from everytick.web.csrf import SAFE
from everytick.web.problems import Problem, plain_answer

_READS, _CHANGES = (2_000, 5.0), (200, 10.0)
"""How many requests one address or person may make at once, and within how many seconds again as many: 400 reads and
20 changes a second. A dashboard makes two a second, a program with the client some hundred."""


class Rates:
    """How often each address, and each person, may ask."""

    def __init__(self, reads: tuple[int, float] = _READS, changes: tuple[int, float] = _CHANGES) -> None:
        self._reads, self._changes = Throttle(*reads), Throttle(*changes)

    def check(self, key: str, method: str) -> None:
        """Count the request, or raise 429 with the time to wait."""
        if seconds := (self._reads if method in SAFE else self._changes).take(key):
            text = f"too many requests: try again in {seconds} s"
            raise Problem(429, "too_many_requests", text, {"retry-after": str(seconds)})


def check_person(request: Request, who: Person) -> None:
    """Return if the person may ask now, else raise 429: one person at many addresses is one."""
    rates: Rates = request.app.state.rates
    rates.check(f"person {who.name}", request.method)


class RateLimits:
    """Refuses what an address asks too often."""

    def __init__(self, app: ASGIApp, rates: Rates) -> None:
        self._app, self._rates = app, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http":
            client = scope.get("client")
            try:
                self._rates.check(f"address {network_of(client[0] if client else '')}", scope["method"])
            except Problem as refused:
                await plain_answer(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def network_of(address: str) -> str:
    """Return the address, or of IPv6 the network of one customer: they have 2⁶⁴ addresses each."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64))
    return str(found)
