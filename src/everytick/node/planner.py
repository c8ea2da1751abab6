"""The planner: due → plan → commit. Live ticks, late ones, requests and endings all come through here."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol, runtime_checkable

from everytick.deciding.plan import plan
from everytick.domain.decisions import Plan, Span, Why
from everytick.domain.snapshots import PLAN_LIMIT, JobSnapshot
from everytick.domain.statuses import ENDED
from everytick.domain.texts import (
    CLAIM_FAILED,
    CLAIMED,
    NO_NEXT_RUN,
    NOT_ENQUEUED,
    OVERLAP_SKIPPED,
    TAKEN_BY_ANOTHER,
)
from everytick.errors import Contended, StoreUnavailable
from everytick.node.claimer import Commits
from everytick.node.clock import NodeClock
from everytick.node.events import Event, Events, Happening
from everytick.node.foresight import Foresight
from everytick.node.scope import Scope
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Commit
from everytick.stores.protocols import PlansAtOnce

_log = logging.getLogger("everytick.planner")

BATCH = 500
"""So many jobs are planned and committed together at most."""

_LOOK_AGAIN = timedelta(minutes=1)
_IN_THE_WAY = timedelta(seconds=2)
_TRIED_AGAIN = 10
_MOST_ASIDE = 20_000


class Wakes(Protocol):
    """Whoever is to look now."""

    def wake(self) -> None:
        """Look now."""
        ...


@runtime_checkable
class Takes(Wakes, Protocol):
    """Whoever may take at once what a plan makes."""

    async def offer(self, commit: Commits) -> tuple[list[Commit], int]:
        """Let a commit of plans bring what it makes along; return its answer and how many came."""
        ...


class Planner:
    """Decides what is due, one batch at a time."""

    def __init__(
        self,
        store: AnyStore,
        clock: NodeClock,
        events: Events,
        *,
        scope: Scope,
        executor: Wakes,
        reporter: Wakes,
        limit: int = PLAN_LIMIT,
    ) -> None:
        self._store, self._clock, self._events, self._scope = store, clock, events, scope
        self._executor, self._reporter, self._limit = executor, reporter, limit
        self.foresight = Foresight(store, scope)
        self._at_once: tuple[PlansAtOnce, Takes] | None = None
        if isinstance(store, PlansAtOnce) and isinstance(executor, Takes):
            self._at_once = store, executor
        # Jobs of which nothing at all can be written: at which revision, and when to try again.
        self._aside: dict[str, tuple[int, datetime]] = {}
        self.is_held: Callable[[], bool] = lambda: False
        """Whether nothing may be planned now: asked again after each answer, for it may have been long in coming."""
        self.useful = 0

    @property
    def claims_along(self) -> bool:
        """Whether plans bring what they make along."""
        return self._at_once is not None

    async def round(self) -> int:
        """Plan everything that is due now, batch by batch, and return how many jobs that were.

        What becomes due meanwhile, by endings above all, is for the next round: else thousands
        that end would keep those waiting that have not begun. `useful` counts the plans so far
        that made or changed anything.
        """
        if not self._aside and (planned := await self._few()) is not None:
            return planned
        asked_at = self._clock.monotonic()
        now = await self._store.now()
        self._clock.learn(now, asked_at)
        if self.is_held():
            return 0
        foreseen = await self._foreseen(now)
        planned = await self._batch(now)
        if planned >= BATCH:
            planned += await self._rest(now)
        if self._aside and await self._works_again(now):
            planned += await self._batch(now)
        return foreseen + planned

    async def _foreseen(self, now: datetime) -> int:
        """Write what was decided about this instant before it came; what changed since is planned as ever."""
        planned = 0
        for batch, plans in self.foresight.come(now, BATCH):
            if planned:
                # Those written so far may start. Not after the last: of the same instant the rest is still to be
                # planned, and may have to come first.
                await asyncio.sleep(0)
            try:
                commits = await self._store.commit_plans(batch, plans)
            except StoreUnavailable:
                raise
            except Exception:  # noqa: BLE001, whatever a driver raises; they are still due
                _log.exception("what was decided ahead could not be written: it is decided again")
                continue
            self._tell(batch, plans, commits, now)
            planned += len(batch)
        return planned

    async def _few(self) -> int | None:
        """Plan what is due if that is little, in as few questions as can be; None where it has to be done at length."""
        if self._at_once is None:
            return None
        store, executor = self._at_once
        asked_at = self._clock.monotonic()
        seen = await store.glance(self._scope.current, BATCH)
        if seen is None:
            return None
        now, batch = seen
        self._clock.learn(now, asked_at)
        if self.is_held():
            return 0
        if ours := self._scope.runnable(batch):
            try:
                plans = [self._plan(snapshot, now) for snapshot in ours]
                commits, taken = await executor.offer(partial(store.commit_and_claim, batch, plans))
            except Contended:
                return await self._alone(now)
            except StoreUnavailable:
                raise
            except Exception:  # noqa: BLE001, whatever a driver raises
                return await self._failed(now)
            self._tell(ours, plans, commits, now, taken)
        return len(batch)

    async def _rest(self, now: datetime) -> int:
        """Plan what else is due; where a batch is held, two at once: one is decided while the other is written."""
        if not self._store.holds_due or self._aside:
            return await self._lane(now, BATCH)
        # One that is not full says little: the other may just have had what this one saw.
        lanes = [asyncio.ensure_future(self._lane(now, 1)) for _ in range(2)]
        try:
            return sum(await asyncio.gather(*lanes))
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def _lane(self, now: datetime, enough: int) -> int:
        """Plan batch after batch until one has fewer jobs than are enough to go on."""
        planned = 0
        while True:
            # Between two batches the executor begins what the first one made.
            await asyncio.sleep(0)
            last = await self._batch(now)
            planned += last
            if last < enough:
                return planned

    async def _batch(self, now: datetime) -> int:
        try:
            return await (self._around(now) if self._aside else self._together(now))
        except Contended:
            return await self._alone(now)
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001, whatever a driver raises
            return await self._failed(now)

    async def _failed(self, now: datetime) -> int:
        _log.exception("a batch of plans could not be written: each is written alone")
        return await self._alone(now)

    async def _alone(self, now: datetime) -> int:
        """Plan one job after another; one whose plan cannot be written is put off and disturbs no other."""
        planned, failures = 0, list[Exception]()
        while ids := await self._not_aside(now):
            for id_ in ids:
                for snapshot in (await self._store.look([id_])).values():
                    error = await self._failure_of(snapshot, now)
                    failures += [] if error is None else [error]
            planned += len(ids)
            if len(failures) < planned:
                # Those that were put aside stay there for a while: it is about them, and not about the store.
                later = now + _LOOK_AGAIN
                self._aside = {
                    id_: (revision, at if at > now else later) for id_, (revision, at) in self._aside.items()
                }
                return planned
            if len(self._aside) >= _MOST_ASIDE:
                break
        if failures:
            # Not one could be written: this is about the store, unless other sessions are in the way of each.
            await self._store.check_writable()
            for error in failures:
                if not isinstance(error, Contended):
                    raise error
        return planned

    async def _failure_of(self, snapshot: JobSnapshot, now: datetime) -> Exception | None:
        """Plan one job; return why that could not be written, None where it could."""
        try:
            made = self._plan(snapshot, now)
            self._tell([snapshot], [made], await self._store.commit_plans([snapshot], [made]), now)
        except Contended as error:
            name = snapshot.editions[-1].job.name
            _log.warning("job '%s' is planned again in %.0f seconds: %s", name, _IN_THE_WAY.total_seconds(), error)
            self._aside[snapshot.job_id] = snapshot.revision, now + _IN_THE_WAY
            return error
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001, whatever a driver raises about one plan
            _say_failed(snapshot, NOT_ENQUEUED)
            if not await self._is_put_off(snapshot, now) and len(self._aside) < _MOST_ASIDE:
                self._aside[snapshot.job_id] = snapshot.revision, now
            return error
        return None

    async def _is_put_off(self, snapshot: JobSnapshot, now: datetime) -> bool:
        """Let it be looked at again later; say whether that could be written."""
        try:
            await self._store.commit_plans([snapshot], [_put_off(snapshot, now)])
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001, it stays due, and is left out of what is planned together
            return False
        return True

    async def _around(self, now: datetime) -> int:
        """Plan what is due without the jobs of which nothing can be written: these stay due, and are first in line."""
        ids = await self._not_aside(now)
        if not ids:
            return 0
        batch = list((await self._store.look(ids)).values())
        plans = [self._plan(snapshot, now) for snapshot in batch]
        self._tell(batch, plans, await self._store.commit_plans(batch, plans), now)
        return len(ids)

    async def _not_aside(self, now: datetime) -> list[str]:
        """Return the jobs that are due and not put aside; what was changed since is none of these any more."""
        aside = self._aside
        async with self._store.due(self._scope.current, now, BATCH + len(aside)) as batch:
            ours = self._scope.runnable(batch)
            found = [each.job_id for each in ours if each.job_id not in aside or aside[each.job_id][0] != each.revision]
        for id_ in found[:BATCH]:
            aside.pop(id_, None)
        return found[:BATCH]

    async def _works_again(self, now: datetime) -> bool:
        """Try some of those again that were put aside; if one can be written, so may all of them."""
        # None waits longer than this: one that seems to was put aside before the store's clock was set back.
        latest = now + _LOOK_AGAIN
        again = [id_ for id_, (_, at) in self._aside.items() if at <= now or at > latest][:_TRIED_AGAIN]
        for id_ in again:
            del self._aside[id_]
            for snapshot in (await self._store.look([id_])).values():
                if await self._failure_of(snapshot, now) is None:
                    self._aside.clear()
                    return True
                self._aside[id_] = snapshot.revision, now + _LOOK_AGAIN
        return False

    async def _together(self, now: datetime) -> int:
        async with self._store.due(self._scope.current, now, BATCH) as batch:
            if not batch or self.is_held():
                return 0
            ours = self._scope.runnable(batch)
            plans = [self._plan(snapshot, now) for snapshot in ours]
            commits = await self._store.commit_plans(batch, plans)
        self._tell(ours, plans, commits, now)
        return len(batch)

    def _plan(self, snapshot: JobSnapshot, now: datetime) -> Plan:
        """Return the job's plan; one that cannot be made is put off, so that it disturbs no other job."""
        try:
            return plan(snapshot, now, self._limit)
        except Exception:  # noqa: BLE001, a schedule may be anybody's code
            _say_failed(snapshot, NO_NEXT_RUN)
            return _put_off(snapshot, now)

    def _tell(
        self,
        batch: Sequence[JobSnapshot],
        plans: Sequence[Plan],
        commits: Sequence[Commit],
        now: datetime,
        taken: int = 0,
    ) -> None:
        """Tell whoever wants to know; `taken` of what was made is in the executor's hands already."""
        told = self._events.wanted or _log.isEnabledFor(logging.INFO)
        created, ended = -taken, False
        self.useful += sum(1 for made in plans if made.creations or made.releases or made.endings or made.spans)
        for snapshot, made, commit in zip(batch, plans, commits, strict=True):
            if commit is Commit.STALE:
                _log.debug(TAKEN_BY_ANOTHER)
                continue
            created += len(made.creations) + len(made.releases) + len(made.cancels)
            # A retry that the next instant would have superseded was not claimable before the plan.
            created += sum(1 for each in snapshot.busy if each.superseded_by_next) if snapshot.busy else 0
            ended = ended or bool(made.endings)
            if told or made.spans:
                self._tell_of(snapshot, made, now)
        if created > 0:
            self._executor.wake()
        if ended:
            self._reporter.wake()

    def _tell_of(self, snapshot: JobSnapshot, made: Plan, now: datetime) -> None:
        name = snapshot.editions[-1].job.name
        if made.creations:
            about = {"component": "scheduler", "job": name, "next_run": made.next_run}
            _log.info("%s %s, next_run_at %s", CLAIMED, name, made.next_run, extra=about)
        for creation in made.creations:
            kind = Happening.SKIPPED if creation.status in ENDED else Happening.CREATED
            text = f"{creation.why} {creation.detail}".strip()
            self._events.tell(
                Event(kind, now, name, creation.id, creation.scheduled_for, status=creation.status, text=text)
            )
        for span in made.spans:
            first = _first_of(snapshot, span)
            _log_span(name, span, first, made.next_run)
            text = f"{span.why} {span.detail}".strip()
            told = partial(Event, Happening.SKIPPED, now, name, scheduled_for=span.through, status=span.status)
            self._events.tell(told(text=text, count=span.count, first=first))
        for ending in made.endings:
            text = f"{ending.why} {ending.detail}".strip()
            self._events.tell(Event(Happening.ENDED, now, name, ending.id, status=ending.status, text=text))


_LOST_RUNS = {
    Why.MISSED: logging.WARNING,
    Why.CAP: logging.WARNING,
    Why.NOT_LAST: logging.INFO,
    Why.WINDOW: logging.INFO,
}
"""What an outage cost, and how loudly that is said: what recovery dropped by its own bounds is its ordinary work."""


def _first_of(snapshot: JobSnapshot, span: Span) -> datetime | None:
    """The first instant of a span; None where its definition is not at hand."""
    named = [each.job for each in snapshot.editions if each.job.version == span.version]
    found = named[0].bound(None).next_after(span.after) if named else None
    return found if found is not None and found <= span.through else None


def _log_span(name: str, span: Span, first: datetime | None, next_run: datetime | None) -> None:
    """Log instants that did not run for one reason as one line."""
    about = {"component": "scheduler", "job": name, "next_run": next_run}
    if span.why is Why.OVERLAP:
        _log.info(OVERLAP_SKIPPED.format(name=name), extra=about)
    elif span.why in _LOST_RUNS:
        many = "more than 10,000 instants" if span.count is None else f"{span.count} instant{'s' * (span.count != 1)}"
        between = f"at {span.through}" if span.count == 1 else f"from {first or span.after} through {span.through}"
        told = f"{span.status}: {span.why}" if str(span.why) != str(span.status) else str(span.why)
        after = "it has no next run" if next_run is None else f"the next run is at {next_run}"
        text = "job '%s': %s %s did not run (%s) and will not be made up for; %s"
        _log.log(_LOST_RUNS[span.why], text, name, many, between, told, after, extra=about)


def _say_failed(snapshot: JobSnapshot, why: str) -> None:
    """Log the exception at hand, under the words that both S1-013 and S3-027 have for it."""
    name = snapshot.editions[-1].job.name
    _log.exception("%s: %s: %s", CLAIM_FAILED, name, why, extra={"component": "scheduler", "job": name})


def _put_off(snapshot: JobSnapshot, now: datetime) -> Plan:
    """Decide nothing, and look again in a while."""
    return Plan(snapshot.job_id, snapshot.revision, snapshot.woken, snapshot.watermark, now + _LOOK_AGAIN)
