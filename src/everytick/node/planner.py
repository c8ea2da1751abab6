"""The planner: due → plan → commit. Live ticks, late ones, requests and endings all come through here."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from typing import Protocol

from everytick.deciding.plan import plan
from everytick.domain.decisions import Plan, Span, Why, put_off
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
from everytick.domain.values import value
from everytick.node.clock import NodeClock
from everytick.node.events import Event, Events, Happening
from everytick.node.foresight import Foresight
from everytick.node.inbox import Arrived, Inbox
from everytick.node.scope import Scope
from everytick.stores.base import Batch, Commit, CommitAnswer, CommitAway, CommitFailed, Committed, Offer
from everytick.stores.protocols import PlanStore

_log = logging.getLogger("everytick.planner")

BATCH = 500
"""Largest batch of jobs that is planned and committed together; 500 keeps a batch's locks under 50 ms."""


class Wakes(Protocol):
    """A part of the node that looks for work when it is woken."""

    def wake(self) -> None:
        """Look now."""
        ...


class Takes(Wakes, Protocol):
    """The part of the node that takes what plans make."""

    def offer(self, is_wanted: bool) -> AbstractContextManager[Offer | None]:
        """Reserve the free slots for the claims that a commit of plans may bring along, until it is answered."""
        ...


@value
class RoundResult:
    """What a round came to: how many jobs were looked at, and how many of the plans made or changed anything.

    A job whose plan could not be written yet is not counted: it is still due, and is for another round.
    """

    jobs: int = 0
    useful: int = 0

    def __add__(self, other: "RoundResult") -> "RoundResult":
        return RoundResult(self.jobs + other.jobs, self.useful + other.useful)


class Planner:
    """Decides what is due, one batch at a time."""

    def __init__(
        self,
        store: PlanStore,
        clock: NodeClock,
        events: Events,
        *,
        scope: Scope,
        claimer: Takes,
        reporter: Wakes,
        inbox: Inbox,
        limit: int = PLAN_LIMIT,
    ) -> None:
        self._store, self._clock, self._events, self._scope = store, clock, events, scope
        self._claimer, self._reporter, self._inbox, self._limit = claimer, reporter, inbox, limit
        self.foresight = Foresight(store, scope)
        self._is_over, self._open, self._is_idle = False, 0, asyncio.Event()
        self._is_idle.set()

    async def stopped(self) -> None:
        """Commit no further batch; return when those under way are answered: what they claimed along must arrive."""
        self._is_over = True
        await self._is_idle.wait()

    async def round(self) -> RoundResult:
        """Plan everything that is due now, batch by batch.

        What becomes due meanwhile, by endings above all, is for the next round: else thousands
        that end would keep those waiting that have not begun.
        """
        planned = await self._foreseen()
        batch, first = await self._batch()
        if not batch.more or not first.jobs:
            return planned + first
        # Two at once: one is decided while the other is written.
        lanes = [asyncio.ensure_future(self._lane(batch.now)) for _ in range(2)]
        try:
            return sum(await asyncio.gather(*lanes), planned + first)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def _lane(self, by: datetime) -> RoundResult:
        """Plan batch after batch of what is due by this moment until one is empty."""
        planned = RoundResult()
        while True:
            # Between two batches the executor begins what the first one made.
            await asyncio.sleep(0)
            _, last = await self._batch(by)
            planned += last
            if not last.jobs:
                return planned

    async def _batch(self, by: datetime | None = None) -> tuple[Batch, RoundResult]:
        """Plan one batch of what is due now, or by this moment."""
        asked_at = self._clock.monotonic()
        async with self._store.due(self._scope.current, BATCH, by) as batch:
            if by is None:
                self._clock.learn(batch.now, asked_at)
            # A moment that has passed and is still to come: the store's clock was set back.
            if self._is_over or batch.is_ahead:
                return batch, RoundResult()
            ours = self._scope.runnable(batch.snapshots)
            plans = [self._plan(snapshot, batch.now) for snapshot in ours]
            done = await self._commit(batch, plans, is_last=not batch.more)
        away = sum(1 for answer in done.answers if isinstance(answer, CommitAway))
        return batch, RoundResult(len(batch.snapshots) - away, self._tell(ours, plans, done, batch.now))

    async def _commit(self, batch: Batch, plans: Sequence[Plan], *, is_last: bool) -> Committed:
        """Write the plans; with the last of a round the store may give what is first in line along."""
        if not plans:
            return Committed(())
        asked_at = self._clock.monotonic()
        with self._under_way(), self._claimer.offer(is_last) as offer:
            done = await self._store.commit_plans(batch, plans, offer)
            if done.claims:
                self._inbox.put(Arrived(done.claims, asked_at))
        return done

    async def _foreseen(self) -> RoundResult:
        """Write what was decided about this instant before it came; what changed since is planned with the rest."""
        planned = RoundResult()
        if self._is_over or not self.foresight.is_ready:
            return planned
        now = await self._store.now()
        for batch, plans in self.foresight.come(now, BATCH):
            if planned.jobs:
                # Those written so far may start. Not after the last: of the same instant the rest is still to be
                # planned, and may have to come first.
                await asyncio.sleep(0)
            done = await self._commit(batch, plans, is_last=False)
            planned += RoundResult(len(plans), self._tell(batch.snapshots, plans, done, now))
        return planned

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        self._open += 1
        self._is_idle.clear()
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._is_idle.set()

    def _plan(self, snapshot: JobSnapshot, now: datetime) -> Plan:
        """Return the job's plan; one that cannot be made is put off, so that it disturbs no other job."""
        try:
            return plan(snapshot, now, self._limit)
        except Exception:  # noqa: BLE001, a schedule may be anybody's code
            name = snapshot.editions[-1].job.name
            about = {"component": "scheduler", "job": name}
            _log.exception("%s: %s: %s", CLAIM_FAILED, name, NO_NEXT_RUN, extra=about)
            return put_off(snapshot, now)

    def _tell(self, batch: Sequence[JobSnapshot], plans: Sequence[Plan], done: Committed, now: datetime) -> int:
        """Tell the other parts and those who listen what was written; return how many plans made or changed anything.

        What the commit has claimed along is with the claimer already.
        """
        told = self._events.wanted or _log.isEnabledFor(logging.INFO)
        created, ended = -len(done.claims), False
        for snapshot, made, answer in zip(batch, plans, done.answers, strict=True):
            if answer is not Commit.COMMITTED:
                _log_unwritten(snapshot, answer)
                continue
            created += len(made.creations) + len(made.releases) + len(made.cancels)
            # A retry that the next instant would have superseded was not claimable before the plan.
            created += sum(1 for each in snapshot.busy if each.superseded_by_next) if snapshot.busy else 0
            ended = ended or bool(made.endings)
            if told or made.spans:
                self._tell_of(snapshot, made, now)
        if created > 0:
            self._claimer.wake()
        if ended:
            self._reporter.wake()
        return sum(1 for made in plans if made.creations or made.releases or made.endings or made.spans)

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


def _log_unwritten(snapshot: JobSnapshot, answer: CommitAnswer) -> None:
    """Log why a plan was not written, a refused one under the words that both S1-013 and S3-027 have for it."""
    name = snapshot.editions[-1].job.name
    about = {"component": "scheduler", "job": name}
    if isinstance(answer, CommitFailed):
        text = "%s: %s: %s: %s; it is planned again in a minute"
        _log.error(text, CLAIM_FAILED, name, NOT_ENQUEUED, answer.reason, extra=about)
    elif isinstance(answer, CommitAway):
        _log.warning("job '%s' is planned again soon: %s", name, answer.reason, extra=about)
    else:
        _log.debug(TAKEN_BY_ANOTHER)
