"""Whether a promise is likely to be broken, from how long the runs of the job usually take.

A forecast is for people: nothing is decided by it. What usually happens is the middle 80 % of the newest lengths: the
fastest tenth and the slowest tenth are left out.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from everytick.domain.durations import format_duration
from everytick.domain.job import Job
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.policies import Overlap
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import PromiseState, promises_of
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.upcoming import next_run
from everytick.domain.values import value
from everytick.schedules.deadlines import Deadlines, deadlines

LENGTHS_READ = 50
"""How many of the newest successes say how long a run usually takes."""

_FEWEST = 3
"""With fewer lengths no length counts as usual."""


@value(frozen=True)
class LikelyBreach:
    """A promise that will be broken, or may be, by what is usual; `text` says why.

    `instant` is the one that will not be kept. Of `success_within` it is the run that comes too late.
    """

    kind: PromiseKind
    instant: datetime
    due_at: datetime
    is_certain: bool
    text: str

    def __str__(self) -> str:
        word = "will" if self.is_certain else "may"
        return f"{word} miss {self.due_at.isoformat()} ({self.kind}): {self.text}"


@value
class Usual:
    """How long runs usually take: from the tenth of the fastest to the tenth of the slowest."""

    low: timedelta
    high: timedelta

    def __str__(self) -> str:
        low, high = _rounded(self.low), _rounded(self.high)
        return f"usually takes {low}" if low == high else f"usually takes {low} to {high}"


def usual_length(runs: Sequence[Occurrence]) -> Usual | None:
    """Return how long these runs took; None if they are too few."""
    pairs = ((run.started_at, run.ended_at) for run in runs)
    lengths = sorted(end - begin for begin, end in pairs if begin is not None and end is not None)
    if len(lengths) < _FEWEST:
        return None
    return Usual(lengths[len(lengths) // 10], lengths[-1 - len(lengths) // 10])


def forecasts(
    job: Job,
    seen: JobSnapshot,
    states: Sequence[PromiseState],
    usual: Usual | None,
    started: Sequence[Occurrence],
    now: datetime,
) -> tuple[LikelyBreach, ...]:
    """Return the promises of the job that will or may be broken next; those that are broken already are no news.

    `started` are the occurrences that run now. Without usual lengths nothing is said.
    """
    if usual is None or seen.retire_at is not None or not job.enabled:
        return ()
    promised, breaches = promises_of(job.settings), list[LikelyBreach]()
    for state in states:
        if state.kind not in promised or state.breach is not None:
            continue
        if state.kind is PromiseKind.SUCCESS_WITHIN:
            within = promised[state.kind]
            assert isinstance(within, timedelta), "a success is promised within a length of time"
            breaches += _late_success(seen, state, within, usual, started, now)
        else:
            clock = deadlines(promised[state.kind], job)
            breaches += _late_instants(job, seen, state.kind, clock, usual, started, now)
    return tuple(breaches)


def _late_success(
    seen: JobSnapshot,
    state: PromiseState,
    within: timedelta,
    usual: Usual,
    started: Sequence[Occurrence],
    now: datetime,
) -> Iterator[LikelyBreach]:
    success = None if seen.last_success is None else seen.last_success.ended_at
    anchor = max(moment for moment in (state.judged_through, state.held_through, success) if moment is not None)
    due_at, following = anchor + within, next_run(seen, now)
    begins = [run.started_at for run in started if run.started_at is not None]
    first = min(begins, default=now if seen.waiting_count or seen.busy_count else following)
    if first is None or due_at <= now:
        return
    since = "" if first > now else "not started yet, " if not begins else f"started at {first.isoformat()}, "
    begin = f"the next run is at {first.isoformat()}, " if first > now else since
    yield from _judged(state.kind, first, due_at, (first, first), usual, begin, now)


def _late_instants(
    job: Job,
    seen: JobSnapshot,
    kind: PromiseKind,
    clock: Deadlines,
    usual: Usual,
    started: Sequence[Occurrence],
    now: datetime,
) -> Iterator[LikelyBreach]:
    """Give what is known of the first instant that is not kept yet and may not be."""
    for instant, begins, said in _to_come(job, seen, usual, started, now):
        due_at = clock.of(instant)
        if due_at <= now or (kind is PromiseKind.START_BY and begins[1] <= now):
            continue
        length = usual if kind is PromiseKind.FINISH_BY else Usual(timedelta(0), timedelta(0))
        told = list(_judged(kind, instant, due_at, begins, length, said, now, usual))
        if told:
            yield told[0]
            return


def _judged(
    kind: PromiseKind,
    instant: datetime,
    due_at: datetime,
    begins: tuple[datetime, datetime],
    length: Usual,
    said: str,
    now: datetime,
    usual: Usual | None = None,
) -> Iterator[LikelyBreach]:
    """Give the forecast for a run that begins between these two moments, if it may be late."""
    soonest, latest = max(begins[0] + length.low, now), max(begins[1] + length.high, now)
    if latest > due_at:
        yield LikelyBreach(kind, instant, due_at, soonest > due_at, f"{said}it {usual or length}")


def _to_come(
    job: Job, seen: JobSnapshot, usual: Usual, started: Sequence[Occurrence], now: datetime
) -> Iterator[tuple[datetime, tuple[datetime, datetime], str]]:
    """Give the instants of the schedule that are not over, and the next one: between which moments each begins."""
    begun = {run.id: run.started_at for run in started if run.started_at is not None}
    line = sorted(
        (*seen.busy, *seen.waiting),
        key=lambda occurrence: (occurrence.status is OccurrenceStatus.QUEUED, occurrence.line_at),
    )
    room = job.settings.max_concurrent or (len(line) + 1 if job.settings.overlap is Overlap.ALLOW else 1)
    for place, occurrence in enumerate(line):
        begin = begun.get(occurrence.id)
        if occurrence.cause is not Cause.SCHEDULE:
            continue
        if begin is not None:
            yield occurrence.scheduled_for, (begin, begin), f"started at {begin.isoformat()}, "
            continue
        turns = place // room if occurrence.status is OccurrenceStatus.QUEUED else 0
        before = f"{place} before it in the queue, " if turns else ""
        said = f"not started yet, {before}"
        yield occurrence.scheduled_for, (now + turns * usual.low, now + turns * usual.high), said
    following = next_run(seen, now)
    if following is not None:
        yield following, (following, following), f"it starts at {following.isoformat()}, "


def _rounded(length: timedelta) -> str:
    """Return a length as people say it: minutes beyond an hour, seconds below."""
    unit = 60 if length >= timedelta(hours=1) else 1
    seconds = round(length.total_seconds() / unit) * unit
    return format_duration(timedelta(seconds=seconds)) if seconds else format_duration(length)
