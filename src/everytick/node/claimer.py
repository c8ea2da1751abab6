"""The claimer: asks the store for what is ready, as much as there is room for, and no more often than it helps."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from everytick.errors import StoreUnavailable
from everytick.node.backoff import Backoff
from everytick.node.health import Health
from everytick.node.scope import Scope
from everytick.node.settings import NodeSettings
from everytick.node.slots import MOST_AHEAD, Slots
from everytick.stores.base import Claim, ClaimKey, Offer
from everytick.stores.protocols import RunStore

_log = logging.getLogger("everytick.executor")

_AT_ONCE = 500
_UNWRITTEN = 2_000


class Taking(NamedTuple):
    """What a commit of plans may claim along, and what takes the claims that came."""

    offer: Offer | None
    arrived: Callable[[Sequence[Claim]], None]


class Load(Protocol):
    """How much the executor has to do, and who takes what was claimed."""

    slots: Slots

    @property
    def waiting(self) -> int:
        """How many were claimed and wait for a slot."""
        ...

    @property
    def unwritten(self) -> int:
        """How many have something that is not written yet."""
        ...

    def holds(self, key: ClaimKey) -> bool:
        """Whether the node knows that it holds this."""
        ...

    def take(self, claims: Iterable[Claim], asked_at: float | None = None) -> None:
        """Begin these as soon as there is a slot; they were asked for when the monotonic clock showed this."""
        ...


class Claimer:
    """Claims for one node."""

    def __init__(
        self,
        store: RunStore,
        scope: Scope,
        settings: NodeSettings,
        health: Health,
        load: Load,
        monotonic: Callable[[], float],
    ) -> None:
        self._monotonic = monotonic
        self._store, self._scope, self._health, self._load = store, scope, health, load
        self._timeout = settings.node_timeout.total_seconds()
        self._low = 1
        self._is_resting = False
        self._missing: set[ClaimKey] = set()
        self._calls = self._calls_when_missing = 0
        self._under_way: set[int] = set()
        self._is_answered = asyncio.Event()
        self._is_answered.set()
        self._offered = 0
        self._is_behind = self._is_over = False
        self._is_more = True
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look for something to claim now."""
        self._wake.set()

    def slot_is_free(self) -> None:
        """Look again if the last look left something behind, and what was claimed ahead runs low."""
        # A call under way looks again by itself once it was answered, and who was woken need not be woken again.
        if not self._is_more or self._under_way or self._load.waiting >= self._low or self._wake.is_set():
            return
        if self._room():
            self._wake.set()

    def gave_back(self) -> None:
        """Look again when a slot is free: something was given back for want of one."""
        self._is_more = True

    def has_written(self) -> None:
        """Go on once the writer has caught up."""
        if self._is_behind and self._load.unwritten < _UNWRITTEN // 2:
            self._is_behind = False
            self._wake.set()

    def stop(self) -> None:
        """Claim nothing more."""
        self._is_over = True
        self._wake.set()

    async def run(self) -> None:
        """Claim what is ready whenever there is room and a reason to look."""
        backoff = Backoff()
        while not self._is_over:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.claim()
                backoff.succeeded()
            except StoreUnavailable as error:
                self._health.failed(error)
                await asyncio.sleep(backoff.failed(error))
                self._wake.set()

    async def claim(self) -> int:
        """Claim until nothing is ready or there is no room; return how many came."""
        came = 0
        # What there is no room for now is looked for again when a slot is free.
        self._is_more = True
        while not self._is_over and (room := self._room()):
            asked_at = self._monotonic()
            with self._calling():
                claims = await self._store.claim(self._scope.current, room)
            self._health.answered()
            came += len(claims)
            self._is_more = len(claims) == room
            self._arrived(claims, asked_at)
            if not self._is_more:
                break
        return came

    async def answered(self) -> None:
        """Return once no call is under way that may bring claims: what it brought is in the executor's hands."""
        await self._is_answered.wait()

    @contextmanager
    def offer(self, is_wanted: bool) -> Iterator[Taking]:
        """Reserve the free slots for the claims that a commit of plans may bring along, until it is answered."""
        slots = self._load.slots
        # A call under way may fill the same slots.
        is_free = is_wanted and not self._under_way and not self._is_over and self._room() > 0
        free = slots.count - slots.busy - self._load.waiting if is_free else 0
        if free <= 0:
            yield Taking(None, lambda claims: None)
            return
        self._offered, asked_at = free, self._monotonic()
        try:
            with self._calling():
                yield Taking(Offer(self._scope.current, free), lambda claims: self._arrived(claims, asked_at))
        finally:
            self._offered = 0

    @contextmanager
    def _calling(self) -> Iterator[None]:
        """Know that what was claimed in our name may still be on its way to us."""
        self._calls += 1
        call = self._calls
        self._under_way.add(call)
        self._is_answered.clear()
        try:
            yield
        finally:
            self._under_way.discard(call)
            if not self._under_way:
                self._is_answered.set()

    def _room(self) -> int:
        """Return how many to claim now: for the free slots, and for those that are free within 50 ms."""
        load, slots = self._load, self._load.slots
        self._is_behind = self._is_behind or load.unwritten > _UNWRITTEN
        if self._is_behind or self._is_resting or self._health.silent_for > self._timeout:
            return 0
        ahead = slots.ahead()
        # Asked for while half of it is left: a node that runs dry first waits for the answer.
        self._low = max(1, ahead // 2)
        room = slots.count + ahead - slots.busy - load.waiting - self._offered
        # Few at a time only where nothing is left to begin.
        least = max(1, ahead // 4) if load.waiting else 1
        return min(room, max(_AT_ONCE, slots.count), MOST_AHEAD) if room >= least else 0

    def _arrived(self, claims: Sequence[Claim], asked_at: float | None = None) -> None:
        if self._missing:
            self._missing.difference_update(claim.key for claim in claims)
        if self._scope.refused:
            self._scope.came(claim.job.id for claim in claims)
        self._load.take(claims, asked_at)

    def rest(self, is_resting: bool) -> None:
        """Claim nothing until told to go on; what was claimed is carried out."""
        self._is_resting = is_resting
        self.wake()

    # ----------------------------------------------------------------------------------------------- lost replies

    def adopt(self, claims: Sequence[Claim]) -> None:
        """Take what was claimed in our name and never arrived, once no call under way can still bring it.

        The beat before told of it too, it has not arrived since, and whatever call is under
        way began after that: so its reply was lost. Its age counts from the arrival of this beat's
        answer, not from the lost call: the store has just said that the claim is still this node's.
        """
        if all(call > self._calls_when_missing for call in self._under_way):
            self._arrived([each for each in claims if each.key in self._missing])
        self._missing = {each.key for each in claims if not self._load.holds(each.key)}
        self._calls_when_missing = self._calls
