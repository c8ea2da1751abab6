"""What a route asks for: the application, the person who asks, and the role that the person needs.

Every route declares a role with `needs`, also pages; `needs(None)` says that no sign-in is needed.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Request

from everytick.access.people import Person, Role, tags_of
from everytick.app import Everytick
from everytick.errors import StoreUnavailable
from everytick.stores.base import JobRecord
from everytick.web.csrf import check_open_form, check_request
from everytick.web.flash import read_flashes
from everytick.web.paths import path_of
from everytick.web.problems import Problem
from everytick.web.pulse import pulse_of
from everytick.web.rates import check_person

Identify: TypeAlias = Callable[[Request], Awaitable[Person]]
"""Returns the person who asks, or raises `Problem` with 401."""


async def _tick(request: Request) -> Everytick:  # not in a thread, as FastAPI runs a plain function
    tick = request.app.state.tick
    assert isinstance(tick, Everytick), "asgi() sets it"
    return tick


async def _who(request: Request) -> Person:
    identify: Identify = request.app.state.identify
    request.state.who = who = await identify(request)
    # Before the route, which may make its frame and its ETag by itself.
    read_flashes(request)
    return who


Tick = Annotated[Everytick, Depends(_tick)]
"""The application that this service serves."""

Who = Annotated[Person, Depends(_who)]
"""The person who asks."""


KNOWN_SECONDS = 10.0
"""How long the reader of a stream is taken for known: less than between two heartbeats."""

GONE = "the sign-in has ended: sign in again"
"""What the last message of a stream says to a reader who may read no more."""


class StreamReader:
    """The person who reads an open stream, found again now and then: a stream lasts for days, a right may end before.

    While the store is away it is the one that was known last.
    """

    def __init__(self, request: Request, who: Person, again: float | None = None) -> None:
        self._request, self._who, self._known_at = request, who, time.monotonic()
        self._again = KNOWN_SECONDS if again is None else again

    async def who(self) -> Person | None:
        """Return the person with the role that they have now; None if they may read no more."""
        if time.monotonic() - self._known_at < self._again:
            return self._who
        identify: Identify = self._request.app.state.identify
        try:
            self._who = await identify(self._request)
        except Problem:
            return None
        except StoreUnavailable:
            return self._who
        self._known_at = time.monotonic()
        return self._who


class NeedsRole:
    """Lets a person with a role through: on the job that the path names, or on all.

    `on_each` is for a route about many jobs that its body or filter names: it lets a person in who has the role on
    some, and the route looks at each job by itself. `without_store` is for one that says something while the store is
    silent; every other one is refused then, before it waits for the store.
    """

    def __init__(self, role: Role, *, on_each: bool = False, without_store: bool = False) -> None:
        self.role, self.on_each, self._without_store = role, on_each, without_store

    async def __call__(self, request: Request, tick: Tick, who: Who) -> AsyncIterator[Person]:
        """Give the person, who acts until the request is answered. Raise 403 if the person may not."""
        check_person(request, who)
        await check_request(request, who)
        if not self._without_store:
            await pulse_of(request).feel()
        if not (who.may(self.role) or (who.grants and await self._may_by_grant(request, tick, who))):
            raise Problem(403, "not_allowed", f"this needs {self.role}: {who.name} is {who.role}")
        # Here, so that no route can forget to sign what it changes.
        with tick.acting_as(who.doer):
            yield who

    async def _may_by_grant(self, request: Request, tick: Everytick, who: Person) -> bool:
        if self.on_each:
            return who.may_somewhere(self.role)
        record = await _job_meant(request, tick)
        return record is not None and who.may(self.role, tags_of(record.job.name, record.job.settings.tags))


async def _job_meant(request: Request, tick: Everytick) -> JobRecord | None:
    """Return the one job that the path is about: by its name, by a backfill, by an occurrence. None if by none."""
    name = request.path_params.get("job")
    if isinstance(name, str):
        return await tick.job(name)
    if isinstance(backfill := request.path_params.get("backfill"), str):
        return await tick.job_of((await (await tick.find_backfill(backfill)).progress()).job_id)
    if "/occurrences/" not in path_of(request.scope):
        return None
    ids = [request.path_params[key] for key in _OF_OCCURRENCES if key in request.path_params]
    if not ids:
        return None
    return await tick.job_of((await tick.entry(str(ids[0]))).occurrence.job_id)


_OF_OCCURRENCES = ("occurrence", "occurrence_id", "id")


class NeedsNoRole:
    """Lets every request through: for health, sign-in and the files of pages."""

    role: Role | None = None

    async def __call__(self, request: Request) -> None:
        """Return, unless the request would change something and comes from no form of ours."""
        await check_open_form(request)


def needs(role: Role | None, *, on_each: bool = False, without_store: bool = False) -> Any:
    """Return the dependency that guards a route: `dependencies=[needs(Role.OPERATOR)]`."""
    return Depends(NeedsNoRole() if role is None else NeedsRole(role, on_each=on_each, without_store=without_store))


def role_needed(route: Any) -> Role | None:
    """Return the role that a route needs, None if it needs none. Raise LookupError if the route declares nothing."""
    for dependency in route.dependant.dependencies:
        if isinstance(dependency.call, (NeedsRole, NeedsNoRole)):
            return dependency.call.role
    raise LookupError(f"{route.path} declares no role: add dependencies=[needs(...)]")
