"""Outage: what a node fires by itself while its store is away, and how that is handed over afterwards.

Only jobs whose `on_store_outage` says so. A second engine plans and runs them on a store in
memory that begins at their last known state. When the store answers, the node reports all these
occurrences, running ones too. The store then counts them as this node's. The node writes their
steps under the fence it gets. Other nodes may have fired the same jobs: an occurrence that the
store has already is told as a duplicate.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from everytick.domain.decisions import Plan, Why
from everytick.domain.policies import OnStoreOutage
from everytick.domain.texts import FALLING_BACK
from everytick.errors import NotFound, StoreUnavailable
from everytick.node.events import Event, Happening
from everytick.node.health import in_time
from everytick.node.hooks import HookTable
from everytick.node.occurrence import OwnedKeys
from everytick.node.scope import Scope
from everytick.node.stopping import StopMode
from everytick.node.tools import Tools
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Batch, Committed, NodeScope, Offer, Orders
from everytick.stores.protocols import PlanStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everytick.domain.fired import Fired
    from everytick.domain.snapshots import JobSnapshot
    from everytick.node.local_engine import LocalEngine
    from everytick.stores.memory.local import LocalStore, Part

_log = logging.getLogger("everytick.outage")

MOST_JOBS = 1_000
"""Most jobs whose last state is kept: reading more every few seconds would load the store."""

MOST_UNRECORDED = 10_000
"""Most unrecorded occurrences. Beyond that nothing is fired until the store is back: they are in memory."""

_LIST_SECONDS = 60.0
"""How often the list of jobs is read again. A newly defined job is covered after this time."""

_FIRST_LIST_SECONDS = 3.0
"""How long after the start they are looked up first: a start is busy with takeovers."""

_REFUSED = (
    "since the store refuses them: those that have not ended are stopped, and the store plans these instants again "
    "by `recovery`. Check what the task did at these times, for it may do it twice; other jobs go on"
)
"""What follows when the store does not take what was fired of a job. Its watermark has not moved there."""


class Outage:
    """Watches for an outage, fires jobs during it, and hands the runs over afterwards."""

    def __init__(self, store: AnyStore, tools: Tools, scope: Scope, owned: OwnedKeys) -> None:
        self._store, self._tools, self._scope, self._owned = store, tools, scope, owned
        self._clock, self._health, self._node = tools.clock, tools.health, scope.current.node
        # The store must have been away for as long before anything is fired: another node may still reach it.
        self._patience = self._refresh = tools.settings.poll.total_seconds()
        self._ids: list[str] = []
        self._known: Mapping[str, JobSnapshot] = {}  # by id, as last seen
        self._listed_at = self._clock.monotonic() - _LIST_SECONDS + _FIRST_LIST_SECONDS
        self._looked_at = self._listed_at
        self._local: LocalEngine | None = None
        self._settled_at = float("-inf")
        self._turn = asyncio.Lock()
        self._is_firing = False

    @property
    def has_news(self) -> bool:
        """Whether something was fired that the store does not know yet."""
        return self._local is not None and (self._is_firing or self._local.store.has_news)

    def gate(self, store: PlanStore) -> PlanStore:
        """Return the store as the node's planner asks it: only once it knows everything that was fired."""
        return _Gate(self, store)

    async def look(self) -> int:
        """Begin to fire when the store has been away for too long, stay up to date while it is there."""
        if self._health.failing_for:
            self._go_on_without()
            return 0
        await self.settle()
        await in_time(self._stay_up_to_date())
        return 0

    def split(self, orders: Orders) -> tuple[Orders, Orders]:
        """Return the orders for the node's own engine, and those about what the local engine runs.

        An occurrence that the store counts as this node's though the beat did not name it may just
        be on its way there: it is known here, and is not begun a second time.
        """
        if self._local is None:
            return orders, Orders()
        local, here = self._local.store, {theirs: ours for ours, theirs in self._local.store.keys.items()}
        mine = Orders(
            tuple((here[key], reason) for key, reason in orders.cancel if key in here),
            tuple(here[key] for key in orders.gone if key in here),
        )
        return replace(orders, adopt=tuple(claim for claim in orders.adopt if claim.header.id not in local)), mine

    def obey(self, orders: Orders) -> None:
        """Do what the store said about what the local engine runs."""
        if self._local is not None and (orders.cancel or orders.gone):
            self._local.obey(orders)

    def learn(self, hooks: HookTable) -> None:
        """Call these hooks from now on, and look again at jobs that could not be run."""
        if self._local is not None:
            self._local.learn(hooks)

    def learn_again(self) -> None:
        """Look again at jobs that could not be run."""
        if self._local is not None:
            self._local.learn_again()

    def hasten(self) -> None:
        """Tell what runs to stop, though the node waits for its end."""
        if self._local is not None:
            self._local.hasten()

    async def stop(self, mode: StopMode, grace: timedelta) -> None:
        """Stop the local engine, and hand over its runs if the store answers."""
        if self._local is None:
            return
        await self._local.stop(mode, grace)
        try:
            await self.settle()
        except StoreUnavailable:
            text = "%d occurrences that were fired locally are recorded nowhere: the store is away, and this node ends"
            _log.error(text, self._local.store.unrecorded)

    # ----------------------------------------------------------------------------------------- while the store is there

    async def _stay_up_to_date(self) -> None:
        now = self._clock.monotonic()
        if now - self._listed_at >= _LIST_SECONDS:
            self._ids, self._listed_at = await self._local_jobs(), now
            self._looked_at = now - self._refresh
        if now - self._looked_at >= self._refresh:
            self._known = await self._store.look(self._ids) if self._ids else {}
            self._looked_at = now

    async def _local_jobs(self) -> list[str]:
        job_ids = [
            record.job.id
            for record in await self._store.list()
            if record.job.settings.on_store_outage is OnStoreOutage.FIRE_LOCAL and self._scope.can_run(record.job)
        ]
        if len(job_ids) > MOST_JOBS:
            text = "%d jobs are to fire without the store, and %d can be kept ready: the others wait for the store"
            _log.warning(text, len(job_ids), MOST_JOBS)
        return job_ids[:MOST_JOBS]

    # ------------------------------------------------------------------------------------------------- while it is away

    def _go_on_without(self) -> None:
        if self._is_firing:
            if self._is_full and self._local is not None:
                self._local.store.rest()
            return
        away_for = min(self._health.failing_for, self._clock.monotonic() - self._settled_at)
        if not self._known or away_for < self._patience or self._health.is_back or self._is_full:
            return
        if not self._health.has_failed_since(self._settled_at):
            return  # it has taken all that was fired, and nothing has failed since
        self._fire()

    @property
    def _is_full(self) -> bool:
        return self._local is not None and self._local.store.unrecorded >= MOST_UNRECORDED

    def _fire(self) -> None:
        text = "%s (%d jobs); they fire from memory until the store answers, and are handed over to it then"
        _log.error(text, FALLING_BACK, len(self._known))
        if self._local is None:
            from everytick.node.local_engine import LocalEngine

            self._local = LocalEngine(self._store, self._tools, self._scope)
            self._owned.name_too(self._local.store.handed_over)
            self._local.begin()
        heard_at = self._clock.now() - timedelta(seconds=self._health.unheard_for)
        for snapshot in self._known.values():
            self._local.store.adopt(snapshot, heard_at)
        self._is_firing = True

    # ------------------------------------------------------------------------------------------------ when it is back

    async def settle(self) -> None:
        """Hand over fired runs that the store does not know: a plan before that would run them again."""
        if self.has_news:
            await self._record_all()

    async def _record_all(self) -> None:
        await in_time(self._store.now())
        async with self._turn:
            await self._hand_over()

    async def _hand_over(self) -> None:
        assert self._local is not None, "only what was fired is handed over"
        local = self._local.store
        local.rest()
        try:
            while (part := local.hand_over(self._node)) is not None:
                await self._record(local, part)
        except StoreUnavailable:
            if self._is_firing:
                local.go_on()
            raise
        finally:
            local.keep()
        self._is_firing, self._settled_at = False, self._clock.monotonic()
        # Ends that owe a notice owe it to this store now.
        self._tools.reporter.wake()

    async def _record(self, local: "LocalStore", part: "Part") -> None:
        job_id, runs = part.job_id, part.fired.runs
        handles: Sequence[int | None] = [None] * len(runs)
        is_refused = False
        try:
            handles = await in_time(self._store.record(job_id, part.fired))
        except StoreUnavailable:
            raise
        except NotFound:
            _log.warning(
                "%s, since the job was deleted: those that have not ended are stopped", _unrecorded(job_id, part.fired)
            )
        except Exception:  # noqa: BLE001, what cannot be written must not keep everything else from being planned
            is_refused = True
            _log.exception("%s, %s", _unrecorded(job_id, part.fired), _REFUSED)
        else:
            for run, handle in zip(runs, handles, strict=True):
                if handle is None and run.creation.why is Why.UNVERIFIED:
                    self._tell_of_duplicate(job_id, run.creation.id)
        notes = local.notes(part, handles)
        local.settle(handles, is_refused=is_refused)
        if notes:
            with suppress(StoreUnavailable):
                await in_time(self._store.note(notes))

    def _tell_of_duplicate(self, job_id: str, occurrence_id: str) -> None:
        snapshot = self._known.get(job_id)
        name = job_id if snapshot is None else snapshot.editions[-1].job.name
        text = f"{self._node} fired it while the store was away, and another node has recorded it too"
        _log.warning(
            "occurrence %s of job '%s' is a duplicate: %s; both ran, so check what the task did at this time",
            occurrence_id,
            name,
            text,
        )
        self._tools.listeners.meter.duplicate(job_id)
        self._tools.listeners.tell(Event(Happening.DUPLICATE, self._clock.now(), name, occurrence_id, text=text))


def _unrecorded(job_id: str, fired: "Fired") -> str:
    """Return the first half of a log line: how many runs the store does not have, and for which times they were."""
    instants = sorted(run.creation.scheduled_for for run in fired.runs)
    times = f" for {instants[0]:%Y-%m-%d %H:%M:%S} to {instants[-1]:%Y-%m-%d %H:%M:%S} UTC" if instants else ""
    return f"{len(instants)} runs of job {job_id} that were fired while the store was away{times} are recorded nowhere"


class _Gate:
    """A store that gives no due jobs before it has recorded the runs that were fired while it was away."""

    def __init__(self, outage: Outage, store: PlanStore) -> None:
        self._outage, self._store = outage, store

    async def now(self) -> datetime:
        """Return the store's time, after everything was handed over."""
        while True:
            await self._outage.settle()
            now = await self._store.now()
            if not self._outage.has_news:
                return now

    @asynccontextmanager
    async def due(self, scope: NodeScope, limit: int, by: datetime | None = None) -> AsyncIterator[Batch]:
        """Give due jobs after all runs were handed over. An answer that waited through an outage is dropped."""
        while True:
            await self._outage.settle()
            async with self._store.due(scope, limit, by) as batch:
                if not self._outage.has_news:
                    yield batch
                    return

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        """Write each plan."""
        return await self._store.commit_plans(batch, plans, offer)
