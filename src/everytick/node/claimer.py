"""The claimer: claims ready occurrences, as many as there is room for, and no more often than it helps."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from everytick.errors import StoreUnavailable
from everytick.node.health import Backoff, Health
from everytick.node.inbox import Arrived, Inbox
from everytick.node.occurrence import OwnedKeys
from everytick.node.scope import Scope
from everytick.node.settings import NodeSettings
from everytick.node.slots import Slots
from everytick.stores.base import Claim, ClaimKey, Offer
from everytick.stores.protocols import RunStore

_log = logging.getLogger("everytick.node")

_MOST_UNWRITTEN = 2_000
"""While more occurrences than this have steps to write, nothing is claimed until half of them are written.

It bounds the memory of a node whose store is slow.
"""


class StepWrites(Protocol):
    """The part that writes steps."""

    @property
    def waiting(self) -> int:
        """How many occurrences have something to write."""
        ...


class Claimer:
    """Claims for one engine; the claims go into its inbox."""

    def __init__(
        self,
        store: RunStore,
        scope: Scope,
        settings: NodeSettings,
        health: Health,
        slots: Slots,
        writer: StepWrites,
        inbox: Inbox,
        monotonic: Callable[[], float],
        owned: OwnedKeys | None = None,
    ) -> None:
        self._store, self._scope, self._health, self._slots = store, scope, health, slots
        self._writer, self._inbox, self._monotonic = writer, inbox, monotonic
        self._timeout, self._late_share = settings.node_timeout.total_seconds(), settings.late_share
        self._missing: dict[ClaimKey, int] = {}
        """Claims that the store counts as ours and that have not come, with the number of the next call as of then."""
        self._is_resting = self._is_behind = self._is_over = False
        self._is_more = True
        self._owned, self._late = owned, set[ClaimKey]()
        self._is_late_due, self._was_late = True, False
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look for something to claim now."""
        self._is_late_due = True
        self._wake.set()

    def slot_is_free(self) -> None:
        """Claim again if the last claim left occurrences in the store, and few of the claimed ones wait."""
        slots = self._slots
        # A claim under way repeats itself once it is answered, and a claimer that was woken need not be woken again.
        is_more = self._is_more or (self._late and self._is_late_due)
        if not is_more or slots.reserved or len(slots.backlog) >= slots.low or self._wake.is_set():
            return
        if self._room():
            self._wake.set()

    def gave_back(self) -> None:
        """Look again when a slot is free: something was given back for want of one."""
        self._is_more = True

    def has_written(self) -> None:
        """Go on once the writer has caught up."""
        if self._is_behind and self._writer.waiting < _MOST_UNWRITTEN // 2:
            self._is_behind = False
            self._wake.set()

    def stop(self) -> None:
        """Claim nothing more."""
        self._is_over = True
        self._wake.set()

    def rest(self, is_resting: bool) -> None:
        """Claim nothing until told to go on. Claimed occurrences are carried out."""
        self._is_resting = is_resting
        self.wake()

    async def run(self) -> None:
        """Claim whenever there is room and something may be ready."""
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
        # If the share is all slots, as on a node of one slot, the two lanes take turns.
        is_late_first = not self._was_late or self._share < self._slots.count
        if is_late_first:
            came += await self._claim_late()
        # Without room now, look again when a slot is free.
        self._is_more = True
        while not self._is_over and (room := self._room()):
            asked_at = self._monotonic()
            with self._slots.reserve(room):
                claims = await self._store.claim(self._scope.on_time, room)
            self._health.answered()
            came += len(claims)
            self._was_late = self._was_late and not claims
            self._is_more = len(claims) == room
            self._inbox.put(Arrived(claims, asked_at))
            if not self._is_more:
                break
        return came if is_late_first else came + await self._claim_late()

    async def _claim_late(self) -> int:
        """Claim late occurrences and those of backfills, while these have less than their share of the slots.

        They come first, so that they get their share also on a node that is never idle.
        """
        late = self._scope.late
        if late is None or not self._is_late_due or self._is_over:
            return 0
        if self._owned is not None:
            self._late = {key for key in self._late if self._owned.find(key) is not None}
        room = min(self._room(), self._share - len(self._late))
        if room <= 0:
            return 0
        asked_at = self._monotonic()
        with self._slots.reserve(room):
            claims = await self._store.claim(late, room)
        self._health.answered()
        self._is_late_due = len(claims) == room
        self._was_late = self._was_late or bool(claims)
        self._late.update(claim.key for claim in claims)
        self._inbox.put(Arrived(claims, asked_at))
        return len(claims)

    @property
    def _share(self) -> int:
        """How many slots late occurrences and those of backfills may take. They get as many, and never more."""
        return max(int(self._slots.count * self._late_share), 1)

    @contextmanager
    def offer(self, is_wanted: bool) -> Iterator[Offer | None]:
        """Reserve the free slots for the claims that a commit of plans may bring along, until it is answered."""
        free = self._slots.free_now() if is_wanted and not self._is_over and self._may_claim() else 0
        if free <= 0:
            yield None
        else:
            with self._slots.reserve(free):
                yield Offer(self._scope.on_time, free)

    def _room(self) -> int:
        return self._slots.wanted() if self._may_claim() else 0

    def _may_claim(self) -> bool:
        self._is_behind = self._is_behind or self._writer.waiting > _MOST_UNWRITTEN
        return not self._is_behind and not self._is_resting and self._health.silent_for <= self._timeout

    def arrived(self, claims: Sequence[Claim]) -> None:
        """Note that these claims have come: their replies are not lost, and their jobs can be read here."""
        for claim in claims if self._missing else ():
            self._missing.pop(claim.key, None)
        if self._scope.refused:
            self._scope.came(claim.job.id for claim in claims)

    def adopt(self, claims: Sequence[Claim]) -> None:
        """Take in claims whose reply was lost. `claims` are those that the store counts as ours and no beat named.

        Most of them are on their way, with a call that began before the beat was answered. The reply is lost if a
        later beat finds the claim again and every call that was under way at the first of these beats is answered. The
        age of such a claim counts from this answer: the store has just said that it is still this node's.
        """
        slots, missing = self._slots, self._missing
        lost = [claim for claim in claims if missing.get(claim.key, slots.next_call + 1) <= slots.oldest_call]
        self._missing = {claim.key: missing.get(claim.key, slots.next_call) for claim in claims}
        if lost:
            self._inbox.put(Arrived(lost))
