"""`store.access` in Redis: the verbs about people, each with its deed in one commit."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol, TypeVar

from everytick.domain.changes import Edit
from everytick.domain.deeds import DeedFilter, DeedPage
from everytick.domain.facts import Fact
from everytick.domain.people import AccessChange, Doer, SignInFailures, Token, User, WebSession
from everytick.stores.base import Receipt, Stored
from everytick.stores.redis.replica import Replica

T = TypeVar("T")


class Carries(Protocol):
    """Runs a verb on the copy of the store."""

    def __call__(self, verb: Callable[[Replica], Awaitable[T]]) -> Awaitable[T]: ...


class RedisAccess:
    """People, their secrets and sessions, deeds, and changes that are written together with their deed."""

    def __init__(self, read: Carries, write: Carries) -> None:
        self._read, self._write = read, write

    async def request(self, subject: str, fact: Fact, doer: Doer) -> Receipt:
        """Write one fact, as `JobStore.request` does, and its deed in the same commit."""
        return await self._write(lambda replica: replica.verbs.access.request(subject, fact, doer))

    async def apply(self, changes: Sequence[Edit], by: str, doer: Doer) -> list[Stored]:
        """Make every change, as `JobStore.apply` does, and its deed in the same commit."""
        return await self._write(lambda replica: replica.verbs.access.apply(changes, by, doer))

    async def purge(self, job_id: str, limit: int, doer: Doer) -> bool:
        """Delete a removed job, as `JobStore.purge` does, and tell the deed with the last of it."""
        return await self._write(lambda replica: replica.verbs.access.purge(job_id, limit, doer))

    async def change(self, change: AccessChange, doer: Doer | None = None) -> bool:
        """Change what is known of people, and tell the deed. Return whether anything changed."""
        return await self._write(lambda replica: replica.verbs.access.change(change, doer))

    async def users(self, names: Collection[str] | None = None) -> Sequence[User]:
        """Return these users, or all, by name."""
        return await self._read(lambda replica: replica.verbs.access.users(names))

    async def tokens(self, ids: Collection[str] | None = None) -> Sequence[Token]:
        """Return these tokens, or all, newest first."""
        return await self._read(lambda replica: replica.verbs.access.tokens(ids))

    async def session(self, hash: str) -> WebSession | None:
        """Return the session that has not ended, with its user as they are now."""
        return await self._read(lambda replica: replica.verbs.access.session(hash))

    async def sessions(self) -> Sequence[WebSession]:
        """Return the sessions of browsers that have not ended, the last used first."""
        return await self._read(lambda replica: replica.verbs.access.sessions())

    async def failures(self, name: str) -> SignInFailures:
        """Return how often signing in with this name went wrong."""
        return await self._read(lambda replica: replica.verbs.access.failures(name))

    async def deeds(self, filter: DeedFilter) -> DeedPage:
        """Return a page of deeds, newest first."""
        return await self._read(lambda replica: replica.verbs.access.deeds(filter))
