"""Who asks: the bearer of a token, the person of a session, of a trusted proxy, or this host's own admin."""

import asyncio
import time
from collections import OrderedDict

from fastapi import Request

from everytick.access.credentials import hash_of
from everytick.access.people import CameBy, Person, local_admin, person_of_user
from everytick.access.settings import AccessSettings, AuthMode
from everytick.app import Everytick
from everytick.errors import NotFound, StoreUnavailable
from everytick.web.csrf import SESSION_COOKIE, check_host, cookie_of, is_loopback
from everytick.web.problems import Problem
from everytick.web.proxies import PEER, is_forwarded
from everytick.web.pulse import StorePulse

_REMEMBERED_SECONDS, _REMEMBERED_MOST = 300, 1000
"""Who was there so shortly before the store fell silent stays known until it is back, and how many do. Nothing can be
changed by them then."""

_ANSWER_SECONDS = 5.0
"""How long the store may take to say who asks."""

_BEARER = {"www-authenticate": 'Bearer realm="everytick"'}


def address_of(request: Request) -> str:
    """Return where a request comes from."""
    return "" if request.client is None else request.client.host


class Identity:
    """Finds the person of a request, or raises 401."""

    def __init__(self, tick: Everytick, settings: AccessSettings, pulse: StorePulse | None = None) -> None:
        self._people, self.settings, self._pulse = tick.people, settings, pulse or StorePulse(tick)
        self._known: OrderedDict[str, tuple[Person, float]] = OrderedDict()
        self._has_users: bool | None = None

    async def __call__(self, request: Request) -> Person:
        """Return the person. A token counts before a cookie, a cookie before a proxy's header.

        While the store is away, it is the person that was known last: a page then still says what is wrong.
        """
        key = _key(request)
        try:
            await self._pulse.feel()
            async with asyncio.timeout(_ANSWER_SECONDS):
                person = await self._found(request)
        except (StoreUnavailable, TimeoutError) as error:
            return self._known_last(request, key, self._pulse.missed(error))
        except Problem:
            self._known.pop(key, None)
            raise
        self._remember(key, person)
        return person

    async def _found(self, request: Request) -> Person:
        address = address_of(request)
        given = request.headers.get("authorization")
        if given is not None:
            return await self._by_token(given, address)
        secret = cookie_of(request, SESSION_COOKIE)
        person = None if secret is None else await self._people.person_of_session(secret, address)
        person = person or await self._by_proxy(request, address)
        if person is not None:
            return person
        if await self.is_open():
            return self._by_host(request, address)
        raise Problem(401, "not_signed_in", "this needs a person: sign in, or send a token", _BEARER)

    def _known_last(self, request: Request, key: str, error: StoreUnavailable) -> Person:
        """Return who was known by the same proof shortly before the store fell silent, else raise the error."""
        known, at = self._known.get(key, (None, 0.0))
        if known is not None and at > self._pulse.silent_since - _REMEMBERED_SECONDS:
            return known
        if not key and not self.settings.is_closed and self._has_users is False:
            return self._by_host(request, address_of(request))
        raise error

    def _remember(self, key: str, person: Person) -> None:
        if not key:
            return
        self._known.pop(key, None)
        self._known[key] = (person, time.monotonic())
        if len(self._known) > _REMEMBERED_MOST:
            self._known.popitem(last=False)

    async def is_open(self) -> bool:
        """Whether this host's own requests need no proof: there is no user, and no setting asks for one."""
        if self.settings.is_closed:
            return False
        if not self._has_users:
            try:
                self._has_users = await self._people.has_users()
            except StoreUnavailable:
                if self._has_users is None:
                    raise
        return not self._has_users

    async def needs_first_user(self) -> bool:
        """Whether the service waits for the link that makes its first admin."""
        return self.settings.auth is AuthMode.USERS and not await self._people.has_users()

    async def _by_token(self, given: str, address: str) -> Person:
        kind, _, text = given.partition(" ")
        if kind.lower() == "bearer":
            person = await self._people.person_of_token(text.strip(), address)
            if person is not None:
                return person
        raise Problem(401, "wrong_token", "this token is unknown, revoked or expired", _BEARER)

    async def _by_proxy(self, request: Request, address: str) -> Person | None:
        """Return the person whom a trusted proxy names. The whole name counts, and one name alone."""
        header = self.settings.proxy_header
        if header is None or not self.settings.trusts(getattr(request.state, PEER, "")):
            return None
        named = request.headers.getlist(header)
        if len(named) != 1 or not named[0].strip():
            return None
        name = named[0].strip()
        try:
            return person_of_user(await self._people.user(name), CameBy.PROXY, address)
        except NotFound:
            role = self.settings.proxy_role
            if role is None:
                raise Problem(403, "unknown_person", "the proxy names a person who is no user here") from None
            return Person(name, role, came_by=CameBy.PROXY, address=address)

    def _by_host(self, request: Request, address: str) -> Person:
        """Return the admin of a service without users, to whom only this host's own requests belong."""
        check_host(request.headers, self.settings.hosts)
        if not is_loopback(address) or is_forwarded(request.scope):
            text = "this service has no users, so that it answers to its own host alone: everytick user add makes one"
            raise Problem(401, "not_signed_in", text, _BEARER)
        return local_admin(address)


def _key(request: Request) -> str:
    """Return under what the person of a request is remembered: a hash of the token or the session that proves it."""
    given = request.headers.get("authorization")
    if given is not None:
        return hash_of(f"token {given}")
    secret = cookie_of(request, SESSION_COOKIE)
    return "" if secret is None else hash_of(f"session {secret}")
