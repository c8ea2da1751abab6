"""What the page Now knows of the fleet: a handful of bounded questions, each asked again only as often as it is cheap.

An answer is kept for so many times as long as it took to get. So a page of ten jobs is always fresh, and twenty open
pages of ten thousand jobs ask the store a few times a second.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from fastapi import Request

from everytick.app import Everytick
from everytick.app.store_access import open_store
from everytick.domain.decisions import Span
from everytick.domain.job import Job
from everytick.domain.limits import Limits
from everytick.domain.lookups import Breaches, LimitsAndBrakes, SpansOfJobs
from everytick.domain.promises import BreachRecord
from everytick.domain.questions import (
    CELL,
    Alike,
    Bucket,
    Buckets,
    By,
    FailureKind,
    Glance,
    Glances,
    JobLengths,
    Lengths,
    Question,
    QuestionBatch,
    TimeWindow,
    step_of,
)
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import ACTIVE, FAILURES, OccurrenceStatus
from everytick.domain.values import value
from everytick.stores.addresses import AnyStore
from everytick.stores.base import JobRecord, NodeRecord, Nodes
from everytick.web.known_jobs import KEEP_FACTOR, KnownJobs, MissedInstants, with_moved
from everytick.web.pictures.axis import Axis
from everytick.web.pictures.bands import band_step
from everytick.web.pictures.timeline import MANY_JOBS

T = TypeVar("T")

_CHEAP_SECONDS = 0.005
"""An answer that takes no longer is not kept."""

DAY = timedelta(days=1)
RECENT = timedelta(hours=12)
RECENT_OF_MANY = timedelta(minutes=10)
"""How far back all occurrences are looked at. Of many jobs only the last minutes are: bands show the rest."""

_EXACT_LENGTH_JOBS = 100
"""Of more jobs than this the lengths of runs are those that the rollups hold."""

_MOST_BREACHES = 200
_SIGHTS_KEPT = 8
"""How many windows of time are kept for other readers."""

_VIEWS_KEPT = 12
"""How many readers' pages can be shown as they were while the store is away."""


_KINDS = {"memory": "memory", "sqlite": "SQLite", "postgres": "PostgreSQL", "redis": "Redis"}


class KeptAnswers(Generic[T]):
    """Answers to one question, kept by what was asked. Questions at the same time are asked once.

    When the time of an answer is over, it is given once more while the next is asked for in the background: no reader
    waits for ten thousand definitions. After as long again it counts no more.
    """

    def __init__(self, keep_factor: float, most: int = 1) -> None:
        self._keep_factor, self._most, self._cheap = keep_factor, most, _CHEAP_SECONDS
        self._answers: dict[object, tuple[float, float, T]] = {}
        self._lock, self._changes = asyncio.Lock(), 0
        self._asking: set[asyncio.Task[T]] = set()

    async def get(self, key: object, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the answer that is kept, else ask."""
        until, over, answer = self._answers.get(key, (0.0, 0.0, None))
        now = time.monotonic()
        if answer is None or now >= over:
            return await self._ask(key, ask)
        if now >= until and not self._asking:
            task = asyncio.create_task(self._ask(key, ask))
            self._asking.add(task)
            task.add_done_callback(self._asked)
        return answer

    def _asked(self, task: asyncio.Task[T]) -> None:
        """Forget the task. If it failed, the reader who asks when the old answer is over is told why."""
        self._asking.discard(task)
        if not task.cancelled():
            task.exception()

    async def _ask(self, key: object, ask: Callable[[], Awaitable[T]]) -> T:
        async with self._lock:
            begin = time.monotonic()
            until, _, answer = self._answers.get(key, (0.0, 0.0, None))
            if answer is not None and begin < until:
                return answer  # another reader has asked meanwhile
            changes = self._changes
            answer = await ask()
            took = time.monotonic() - begin
            self._answers.pop(key, None)
            if took > self._cheap and changes == self._changes:
                keep = took * self._keep_factor
                self._answers[key] = begin + keep, begin + 2 * keep, answer
                while len(self._answers) > self._most:
                    self._answers.pop(next(iter(self._answers)))
            return answer

    def forget(self) -> None:
        """Ask anew the next time; what is being asked for now is not kept."""
        self._answers.clear()
        self._changes += 1


class DayStep(NamedTuple):
    """How many occurrences of all bands were due in a step of time, how many failed, and how many had errors."""

    at: datetime
    total: int
    failed: int
    with_errors: int


@value(frozen=True)
class FleetState:
    """All jobs and nodes, what runs, and what went wrong, whatever part of it a reader looks at.

    `recent` has what runs now and what was due since `recent_after`. `day` counts the last 24 hours by band, in steps
    of five minutes, and `steps` all bands together. `lengths` has the longest first. What is found out of all jobs
    together is that of `Listed`. `folder` is where this process watches files of jobs. `took` is how long the store
    needed to answer, in seconds.
    """

    now: datetime
    records: Mapping[str, JobRecord]
    proposals: Sequence[JobRecord]
    nodes: Sequence[NodeRecord]
    failures: Sequence[FailureKind]
    limits: Limits
    breaches: Sequence[BreachRecord]
    recent: Glances
    recent_after: datetime
    day: Sequence[Bucket]
    steps: Sequence[DayStep]
    lengths: Mapping[str, JobLengths]
    silence: timedelta
    bands: Mapping[str, str]
    groups: Mapping[str, Sequence[JobRecord]]
    coming: Sequence[tuple[datetime, str]]
    bad: frozenset[str]
    with_errors: frozenset[str]
    missed: Mapping[str, MissedInstants]
    troubles: Mapping[str, OccurrenceStatus]
    failed_runs: Mapping[str, Glance]
    needs: Mapping[str, Sequence[Job]]
    parked: Mapping[str, str]
    revisions: int
    born: datetime | None
    ids: Mapping[str, str]
    folder: str | None = None
    took: float = 0.0
    store: str = ""

    @property
    def living(self) -> list[NodeRecord]:
        """The nodes that beat."""
        return [node for node in self.nodes if node.is_alive(self.now, self.silence)]

    @property
    def active(self) -> list[Glance]:
        """What runs or waits now, as far as it was seen, the oldest first."""
        return [run for run in reversed(self.recent.runs) if run.status in ACTIVE]

    def name_of(self, job_id: str) -> str:
        """Return the name of a job; its id if it was removed meanwhile."""
        record = self.records.get(job_id)
        return job_id if record is None else record.job.name


@value(frozen=True)
class Sight:
    """What the lanes of one reader show: runs, snapshots and instants that did not run, by job, and bands."""

    runs: Mapping[str, Sequence[Glance]]
    snapshots: Mapping[str, JobSnapshot]
    spans: Mapping[str, Sequence[Span]]
    buckets: Sequence[Bucket]
    step: timedelta
    is_cut: bool = False


class Board:
    """Asks the store for what the page shows, and remembers the last answers for the time when it is away."""

    def __init__(self, tick: Everytick, known: KnownJobs, keep_factor: float = KEEP_FACTOR) -> None:
        self._tick, self._known = tick, known
        self._recent: KeptAnswers[tuple[datetime, Glances]] = KeptAnswers(keep_factor)
        self._slow: dict[str, KeptAnswers[Any]] = {
            name: KeptAnswers(keep_factor) for name in ("nodes", "held", "counted")
        }
        self._sights: KeptAnswers[Sight] = KeptAnswers(keep_factor, _SIGHTS_KEPT)
        self.planned: KeptAnswers[dict[str, dict[datetime, int]]] = KeptAnswers(float("inf"), _SIGHTS_KEPT)
        """What the bands plan, by what was asked for and the step in which it was counted."""
        self._shown: dict[object, Any] = {}

    def remember(self, view: Any, *asked: object) -> None:
        """Keep a `View` under what was asked for, so that it can be shown while the store is away."""
        for key in asked:
            self._shown.pop(key, None)
            self._shown[key] = view
        while len(self._shown) > _VIEWS_KEPT:
            self._shown.pop(next(iter(self._shown)))

    def last_shown(self, asked: object) -> Any:
        """Return the `View` that was last shown for this, else the last one of all, None if there was none."""
        last = self._shown[next(reversed(self._shown))] if self._shown else None
        return self._shown.get(asked, last)

    def forget(self) -> None:
        """Ask everything anew: something was changed through this service."""
        kept: list[KeptAnswers[Any]] = [self._recent, self._sights, self.planned, *self._slow.values()]
        for answers in kept:
            answers.forget()

    async def fleet(self) -> FleetState:
        """Return what is known of all jobs and nodes."""
        begin = time.monotonic()
        tick = self._tick
        store = await open_store(tick)
        now = await store.now()
        took = time.monotonic() - begin
        listed = await self._known.listed()
        records = listed.records
        back = RECENT if len(records) <= MANY_JOBS else RECENT_OF_MANY
        after, recent = await self._recent.get("", lambda: _recent(tick, now - back, now))
        missed = with_moved(listed.missed, recent.runs, records)
        limits, breaches = await self._slow["held"].get("", lambda: _held(store, with_breaches=listed.has_promises))
        failures, day, steps, lengths = await self._slow["counted"].get("", lambda: _counted(store, now, records))
        return FleetState(
            now=now,
            records=records,
            proposals=listed.proposed,
            nodes=await self._slow["nodes"].get("", lambda: store.ask(Nodes())),
            failures=failures,
            limits=limits,
            breaches=breaches,
            recent=recent,
            recent_after=after,
            day=day,
            steps=steps,
            lengths=lengths,
            silence=tick.settings.node_timeout,
            bands=listed.bands,
            groups=listed.groups,
            coming=listed.coming,
            bad=listed.bad,
            with_errors=listed.with_errors,
            missed=missed,
            troubles={**dict.fromkeys(missed, OccurrenceStatus.MISSED), **listed.troubles},
            failed_runs=listed.failed_runs,
            needs=listed.needs,
            parked=listed.parked,
            revisions=listed.revisions,
            born=listed.born,
            ids=listed.ids,
            folder=str(tick.jobs_folder) if tick.jobs_folder is not None else None,
            took=took,
            store=_KINDS[store.address.kind],
        )

    async def sight(self, fleet: FleetState, axis: Axis, job_ids: Sequence[str], *, with_bands: bool = True) -> Sight:
        """Return what the lanes of these jobs show, and the bands of the axis."""
        key = (tuple(job_ids), axis.length, None if axis.shows_now else axis.through, with_bands)
        return await self._sights.get(key, lambda: self._ask_sight(fleet, axis, job_ids, with_bands=with_bands))

    async def _ask_sight(self, fleet: FleetState, axis: Axis, job_ids: Sequence[str], *, with_bands: bool) -> Sight:
        store = await open_store(self._tick)
        since, through = min(axis.after, fleet.now - RECENT), min(axis.through, fleet.now)
        step, ids = band_step(axis), tuple(job_ids)
        is_day = step == timedelta(minutes=5) and axis.after >= fleet.now - DAY
        asks_runs = bool(ids) and (since < fleet.recent_after or fleet.recent.is_cut)
        asks_steps = with_bands and axis.after < fleet.now and not is_day
        asked: list[Question[Any]] = [SpansOfJobs(ids, since, fleet.now)] if ids else []
        asked += [TimeWindow(since, max(axis.through, fleet.now), job_ids=ids)] if asks_runs else []
        asked += [Buckets(axis.after, through, step, By.BAND)] if asks_steps else []
        answers = iter(await store.ask(QuestionBatch(tuple(asked)))) if asked else iter(())
        spans: Mapping[str, Sequence[Span]] = next(answers) if ids else {}
        found: Glances = next(answers) if asks_runs else fleet.recent
        buckets: Sequence[Bucket] = next(answers) if asks_steps else ()
        if with_bands and axis.after < fleet.now and is_day:
            buckets = fleet.day
        snapshots = await store.look(ids) if ids else {}
        return Sight(_by_job(found, ids), snapshots, spans, buckets, step, found.is_cut)


def board_of(request: Request) -> Board:
    """Return the board of the service."""
    found = request.app.state.board
    assert isinstance(found, Board), "asgi() sets it"
    return found


async def _held(store: AnyStore, *, with_breaches: bool) -> tuple[Limits, Sequence[BreachRecord]]:
    """Return the limits and brakes, and the promises that are broken now."""
    if not with_breaches:
        return await store.ask(LimitsAndBrakes()), ()
    asked = QuestionBatch((LimitsAndBrakes(), Breaches(is_open=True, limit=_MOST_BREACHES)))
    limits, breaches = await store.ask(asked)
    return limits, breaches


def _by_job(found: Glances, job_ids: Sequence[str]) -> dict[str, list[Glance]]:
    """Return the runs of these jobs, oldest first."""
    runs: dict[str, list[Glance]] = {id_: [] for id_ in job_ids}
    for run in reversed(found.runs):
        if run.job_id in runs:
            runs[run.job_id].append(run)
    return runs


async def _counted(
    store: AnyStore, now: datetime, records: Mapping[str, JobRecord]
) -> tuple[Sequence[FailureKind], Sequence[Bucket], Sequence[DayStep], Mapping[str, JobLengths]]:
    """Return the failures of the last day, what each band and all of them did in it, and how long jobs take."""
    ids = tuple(records) if len(records) <= _EXACT_LENGTH_JOBS else None
    asked = (Alike(now - DAY), Buckets(step_of(now - DAY, CELL), now, by=By.BAND), Lengths(ids))
    failures, day, lengths = await store.ask(QuestionBatch(asked))
    longest_first = sorted(lengths.items(), key=lambda item: item[1].p50, reverse=True)
    return failures, day, _steps(day), dict(longest_first)


def _steps(day: Iterable[Bucket]) -> list[DayStep]:
    """Return the steps of all bands together: pages add them up, and a day of 20 bands has 5,760 buckets."""
    counts: dict[datetime, list[int]] = {}
    for bucket in day:
        step = counts.setdefault(bucket.at, [0, 0, 0])
        step[0] += bucket.tally.total
        step[1] += bucket.tally.of(*FAILURES - {_WITH_ERRORS})
        step[2] += bucket.tally.of(_WITH_ERRORS)
    return [DayStep(at, *numbers) for at, numbers in counts.items()]


_WITH_ERRORS = OccurrenceStatus.COMPLETED_WITH_ERRORS


async def _recent(tick: Everytick, after: datetime, now: datetime) -> tuple[datetime, Glances]:
    return after, await tick.window(after, now)
