"""The line: which occurrences are busy, wait and come next, and that none waits without end."""

from datetime import datetime, timedelta

from hypothesis import example, given, settings

from everytick.domain.decisions import Why
from everytick.domain.occurrence import Cause
from everytick.domain.policies import LateOverlap, Overlap
from everytick.domain.snapshots import AdjustmentKind, JobSnapshot, Missed
from everytick.domain.statuses import ACTIVE, OccurrenceStatus
from everytick.domain.upcoming import in_force
from tests.laws.worlds import (
    MINUTE,
    History,
    adjust,
    committed,
    edit,
    histories,
    life,
    named,
    pause,
    request,
    reschedule,
    retire,
    settled,
    start,
)

# Of what is due only the one on time is kept, and it finds the job busy with a run that was on time too. The late
# one that a person set by hand is not kept, though no span can hold it: it is a row of its own, skipped or missed.
RESCHEDULED = life(
    "0 * * * *",
    {},
    [
        (None, 0 * MINUTE, True),
        (edit("every: 45s", {}, 0), timedelta(seconds=50), True),
        (reschedule(1), 2 * MINUTE, True),
    ],
    2,
)
MOVED = life(
    "*/7 * * * *",
    {"recovery": "mark_as_missed"},
    [(None, 10 * MINUTE, True), (None, 11 * MINUTE, True), (adjust(AdjustmentKind.MOVE, 0, 1), 194 * MINUTE, True)],
    100,
)


# The next look sees the restart of 09:00 while the pause holds one of 08:50 in line: neither may wait for the other.
RESTARTED = life(
    "0 * * * *",
    {"overlap": "skip", "restart_schedule": "*/50 * * * *", "grace": "20m"},
    [
        (None, 434 * MINUTE, True),
        (None, 99 * MINUTE, True),
        (start(0, OccurrenceStatus.AWAITING_RETRY, True), 7 * MINUTE, True),
        (pause(None, Missed.SKIP), 0 * MINUTE, True),
    ],
    100,
)
# A removed job is asked for a replay and, before that, for a run at a time that comes with its retirement.
REMOVED = life(
    "0 * * * *",
    {},
    [
        (request(Cause.TRIGGER, 0, None, 1, again=True), 0 * MINUTE, False),
        (request(Cause.TRIGGER, 1, None, 0, again=False), 0 * MINUTE, False),
        (retire(0), 2 * MINUTE, True),
    ],
    100,
)


def _is_held(seen: JobSnapshot, now: datetime) -> bool:
    """Retired, disabled or paused."""
    paused = any(each.holds(now) for each in seen.pauses)
    return paused or seen.retire_at is not None or not in_force(seen.editions, now).enabled


@settings(max_examples=120)
@given(histories())
def test_no_plan_holds_more_than_its_limit(history: History) -> None:
    """Bound."""
    for looked in history:
        assert len(looked.plan.creations) + len(looked.plan.releases) <= looked.limit


@settings(max_examples=120)
@given(histories())
def test_no_job_is_woken_too_late(history: History) -> None:
    """Liveness: `wake_at` is never later than the next undecided instant."""
    for looked in history:
        after, wake_at = committed(looked.snapshot, looked.plan), looked.plan.wake_at
        if _is_held(looked.snapshot, looked.now):
            continue
        coming = [at for at, _ in named(after, after.watermark, after.watermark + timedelta(days=3))]
        disabled = [each for each in after.editions if not each.job.enabled]
        coming = [] if disabled else coming
        coming += [each.to for each in after.adjustments if each.to is not None and not each.done]
        coming += [after.reschedule.to] if after.reschedule else []
        next_one = max(min(coming, default=looked.now), looked.now)
        assert not coming or (wake_at is not None and wake_at <= next_one), looked


@settings(max_examples=120)
@given(histories())
def test_a_paused_job_is_woken_when_its_pause_ends_and_a_removed_one_when_it_retires(history: History) -> None:
    """Liveness: a pause costs nothing until it ends."""
    for looked in history:
        seen, wake_at = looked.snapshot, looked.plan.wake_at
        if seen.retire_at is not None and looked.now < seen.retire_at:
            assert wake_at is not None, looked
            assert wake_at <= seen.retire_at, looked
        elif seen.retire_at is None and in_force(seen.editions, looked.now).enabled:
            ends = [each.until for each in seen.pauses if each.holds(looked.now) and each.until is not None]
            assert not ends or (wake_at is not None and wake_at <= max(ends)), looked


@settings(max_examples=120)
@given(histories())
def test_what_is_busy_is_stopped_in_time_also_while_the_job_is_held(history: History) -> None:
    """Liveness; F12, S4-044: a pause and disabling hold starts, not stops."""
    for looked in history:
        seen, now = looked.snapshot, looked.now
        if seen.retire_at is not None or not committed(seen, looked.plan).busy:
            continue
        settings = in_force(seen.editions, now).settings
        stops = [each.next_after(now) for each in (settings.stop_schedule, settings.restart_schedule) if each]
        coming = min(filter(None, stops), default=None)
        assert coming is None or (looked.plan.wake_at is not None and looked.plan.wake_at <= coming), looked


@settings(max_examples=120)
@given(histories())
@example(RESCHEDULED)
@example(MOVED)
def test_a_catch_up_costs_no_live_instant(history: History) -> None:
    """F5: beside late ones that are kept or wait, the one on time is not refused for the room they take."""
    for looked in history:
        seen, now = looked.snapshot, looked.now
        if seen.retire_at is not None or not in_force(seen.editions, now).enabled:
            continue
        settings = in_force(seen.editions, now).settings
        scheduled = [each for each in looked.plan.creations if each.cause is Cause.SCHEDULE]
        # A late one that a person set by hand is a row also where it is not kept, and then takes no room.
        kept = [each for each in scheduled if each.late and each.status in ACTIVE]
        waits = [each for each in seen.waiting if each.late and each.cause is Cause.SCHEDULE]
        gone = {each.id for each in looked.plan.endings}
        left = [each for each in waits if each.id not in gone]
        if settings.late_overlap is LateOverlap.SKIP or not (kept or left):
            continue
        assert Why.OVERLAP not in [each.why for each in looked.plan.spans], looked
        assert Why.OVERLAP not in [each.why for each in scheduled], looked
        superseded = [each for each in looked.plan.endings if each.status is OccurrenceStatus.SUPERSEDED]
        by_asking = {each.overlap for each in seen.requests} & {Overlap.QUEUE_LATEST, Overlap.CANCEL_RUNNING}
        assert by_asking or not {each.id for each in superseded} & {each.id for each in waits}, looked


@settings(max_examples=60)
@given(histories())
@example(RESTARTED)
def test_every_waiting_occurrence_has_a_busy_one_before_it(history: History) -> None:
    """Liveness; F4: and none waits while there is room, unless the job is planned again at once."""
    for looked in history:
        now = looked.now
        if looked.snapshot.retire_at is not None or not in_force(looked.snapshot.editions, now).enabled:
            continue
        room = in_force(looked.snapshot.editions, now).settings.max_concurrent or 1
        for again in settled(looked.snapshot, now, looked.limit):
            seen, wake_at = committed(again.snapshot, again.plan), again.plan.wake_at
            waiting = list(seen.waiting)
            if any(each.holds(now) for each in seen.pauses):
                waiting = [each for each in waiting if each.cause is not Cause.SCHEDULE]
            assert not waiting or seen.busy_count >= room or wake_at == now, again
        assert not waiting or seen.busy, again


@settings(max_examples=120)
@given(histories())
def test_no_plan_makes_more_busy_than_may_be(history: History) -> None:
    """Overlap; S0-063, F1, F3: by no entry path, tick, late, trigger, replay, backfill, restart."""
    for looked in history:
        settings = in_force(looked.snapshot.editions, looked.now).settings
        allows = settings.overlap is Overlap.ALLOW or settings.late_overlap is LateOverlap.ALLOW
        allows |= any(each.overlap is Overlap.ALLOW for each in looked.snapshot.requests)
        if settings.max_concurrent is None and allows:
            continue
        begun = [each for each in looked.plan.creations if each.status is OccurrenceStatus.PENDING]
        busy = committed(looked.snapshot, looked.plan).busy_count
        assert not (begun or looked.plan.releases) or busy <= (settings.max_concurrent or 1), looked


@settings(max_examples=120)
@given(histories())
@example(REMOVED)
def test_occurrences_start_in_the_order_of_the_line(history: History) -> None:
    """S4-017; order; C-12, S4-019: by (line_at, id), and none is released before one that waits longer."""
    for looked in history:
        order = [(each.line_at, each.id) for each in looked.plan.creations]
        assert order == sorted(order), looked
        line = list(looked.snapshot.waiting)
        if any(each.holds(looked.now) for each in looked.snapshot.pauses):
            line = [each for each in line if each.cause is not Cause.SCHEDULE]
        gone = {each.id for each in looked.plan.endings}
        left = [each.id for each in line if each.id not in gone]
        assert list(looked.plan.releases) == left[: len(looked.plan.releases)], looked


@settings(max_examples=120)
@given(histories())
@example(RESTARTED)
def test_every_request_is_answered(history: History) -> None:
    """Nothing unanswered: unless the job is disabled, or the plan is full and the planner comes straight back.

    A removed job keeps what was asked for at a time until it retires.
    """
    for looked in history:
        retire_at = looked.snapshot.retire_at
        if not in_force(looked.snapshot.editions, looked.now).enabled and retire_at is None:
            continue
        is_going = retire_at is not None and looked.now < retire_at
        if is_going and any(each.due_at is not None for each in looked.snapshot.requests):
            continue
        answers = {(each.cause, each.key) for each in looked.plan.answers}
        left = [each for each in looked.snapshot.requests if (each.cause, each.key) not in answers]
        assert not left or looked.plan.wake_at == looked.now, looked
        for last in settled(looked.snapshot, looked.now, looked.limit):
            seen = committed(last.snapshot, last.plan)
        assert seen.requests == (), looked
