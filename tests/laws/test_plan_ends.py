"""Unawaited ends: they do not wake the job, and nothing would have followed from them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import example, given, settings

from everytick import schedule
from everytick.deciding.plan import plan
from everytick.domain.decisions import Plan
from everytick.domain.job import define_job, define_task
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import Active, Edition, JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from tests.laws.worlds import (
    BEGIN,
    MINUTE,
    TICK,
    History,
    committed,
    finish,
    histories,
    life,
    newborn,
    request,
    start,
)

PARKED = OccurrenceStatus.AWAITING_RETRY

# The backfill gets ten places now and wakes its job in a second: a look before that would give it the places due.
PACED = life(
    "*/7 * * * *",
    {"overlap": "allow"},
    [(request(Cause.BACKFILL, 0, None, 65, again=False), 0 * MINUTE, True)],
    100,
)
# One of the backfill is pending, where one may be busy: the next place comes with its end, which is awaited.
ONE_BY_ONE = life(
    "0 * * * *",
    {},
    [(request(Cause.BACKFILL, 0, None, 200, again=False), 0 * MINUTE, True)],
    100,
)


def _ends(seen: JobSnapshot, now: datetime) -> Iterator[JobSnapshot]:
    """Give the job as it is when one of the busy has ended or was parked, and when all of them have."""
    for nth in range(seen.busy_count):
        yield finish(nth, well=True)(seen, now)
        yield start(nth, PARKED, superseded_by_next=True)(seen, now)
    while seen.busy:
        seen = finish(0, well=False)(seen, now)
    yield seen


def _fills(seen: JobSnapshot, now: datetime) -> bool:
    """Whether the open backfill would get places at this moment."""
    filling = plan(seen, now).filling
    return filling is not None and bool(filling.ids)


def _decides(made: Plan) -> bool:
    decisions = (made.creations, made.releases, made.endings, made.cancels, made.spans, made.answers, made.used)
    return any(decisions) or made.rescheduled or made.cancels_before is not None


@settings(max_examples=200)
@given(histories())
@example(PACED)
@example(ONE_BY_ONE)
def test_nothing_follows_from_an_end_that_a_plan_does_not_await(history: History) -> None:
    """Liveness: a plan at `wake_at` instead of at such an end has missed nothing.

    Each moment brings an open backfill more places by its pace, and `wake_at` only says when they are given out. So the
    backfill is looked at by itself: if it gets places after an end, it would get some without that end too.
    """
    for looked in history:
        now, wake_at = looked.now, looked.plan.wake_at
        if looked.plan.awaits_ends or (wake_at is not None and wake_at <= now):
            continue
        last = now + timedelta(days=2) if wake_at is None else wake_at - TICK
        before = committed(looked.snapshot, looked.plan)
        for after in _ends(before, now):
            for moment in {now, now + (last - now) / 2, last}:
                assert _fills(before, moment) or not _fills(after, moment), (looked, moment)
                again = plan(replace(after, backfill=None), moment)
                assert not _decides(again), (looked, moment, again)
                sooner = again.wake_at is not None and (wake_at is None or again.wake_at < wake_at)
                assert not sooner, (looked, moment, again)


@settings(max_examples=200)
@given(histories())
def test_an_occurrence_that_begins_to_wait_behind_unawaited_ends_is_planned_once_more(history: History) -> None:
    """An end between the snapshot and the mark does not wake the job: the plan after it sees whether there was one."""
    for looked in history:
        unmarked = plan(replace(looked.snapshot, awaited=False), looked.now, looked.limit)
        again = looked.plan.awaits_ends and looked.snapshot.busy_count > 0
        expected = replace(looked.plan, wake_at=looked.now) if again else looked.plan
        assert unmarked == expected, looked


def test_a_line_and_a_schedule_that_follows_ends_await_them() -> None:
    busy = Active("occ_1", BEGIN, BEGIN, OccurrenceStatus.RUNNING)
    hourly = newborn("0 * * * *", {"overlap": "queue"})
    behind = replace(hourly, busy=(busy,), busy_count=1)
    assert plan(behind, BEGIN + 60 * MINUTE).awaits_ends
    assert not plan(hourly, BEGIN + 60 * MINUTE).awaits_ends
    assert not plan(replace(behind, editions=newborn("0 * * * *", {}).editions), BEGIN + 30 * MINUTE).awaits_ends
    assert plan(newborn("after: 10m", {}), BEGIN + 10 * MINUTE).awaits_ends


def test_a_schedule_that_will_follow_ends_awaits_those_before_it() -> None:
    """A coming definition counts from an end that may come before it is in force."""
    later = define_job("report", schedule("after: 10m"), policies={}, tasks=[define_task("report", "main")])
    seen = newborn("0 * * * *", {})
    editions = (*seen.editions, Edition(replace(later, version=2), BEGIN + 90 * MINUTE))
    assert plan(replace(seen, editions=editions), BEGIN + 60 * MINUTE).awaits_ends
