"""`asgi`: the service as an ASGI application, made from a plain list of routers."""

from collections.abc import Sequence

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everytick import __version__
from everytick.access.settings import AccessSettings
from everytick.access.throttle import Throttle
from everytick.app import Everytick
from everytick.app.readiness import Readiness
from everytick.web import api, health, metrics, pages, static
from everytick.web.agenda_cache import AgendaCache
from everytick.web.asking import Identify
from everytick.web.csrf import FormCookie
from everytick.web.head_requests import HeadAsGet
from everytick.web.headers import Headers
from everytick.web.identity import Identity
from everytick.web.kept_pages import KeptPages
from everytick.web.known_jobs import KnownJobs
from everytick.web.now_board import Board
from everytick.web.oidc import provider_of
from everytick.web.paths import NamesWithSlashes
from everytick.web.problems import add_handlers
from everytick.web.proxies import TrustedProxies
from everytick.web.pulse import StorePulse
from everytick.web.rates import RateLimits, Rates
from everytick.web.request_limits import BodyLimits
from everytick.web.streams import Hub
from everytick.web.submissions import Submissions

_FAILED_SIGN_INS = 20, 300
"""How often one address may fail to sign in, and within how many seconds."""

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that change nothing."""


def routers() -> Sequence[APIRouter]:
    """Return every router of the service. Each of their routes declares the role that it needs."""
    return (health.router, metrics.router, static.router, *api.ROUTERS, *pages.ROUTERS)


class Service:
    """The ASGI application: the routes within everything that every request passes through."""

    def __init__(self, app: FastAPI, access: AccessSettings) -> None:
        self.app = app
        bounded = RateLimits(BodyLimits(HeadAsGet(FormCookie(NamesWithSlashes(app)))), app.state.rates)
        self._whole: ASGIApp = Headers(TrustedProxies(bounded, access))

    def end(self) -> None:
        """Tell every open event stream to end, and what is read or counted behind the pages."""
        state = self.app.state
        state.hub.end()
        state.pulse.end()
        state.agenda_cache.end()
        state.known_jobs.forget()

    def _changed(self) -> None:
        """Let every page ask anew."""
        state = self.app.state
        state.known_jobs.forget()
        state.board.forget()
        state.kept_pages.forget()
        state.agenda_cache.changed()
        state.hub.changed("")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. What may have changed something makes open pages look anew, before it is answered."""

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._changed()
            await send(message)

        is_reading = scope["type"] != "http" or scope["method"] in _READING
        await self._whole(scope, receive, send if is_reading else told)


def asgi(tick: Everytick, access: AccessSettings | None = None, *, identify: Identify | None = None) -> Service:
    """Return the service of an application: API, pages and health. It can be mounted under any prefix.

    `access` says how people come in; without it, those who have a user, or this host's own while there is none.
    `identify` finds the person of a request in another way, for an application that knows its people already.
    """
    settings = access or AccessSettings()
    app = FastAPI(
        title="everytick",
        version=__version__,
        openapi_url=None,  # a route of ours answers it, since it needs a role
        docs_url=None,
        redoc_url=None,
    )
    pulse = StorePulse(tick)
    identity = Identity(tick, settings, pulse)
    app.state.pulse = pulse
    app.state.tick, app.state.identify, app.state.readiness = tick, identify or identity, Readiness(tick)
    app.state.identity, app.state.served_name = identity, tick.name
    known = KnownJobs(tick)
    app.state.hub, app.state.known_jobs, app.state.board = Hub(tick), known, Board(tick, known)
    app.state.agenda_cache, app.state.kept_pages = AgendaCache(tick, known), KeptPages()
    app.state.provider = None if settings.oidc is None else provider_of(settings.oidc)
    app.state.rates = Rates()
    app.state.sign_ins = Throttle(*_FAILED_SIGN_INS)
    app.state.submissions = Submissions()
    add_handlers(app)
    # Not `include_router`, which would make every route anew at the first request: a quarter of a second for each
    # application, and the routers have neither a prefix nor dependencies to give to their routes.
    app.router.routes.extend(route for router in routers() for route in router.routes)
    return Service(app, settings)
