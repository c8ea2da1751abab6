"""Acting as a person: changes below `acting_as` are signed, and leave a deed with the person's name.

A context variable carries the person, so that it follows calls into other tasks and onto the store's own loop.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everytick.domain.changes import Edit
    from everytick.domain.facts import Fact
    from everytick.domain.people import Doer
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import Receipt, Stored

_ACTING: ContextVar[Doer | None] = ContextVar("everytick_acting", default=None)


def acting() -> Doer | None:
    """Return the person who acts here, None for code."""
    return _ACTING.get()


@contextmanager
def acting_as(doer: Doer | None) -> Iterator[None]:
    """Sign every change within this block with the person. None stands for code, which leaves no deed."""
    token = _ACTING.set(doer)
    try:
        yield
    finally:
        _ACTING.reset(token)


class SignedStore:
    """A store whose changes are written together with their deed. Everything else is the store's own."""

    def __init__(self, store: AnyStore, doer: Doer) -> None:
        self._store, self._doer = store, doer

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._store, verb)

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        """Write one fact and its deed."""
        assert within is None, "a transaction of the caller's own goes to the store itself"
        return await self._store.access.request(subject, fact, self._doer)

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Make every change and write its deed."""
        return await self._store.access.apply(changes, by, self._doer)

    async def purge(self, job_id: str, limit: int = 1000) -> bool:
        """Delete a removed job and write the deed with the last of it."""
        return await self._store.access.purge(job_id, limit, self._doer)

    def unsigned(self) -> AnyStore:
        """Return the store, for changes that code makes by itself."""
        return self._store


def signed(store: AnyStore) -> AnyStore:
    """Return the store, signed by the person who acts here, if one does."""
    doer = acting()
    return store if doer is None else cast("AnyStore", SignedStore(store, doer))


def unsigned(store: AnyStore) -> AnyStore:
    """Return the store without a signature: what code stores by itself is no deed of the person."""
    return store.unsigned() if isinstance(store, SignedStore) else store
