"""Several stores behind one address: the whole service of each under its name, and a front page that lists them.

Nothing is shared between them. Each store has its own users, tokens, limits and audit, and the front page shows of a
store what its own service would show to the same person.
"""

import asyncio
from collections.abc import Mapping

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from everytick import __version__
from everytick.access.settings import AccessSettings
from everytick.app import Everytick
from everytick.app.console_lines import tell
from everytick.app.foreground import until_told
from everytick.app.serving import Listening
from everytick.web import static
from everytick.web.asgi import Service, asgi
from everytick.web.head_requests import HeadAsGet
from everytick.web.headers import Headers
from everytick.web.mounting import StoreMount, mounted
from everytick.web.pages import stores
from everytick.web.paths import link, path_of
from everytick.web.problems import add_handlers
from everytick.web.proxies import TrustedProxies
from everytick.web.rates import RateLimits, Rates
from everytick.web.request_limits import BodyLimits
from everytick.web.service import WebServer


class SeveralStores:
    """The ASGI application: `/shop/…` is the service of the store shop, everything else the front page's."""

    def __init__(self, ticks: Mapping[str, Everytick], access: AccessSettings | None = None) -> None:
        self.services: dict[str, Service] = {name: asgi(tick, access) for name, tick in ticks.items()}
        self._front = _front(self.services, access or AccessSettings())

    def end(self) -> None:
        """Tell every open event stream of every store to end."""
        for service in self.services.values():
            service.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the store that its path names, else to the front page."""
        root, below = str(scope.get("root_path", "")), path_of(scope)
        name, slash, _ = below.removeprefix("/").partition("/")
        service = self.services.get(name)
        if service is None:
            await self._front(scope, receive, send)
        elif not slash:
            query = bytes(scope.get("query_string", b"")).decode("ascii", "replace")
            there = link(root, f"/{name}/") + (f"?{query}" if query else "")
            await Headers(RedirectResponse(there))(scope, receive, send)
        else:
            await service(mounted(scope, StoreMount(name, root, tuple(self.services))), receive, send)


def _front(services: Mapping[str, Service], access: AccessSettings) -> ASGIApp:
    """Return the application of the front page, within what every request passes through."""
    app = FastAPI(title="everytick", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.services, app.state.rates, app.state.served_name = services, Rates(), "several stores"
    add_handlers(app)
    app.router.routes.extend((*stores.router.routes, *static.router.routes))
    return Headers(TrustedProxies(RateLimits(BodyLimits(HeadAsGet(app)), app.state.rates), access))


def serve_stores(ticks: Mapping[str, Everytick], listening: Listening) -> None:
    """Serve several stores without a node until Ctrl-C or SIGTERM. Raise OSError if the port is taken."""
    service = SeveralStores(ticks, listening.access)
    server = WebServer(next(iter(ticks.values())), listening, service)

    async def served(told: asyncio.Event) -> None:
        try:
            answer = {name: await tick._opened_to_serve(listening, f"store {name}") for name, tick in ticks.items()}
            url = await server.start()
            tell(f"dashboard and API: {url}; stores: {', '.join(ticks)}; Ctrl-C stops it")
            for name in (name for name, is_there in answer.items() if is_there):
                await ticks[name]._tell_first_link(listening, f"{url}{name}/")
            await told.wait()
        finally:
            await server.close()
            for tick in ticks.values():
                await tick.close()

    until_told(served)
