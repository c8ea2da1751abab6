"""`store.access` of both SQL stores."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Protocol, TypeVar

from everytick.domain.changes import Edit
from everytick.domain.deeds import DeedFilter, DeedPage
from everytick.domain.facts import Fact
from everytick.domain.people import AccessChange, Doer, SignInFailures, Token, User, WebSession
from everytick.stores.base import Receipt, Stored
from everytick.stores.sql.access_queries import AccessQueries
from everytick.stores.sql.commands import Make
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.verbs import access

T = TypeVar("T")


class CarryOut(Protocol):
    """How a store carries a verb out."""

    async def __call__(self, make: Make[T]) -> T:
        """Carry the verb out and return its answer."""
        ...


class SqlAccess:
    """People, their secrets and sessions, deeds, and changes that are written together with their deed."""

    def __init__(self, cold: ColdQueries, queries: AccessQueries, transact: CarryOut, question: CarryOut) -> None:
        self._cold, self._q, self._transact, self._question = cold, queries, transact, question

    async def request(self, subject: str, fact: Fact, doer: Doer) -> Receipt:
        """Write one fact, as `JobStore.request` does, and its deed in the same transaction."""
        return await self._transact(partial(access.request, self._cold, self._q, subject, fact, doer))

    async def apply(self, changes: Sequence[Edit], by: str, doer: Doer) -> list[Stored]:
        """Make every change, as `JobStore.apply` does, and its deed in the same transaction."""
        return await self._transact(partial(access.apply, self._cold, self._q, changes, by, doer))

    async def purge(self, job_id: str, limit: int, doer: Doer) -> bool:
        """Delete a removed job, as `JobStore.purge` does, and tell the deed with the last of it."""
        return await self._transact(partial(access.purge, self._cold, self._q, job_id, limit, doer))

    async def change(self, change: AccessChange, doer: Doer | None = None) -> bool:
        """Change what is known of people, and tell the deed. Return whether anything changed."""
        return await self._transact(partial(access.change, self._q, change, doer))

    async def users(self, names: Collection[str] | None = None) -> Sequence[User]:
        """Return these users, or all, by name."""
        return await self._question(partial(access.users, self._q, names))

    async def tokens(self, ids: Collection[str] | None = None) -> Sequence[Token]:
        """Return these tokens, or all, newest first."""
        return await self._question(partial(access.tokens, self._q, ids))

    async def session(self, hash: str) -> WebSession | None:
        """Return the session that has not ended, with its user as they are now."""
        return await self._question(partial(access.session, self._q, hash))

    async def sessions(self) -> Sequence[WebSession]:
        """Return the sessions of browsers that have not ended, the last used first."""
        return await self._question(partial(access.sessions, self._q))

    async def failures(self, name: str) -> SignInFailures:
        """Return how often signing in with this name went wrong."""
        return await self._question(partial(access.failures, self._q, name))

    async def deeds(self, filter: DeedFilter) -> DeedPage:
        """Return a page of deeds, newest first."""
        return await self._question(partial(access.deeds, self._q, filter))
