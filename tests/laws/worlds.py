"""A tiny world in which plans come true: a job that lives through ticks, outages, pauses, edits and requests.

`committed` is what any store must make of a plan; the facts below are what people and nodes write
between two plans. Everything is a value, so that a history can be looked at step by step.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from hypothesis import strategies as st

from everytick import schedule
from everytick.deciding.plan import plan
from everytick.domain.backfills import BackfillOrder, BackfillStatus, OpenBackfill
from everytick.domain.config import Level, overrides
from everytick.domain.decisions import Plan
from everytick.domain.facts import Adjusts, Amend, Move, Skip, Undo, adjusted
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.occurrence import Cause
from everytick.domain.policies import Overlap, Recovery
from everytick.domain.schedule import waits_for_end
from everytick.domain.snapshots import (
    PLAN_LIMIT,
    Active,
    Adjustment,
    AdjustmentKind,
    Edition,
    Ended,
    JobSnapshot,
    Missed,
    PausedSpan,
    Request,
    Rescheduled,
)
from everytick.domain.statuses import BUSY, OccurrenceStatus

BEGIN = datetime(2026, 11, 16, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TICK = timedelta(microseconds=1)
RULES = (
    "0 * * * *",
    "*/7 * * * *",
    "15,30,45,0 * * * *",
    "30 2,14 * * *",
    "every: 45s",
    "every: 13m",
    "(every: 1h) | (20 * * * *)",
    "after: 10m",
    "(after: 25m) | (0 * * * *)",
    "once: 2026-11-16T03:00:00Z",
)


class Looked(NamedTuple):
    """One look at the job: what was seen, when, how much was allowed, and what was decided."""

    snapshot: JobSnapshot
    now: datetime
    limit: int
    plan: Plan

    def __repr__(self) -> str:
        return f"<at {self.now}, limit {self.limit}: {self.plan}>"


class History(list[Looked]):
    """All looks at one job; how it came about is told by hypothesis, what was seen would fill pages."""

    def __repr__(self) -> str:
        return f"<{len(self)} looks>"


Fact = Callable[[JobSnapshot, datetime], JobSnapshot]


# ------------------------------------------------------------------------------------------- what a store does


def committed(seen: JobSnapshot, plan: Plan) -> JobSnapshot:
    """Return the job after the plan was committed: create-if-absent, and nothing that was not decided."""
    lined = {each.id: each for each in (*seen.busy, *seen.waiting)}
    for each in plan.creations:
        if each.status in (OccurrenceStatus.PENDING, OccurrenceStatus.QUEUED):
            made = Active(each.id, each.line_at, each.scheduled_for, each.status, each.cause, late=each.late)
            lined.setdefault(each.id, made)
    for id_ in plan.releases:
        assert lined[id_].status is OccurrenceStatus.QUEUED, "only who waits is released"
        lined[id_] = replace(lined[id_], status=OccurrenceStatus.PENDING)
    for ending in plan.endings:
        del lined[ending.id]
    return with_active(
        replace(
            seen,
            revision=seen.revision + 1,
            watermark=plan.watermark,
            wake_at=plan.wake_at,
            requests=_left(seen.requests, plan),
            backfill=_filled(seen.backfill, plan),
            adjustments=_open(seen.adjustments, plan),
            reschedule=None if plan.rescheduled else seen.reschedule,
            narrowed_at=None if plan.narrowed else seen.narrowed_at,
            stopped_at=plan.stopped_at or seen.stopped_at,
            pauses=tuple(each for each in seen.pauses if each.until is None or each.until > plan.watermark),
            editions=_needed(seen.editions, plan.watermark),
        ),
        lined.values(),
    )


def with_active(seen: JobSnapshot, active: Any) -> JobSnapshot:
    """Return the job with exactly these active occurrences."""
    lined = sorted(active, key=lambda each: (each.line_at, each.id))
    busy = tuple(each for each in lined if each.status in BUSY)
    waiting = tuple(each for each in lined if each.status not in BUSY)
    return replace(seen, busy=busy, busy_count=len(busy), waiting=waiting, waiting_count=len(waiting))


def _left(requests: tuple[Request, ...], plan: Plan) -> tuple[Request, ...]:
    answers = {(each.cause, each.key) for each in plan.answers}
    return tuple(each for each in requests if (each.cause, each.key) not in answers)


def _filled(backfill: OpenBackfill | None, plan: Plan) -> OpenBackfill | None:
    """The backfill with what is left of it; what it made stays unstarted, as far as it can know."""
    filling = plan.filling
    if backfill is None:
        return None
    backfill = replace(backfill, existing=backfill.existing | {each.id for each in plan.creations})
    if filling is None:
        return backfill
    if filling.status is not BackfillStatus.RUNNING:
        return None
    return replace(
        backfill,
        after=filling.after,
        through=filling.through,
        created=backfill.created + len(filling.ids),
        pace=filling.pace,
        paced_at=filling.paced_at,
        filled_at=filling.filled_at,
    )


def _open(adjustments: tuple[Adjustment, ...], plan: Plan) -> tuple[Adjustment, ...]:
    """What was moved is kept until it was created and its old place is decided too."""
    known = [replace(each, done=True) if each in plan.used else each for each in adjustments]
    return tuple(
        each for each in known if each.at > plan.watermark or (each.to is not None and each.vacates and not each.done)
    )


def _needed(editions: tuple[Edition, ...], watermark: datetime) -> tuple[Edition, ...]:
    place = 0
    for at, each in enumerate(editions):
        if each.in_force_after is None or each.in_force_after <= watermark:
            place = at
    return editions[place:]


# ------------------------------------------------------------------------------------------- what others write


def finish(nth: int, well: bool) -> Fact:
    """One of the busy ends."""

    def fact(seen: JobSnapshot, now: datetime) -> JobSnapshot:
        if not seen.busy:
            return seen
        gone = seen.busy[nth % len(seen.busy)]
        ended = Ended(gone.scheduled_for, now, now, gone.id)
        left = with_active(seen, [each for each in (*seen.busy, *seen.waiting) if each is not gone])
        if not well:
            return replace(left, last_end=ended)
        return replace(left, last_end=ended, last_success=ended, other_success=seen.last_success)

    return fact


def start(nth: int, status: OccurrenceStatus, superseded_by_next: bool) -> Fact:
    """One of the busy runs, or waits for a retry."""

    def fact(seen: JobSnapshot, now: datetime) -> JobSnapshot:
        if not seen.busy:
            return seen
        changed = seen.busy[nth % len(seen.busy)]
        started = replace(changed, status=status, superseded_by_next=superseded_by_next)
        lined = [started if each is changed else each for each in (*seen.busy, *seen.waiting)]
        return with_active(seen, lined)

    return fact


def pause(minutes: int | None, missed: Missed) -> Fact:
    """The schedule is held, and unclaimed occurrences are queued again."""

    def fact(seen: JobSnapshot, now: datetime) -> JobSnapshot:
        if any(each.holds(now) for each in seen.pauses):
            return seen
        until = None if minutes is None else now + minutes * MINUTE
        back = [_put_back(each) for each in (*seen.busy, *seen.waiting)]
        return with_active(replace(seen, pauses=(*seen.pauses, PausedSpan(now, until, missed))), back)

    return fact


def _put_back(each: Active) -> Active:
    unclaimed = each.status is OccurrenceStatus.PENDING and each.cause is Cause.SCHEDULE
    return replace(each, status=OccurrenceStatus.QUEUED) if unclaimed else each


def resume(missed: Missed | None) -> Fact:
    """Whatever pause holds now ends, and what was held becomes what is chosen then."""

    def fact(seen: JobSnapshot, now: datetime) -> JobSnapshot:
        ended = tuple(
            replace(each, until=now, missed=missed or each.missed) if each.holds(now) else each for each in seen.pauses
        )
        return replace(seen, pauses=tuple(each for each in ended if each.until is None or each.until > each.since))

    return fact


def edit(rule: str, policies: dict[str, Any], delay: int) -> Fact:
    """Another definition is in force, at once or later."""

    def fact(seen: JobSnapshot, now: datetime) -> JobSnapshot:
        newest, moment = seen.editions[-1], now + delay * MINUTE
        known = tuple(each for each in seen.editions if each.in_force_after is None or each.in_force_after < moment)
        job = replace(defined(rule, policies), version=newest.job.version + 1, created_at=newest.job.created_at)
        edited = replace(seen, editions=(*known, Edition(job, moment)))
        if delay or newest.job.settings.recovery == job.settings.recovery:
            return edited
        return replace(edited, narrowed_at=now)

    return fact


def request(cause: Cause, number: int, overlap: Overlap | None, reach: int, again: bool) -> Fact:
    """A request is made. A trigger with `again` is asked for `reach` minutes later."""

    def fact(seen: JobSnapshot, now: datetime) -> JobSnapshot:
        if not seen.editions[-1].job.enabled:
            return seen
        causes = {each.cause for each in seen.requests} | {each.cause for each in (*seen.busy, *seen.waiting)}
        if cause is Cause.CREATE and cause in causes:
            # A job is created once, and its first run has the id of that moment.
            return seen
        key = f"{number}-{len(seen.requests)}-{seen.revision}"
        asked = Request(key, cause, now, overlap=overlap)
        if cause is Cause.BACKFILL:
            order = BackfillOrder(key, now - reach * MINUTE, now, again, newest_first=bool(number % 2), rate=600)
            made = OpenBackfill(f"backfill_{key}", order, order.after, order.through, 0, order.rate, now)
            made = replace(made, existing=frozenset(each.id for each in (*seen.busy, *seen.waiting)))
            return replace(seen, backfill=seen.backfill or made)
        if cause is Cause.REPLAY:
            asked = replace(asked, replay_of="occ_x", scheduled_for=now - reach * MINUTE)
        elif cause is Cause.TRIGGER and again:
            asked = replace(asked, due_at=now + reach * MINUTE)
        return replace(seen, requests=(*seen.requests, asked))

    return fact


def adjust(kind: AdjustmentKind | None, nth: int, by_minutes: int) -> Fact:
    """One of the next instants is skipped, moved or amended, or what was said of it is undone.

    It may be one that was moved, also after its old place was decided.
    """

    def fact(seen: JobSnapshot, now: datetime) -> JobSnapshot:
        coming = seen.editions[-1].job.bound(None).instants(max(now, seen.watermark), now + 3000 * MINUTE, nth + 1)
        moved = [each.at for each in seen.adjustments if each.to is not None and each.vacates and not each.done]
        instants = [*coming[-1:], *moved]
        if not instants:
            return seen
        instant = instants[nth % len(instants)]
        known = {each.at: each for each in seen.adjustments}
        made = adjusted(known.get(instant), _said(kind, instant, by_minutes, now), now, seen.watermark)
        return seen if made is None else replace(seen, adjustments=tuple({**known, instant: made}.values()))

    return fact


def _said(kind: AdjustmentKind | None, instant: datetime, by_minutes: int, now: datetime) -> Adjusts:
    match kind:
        case AdjustmentKind.SKIP:
            return Skip(instant)
        case AdjustmentKind.MOVE:
            return Move(instant, max(instant + by_minutes * MINUTE, now + TICK))
        case AdjustmentKind.AMEND:
            return Amend(instant, overrides(Level.OCCURRENCE, {"priority": by_minutes}))
    return Undo(instant)


def undo_reschedule(seen: JobSnapshot, now: datetime) -> JobSnapshot:
    """The next run is no longer set by hand."""
    return replace(seen, reschedule=None)


def reschedule(minutes: int) -> Fact:
    """The next run is set by hand."""

    def fact(seen: JobSnapshot, now: datetime) -> JobSnapshot:
        to = now + minutes * MINUTE
        if any(each.at == to and each.vacates for each in seen.adjustments):
            # As an application has it: the run of that very time has this id.
            to += TICK
        return replace(seen, reschedule=Rescheduled(now, to))

    return fact


def retire(minutes: int) -> Fact:
    """The definition is gone."""

    def fact(seen: JobSnapshot, now: datetime) -> JobSnapshot:
        return replace(seen, retire_at=now + minutes * MINUTE)

    return fact


# ---------------------------------------------------------------------------------------------- what it may be


def defined(rule: str, policies: dict[str, Any]) -> Job:
    """Return a job under these policies; both halves of a union are read as schedules of their own."""
    given = dict(policies)
    for key in ("stop_schedule", "restart_schedule"):
        if given.get(key) is not None:
            given[key] = schedule(given[key])
    return define_job("report", schedule(rule), policies=given, tasks=[define_task("report", "main")])


def recoveries() -> st.SearchStrategy[Any]:
    """All five strategies, the window with either bound, both and none."""
    counts, ages = st.none() | st.integers(1, 30), st.none() | st.integers(1, 600).map(lambda n: n * MINUTE)
    windows = st.builds(lambda count, age: Recovery("bounded_window", count, age), counts, ages)
    words = st.sampled_from(["execute_last", "execute_all", "mark_as_missed", "compressed"])
    return words | windows


def policies() -> st.SearchStrategy[dict[str, Any]]:
    """Everything that `plan` looks at."""
    rare = st.sampled_from([None, None, None, "0 4 * * *", "*/50 * * * *"])
    return st.fixed_dictionaries(
        {},
        optional={
            "overlap": st.sampled_from(Overlap),
            "late_overlap": st.sampled_from(["queue", "skip", "allow"]),
            "max_concurrent": st.none() | st.integers(1, 4),
            "recovery": recoveries(),
            "late_cap": st.integers(1, 30) | st.just(1000),
            "max_queued": st.integers(1, 6) | st.just(1000),
            "grace": st.sampled_from(["1s", "60s", "20m", "3h"]),
            "skip_if_successful": st.booleans(),
            "jitter": st.sampled_from([None, "30s"]),
            "horizon": st.sampled_from([None, None, 1, 7, "3h"]),
            "enabled": st.sampled_from([True, True, True, False]),
            "start": st.sampled_from([None, None, BEGIN + 90 * MINUTE]),
            "end": st.sampled_from([None, None, BEGIN + 900 * MINUTE]),
            "stop_schedule": rare,
            "restart_schedule": rare,
        },
    )


def facts() -> st.SearchStrategy[Fact]:
    """Anything that people and nodes may write."""
    small = st.integers(0, 5)
    overlaps = st.none() | st.sampled_from(Overlap)
    causes = st.sampled_from([Cause.TRIGGER, Cause.REPLAY, Cause.BACKFILL, Cause.CREATE])
    statuses = st.sampled_from([OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY])
    return st.one_of(
        st.builds(finish, small, st.booleans()),
        st.builds(start, small, statuses, st.booleans()),
        st.builds(pause, st.none() | st.integers(1, 300), st.sampled_from(Missed)),
        st.builds(resume, st.none() | st.sampled_from(Missed)),
        st.builds(edit, st.sampled_from(RULES), policies(), st.sampled_from([0, 0, 30])),
        st.builds(request, causes, small, overlaps, st.integers(0, 900), st.booleans()),
        st.builds(adjust, st.none() | st.sampled_from(AdjustmentKind), small, st.integers(-90, 200)),
        st.just(undo_reschedule),
        st.builds(reschedule, st.integers(1, 200)),
        st.builds(retire, st.integers(0, 20)),
    )


def newborn(rule: str, policies: dict[str, Any]) -> JobSnapshot:
    """Return a job that was defined at the beginning."""
    job = replace(defined(rule, policies), created_at=BEGIN)
    return JobSnapshot(job.id, 1, 1, BEGIN, (Edition(job),))


Step = tuple[Fact | None, timedelta, bool]


def steps(fact: st.SearchStrategy[Fact]) -> st.SearchStrategy[list[Step]]:
    """A fact may be written, some time passes, and the job is planned or not."""
    waits = st.integers(0, 90).map(lambda n: n * timedelta(seconds=10)) | st.integers(0, 900).map(lambda n: n * MINUTE)
    looks = st.sampled_from([True, True, True, False])
    return st.lists(st.tuples(st.none() | fact, waits, looks), min_size=3, max_size=14)


def lived(seen: JobSnapshot, steps: list[Step], limit: int = PLAN_LIMIT) -> Iterator[Looked]:
    """Give every look at a job that lives through these steps."""
    now = seen.watermark
    for fact, wait, looked in steps:
        if fact is not None:
            seen = fact(seen, now)
        now += wait
        if looked:
            view, hidden = shown(seen, now)
            decided = plan(view, now, limit)
            yield Looked(view, now, limit, decided)
            seen = committed(view, decided)
            seen = replace(seen, requests=(*seen.requests, *hidden), next_request_at=None)


def shown(seen: JobSnapshot, now: datetime) -> tuple[JobSnapshot, list[Request]]:
    """Return what a plan may see of a job with all its requests, and the requests that are still to come."""
    if seen.retire_at is not None and seen.retire_at <= now:
        return seen, []
    hidden = [each for each in seen.requests if not each.has_come(now)]
    come = tuple(each for each in seen.requests if each.has_come(now))
    next_at = min((each.due_at for each in hidden if each.due_at is not None), default=None)
    return replace(seen, requests=come, next_request_at=next_at), hidden


def settled(seen: JobSnapshot, now: datetime, limit: int = PLAN_LIMIT) -> Iterator[Looked]:
    """Plan at one moment until nothing is left to decide then; each plan must bring that nearer."""
    while True:
        decided = plan(seen, now, limit)
        yield Looked(seen, now, limit, decided)
        before, seen = seen, committed(seen, decided)
        if decided.wake_at is None or decided.wake_at > now:
            return
        assert _as_planned(before) != _as_planned(seen), f"planning at {now} does not come to an end: {decided}"


def _as_planned(seen: JobSnapshot) -> JobSnapshot:
    """The job without what every commit changes: two plans of the same snapshot always decide the same."""
    return replace(seen, revision=0, wake_at=None)


def named(seen: JobSnapshot, after: datetime, through: datetime) -> list[tuple[datetime, int]]:
    """Return the instants in `(after, through]` with the version that names them, asked the simple way."""
    found: list[tuple[datetime, int]] = []
    for place, edition in enumerate(seen.editions):
        begin = after if edition.in_force_after is None or not place else max(after, edition.in_force_after)
        ends = [each.in_force_after for each in seen.editions[place + 1 :] if each.in_force_after is not None]
        end = min([through, *ends])
        job = edition.job
        found += [(at, job.version) for at in job.bound(_followed(seen, job)).instants(begin, max(begin, end))]
    return found


def _followed(seen: JobSnapshot, job: Job) -> datetime | None:
    """The end that one which waits for an end follows; a skipped instant ended as soon as it was named."""
    if not waits_for_end(job.schedule):
        return None
    if seen.busy or seen.waiting:
        return None
    end = seen.last_end.ended_at if seen.last_end else job.created_at
    assert end is not None, "a stored job has a time of creation"
    while job.bound(end).next_after(seen.watermark) is None:
        following = job.bound(end).next_after(end - TICK)
        if following is None or following == end:
            break
        end = following
    return end


def life(rule: str, policies: dict[str, Any], steps: list[Step], limit: int) -> History:
    """Return every look at a job that was defined at the beginning and lives through these steps."""
    return History(lived(newborn(rule, policies), steps, limit))


def said_by_hand() -> st.SearchStrategy[Fact]:
    """What people say about single occurrences, and ends, so that there is room for them."""
    return st.one_of(
        st.builds(adjust, st.sampled_from(AdjustmentKind), st.integers(0, 3), st.integers(-90, 90)),
        st.builds(adjust, st.just(AdjustmentKind.MOVE), st.integers(0, 3), st.integers(-90, 90)),
        st.builds(reschedule, st.integers(1, 200)),
        st.builds(finish, st.integers(0, 5), st.booleans()),
    )


def histories(fact: st.SearchStrategy[Fact] | None = None) -> st.SearchStrategy[History]:
    """Every look at some job in some life."""
    limits = st.integers(1, 8) | st.just(PLAN_LIMIT)
    return st.builds(life, st.sampled_from(RULES), policies(), steps(facts() if fact is None else fact), limits)
