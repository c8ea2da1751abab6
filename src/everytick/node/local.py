"""Local: what a node fires by itself while its store is away, and how that is handed over afterwards.

Only jobs whose `on_store_outage` says so. They are planned and run as ever, by a node on a
store in memory that begins where they were last seen to stand. When the store is back it is
told of all of them, also of those that run: these belong to this node there from then on,
which goes on with them and writes about them under their fence. Other nodes may have done
the same: what turns out to be there already is told as a duplicate.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, Protocol

from everytick.domain.decisions import Why
from everytick.domain.policies import OnStoreOutage
from everytick.domain.texts import FALLING_BACK
from everytick.errors import NotFound, StoreUnavailable
from everytick.node.clock import NodeClock
from everytick.node.events import Event, Events, Happening
from everytick.node.health import Health
from everytick.node.hooks import HookTable
from everytick.node.inbox import Inbox, OrdersCame
from everytick.node.owned_keys import OwnedKeys
from everytick.node.reaper import Reaper
from everytick.node.scope import Scope
from everytick.stores.addresses import AnyStore
from everytick.stores.base import ClaimKey, Orders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from everytick.domain.snapshots import JobSnapshot
    from everytick.stores.memory.local import LocalStore, Part

_log = logging.getLogger("everytick.local")

MOST_JOBS = 1_000
"""Of so many jobs the last state is kept at most."""

MOST_UNRECORDED = 10_000
"""With so many occurrences that are not written down, nothing more is fired until the store is back."""

_ANSWER_WITHIN = 10.0
_LIST_EVERY = 60.0
_FIRST_LIST = 3.0


class Runs(Protocol):
    """The node that fires on the local store."""

    reaper: Reaper
    inbox: Inbox

    async def start(self) -> None:
        """Begin."""
        ...

    def learn(self, hooks: HookTable) -> None:
        """Call these hooks from now on."""
        ...

    async def stop(self, mode: Literal["cancel", "drain"] = "cancel") -> None:
        """End, and what it runs with it."""
        ...


class Local:
    """Watches for an outage, fires through it, and hands over what came of it.

    `patience` is for how many seconds the store must have been away before anything is
    fired: another node may still reach it.
    """

    def __init__(
        self,
        store: AnyStore,
        node: str,
        clock: NodeClock,
        health: Health,
        events: Events,
        *,
        patience: float,
        refresh: float,
        scope: Scope,
        owned: OwnedKeys,
        make: "Callable[[LocalStore], Runs]",
    ) -> None:
        self._store, self._node, self._clock, self._health, self._events = store, node, clock, health, events
        self._patience, self._refresh, self._make = patience, refresh, make
        self._scope, self._owned = scope, owned
        self._ids: list[str] = []
        self._known: Mapping[str, JobSnapshot] = {}  # by id, as last seen
        # Not at once: a start has better things to do.
        self._listed_at = clock.monotonic() - _LIST_EVERY + _FIRST_LIST
        self._looked_at = self._listed_at
        self._local: LocalStore | None = None
        self._runner: Runs | None = None
        self._settled_at = float("-inf")
        self._turn = asyncio.Lock()
        self.is_firing = False

    @property
    def has_news(self) -> bool:
        """Whether something was fired that the store does not know yet."""
        return self._local is not None and (self.is_firing or self._local.has_news)

    async def look(self) -> int:
        """Begin to fire when the store has been away for too long, stay up to date while it is there."""
        if self._health.failing_for:
            await self._go_on_without()
            return 0
        if self.has_news:
            await self.record()
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                await self._stay_up_to_date()
        except TimeoutError:
            # One that hangs is as good as one that cannot be reached.
            raise StoreUnavailable("the store", f"no answer within {_ANSWER_WITHIN:.0f} seconds") from None
        return 0

    async def _stay_up_to_date(self) -> None:
        now = self._clock.monotonic()
        if now - self._listed_at >= _LIST_EVERY:
            self._ids, self._listed_at = await self._local_jobs(), now
            self._looked_at = now - self._refresh
        if now - self._looked_at >= self._refresh:
            self._known = await self._store.look(self._ids) if self._ids else {}
            self._looked_at = now

    async def record(self) -> None:
        """Hand over what was fired; whoever plans meanwhile would run it again."""
        await self._store.now()
        async with self._turn:
            await self._hand_over()

    async def _hand_over(self) -> None:
        local = self._local
        assert local is not None, "only what was fired is handed over"
        local.rest()
        try:
            while (part := local.hand_over(self._node)) is not None:
                await self._record(local, part)
        except StoreUnavailable:
            if self.is_firing:
                local.go_on()
            raise
        finally:
            local.keep()
        self.is_firing, self._settled_at = False, self._clock.monotonic()

    async def stop(self, mode: Literal["cancel", "drain"] = "cancel") -> None:
        """End what is run here, and hand over what can be."""
        if self._runner is None or self._local is None:
            return
        self._local.rest()
        await self._runner.stop(mode)
        try:
            await self.record()
        except StoreUnavailable:
            _log.error("%d occurrences that were fired locally could not be recorded", self._local.unrecorded)

    async def _local_jobs(self) -> list[str]:
        found = [
            record.job.id
            for record in await self._store.list()
            if record.job.settings.on_store_outage is OnStoreOutage.FIRE_LOCAL and self._scope.can_run(record.job)
        ]
        if len(found) > MOST_JOBS:
            _log.warning("%d jobs are to fire without the store, and %d can be kept ready", len(found), MOST_JOBS)
        return found[:MOST_JOBS]

    async def _go_on_without(self) -> None:
        local = self._local
        if self.is_firing:
            if local is not None and local.unrecorded >= MOST_UNRECORDED:
                local.rest()
            return
        away_for = min(self._health.failing_for, self._clock.monotonic() - self._settled_at)
        if not self._known or away_for < self._patience or self._health.is_back:
            return
        if not self._health.has_failed_since(self._settled_at):
            return  # it has taken all that was fired, and nothing has failed since
        if local is not None and local.unrecorded >= MOST_UNRECORDED:
            return
        from everytick.stores.memory.local import LocalStore

        _log.error("%s (%d jobs)", FALLING_BACK, len(self._known))
        if local is None or self._runner is None:
            local = self._local = LocalStore(self._clock.now, self._store)
            self._owned.name_too(local.handed_over)
            self._runner = self._make(local)
            await self._runner.start()
        heard_at = self._clock.now() - timedelta(seconds=self._health.unheard_for)
        for snapshot in self._known.values():
            local.adopt(snapshot, heard_at)
        self.is_firing = True

    async def _record(self, local: "LocalStore", part: "Part") -> None:
        job_id, runs = part.job_id, part.fired.runs
        handles: Sequence[int | None] = [None] * len(runs)
        try:
            handles = await self._store.record(job_id, part.fired)
        except StoreUnavailable:
            raise
        except NotFound:
            _log.warning("what was fired locally of job %s is not recorded: the job is gone", job_id)
        except Exception:  # noqa: BLE001, what cannot be written must not keep everything else from being planned
            _log.exception("what was fired locally of job %s cannot be recorded", job_id)
        else:
            for run, handle in zip(runs, handles, strict=True):
                if handle is None and run.creation.why is Why.UNVERIFIED:
                    self._tell_of_duplicate(job_id, run.creation.id)
        notes = local.notes(part, handles)
        local.settle(handles)
        if notes:
            with suppress(StoreUnavailable):
                await self._store.note(notes)

    # ------------------------------------------------------------------------------------ what runs here as the store's

    def obey(self, orders: Orders) -> Orders:
        """Do what the store said about what runs here; return the orders that are for others.

        What the store counts as this node's though the beat did not name it may just be on its
        way there: it is known here, and is not begun a second time.
        """
        local, runner = self._local, self._runner
        if local is None or runner is None:
            return orders
        here = {theirs: ours for ours, theirs in local.keys.items()}
        mine = Orders(
            tuple((here[key], reason) for key, reason in orders.cancel if key in here),
            tuple(here[key] for key in orders.gone if key in here),
        )
        if mine.cancel or mine.gone:
            runner.inbox.put(OrdersCame(mine))
        return replace(orders, adopt=tuple(each for each in orders.adopt if each.header.id not in local))

    def learn(self, hooks: HookTable) -> None:
        """Call these hooks from now on."""
        if self._runner is not None:
            self._runner.learn(hooks)

    async def settle(self, key: ClaimKey) -> ClaimKey | None:
        """Settle what runs here and cannot be written; return its key in the store if it is the store's."""
        local, runner = self._local, self._runner
        if local is None or runner is None or not local.knows(key):
            return key
        if (at_home := local.keys.get(key)) is not None:
            return at_home
        await runner.reaper.settle_unwritable(key)
        return None

    def _tell_of_duplicate(self, job_id: str, occurrence_id: str) -> None:
        snapshot = self._known.get(job_id)
        name = job_id if snapshot is None else snapshot.editions[-1].job.name
        text = f"{self._node} fired it while the store was away, and another node has recorded it too"
        _log.warning("occurrence %s of job '%s' is a duplicate: %s", occurrence_id, name, text)
        self._events.tell(Event(Happening.DUPLICATE, self._clock.now(), name, occurrence_id, text=text))
