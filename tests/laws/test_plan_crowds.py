"""Very many busy and waiting: a snapshot names only some of them, and that must not change what is decided."""

from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from everytick.deciding.plan import plan
from everytick.domain.occurrence import Cause
from everytick.domain.policies import Overlap
from everytick.domain.snapshots import Active, JobSnapshot, Missed, PausedSpan, Request
from everytick.domain.statuses import OccurrenceStatus
from tests.laws.worlds import BEGIN, MINUTE, Looked, committed, newborn, with_active

HOUR = timedelta(hours=1)
NOW = BEGIN + 40 * HOUR
"""The job's instants are the full hours; this one is on time."""


def in_view(seen: JobSnapshot, now: datetime, shown: int) -> JobSnapshot:
    """Return the job as a store shows it: of many the first, and the newest that wait; the counts are whole."""
    paused = any(each.holds(now) for each in seen.pauses)
    line = [each for each in seen.waiting if not (paused and each.cause is Cause.SCHEDULE)]
    newest = [each for each in line[shown:-1] if each.cause is Cause.SCHEDULE][-1:]
    return replace(seen, busy=seen.busy[:shown], waiting=tuple(line[:shown] + newest + line[shown:][-1:]))


def settled(seen: JobSnapshot, now: datetime, shown: int) -> tuple[JobSnapshot, list[Looked]]:
    """Plan at one moment, with so many in view, until nothing is left to decide; return the job and every look."""
    looks: list[Looked] = []
    for _ in range(500):
        decided = plan(in_view(seen, now, shown), now, min(shown, 100))
        looks.append(Looked(seen, now, shown, decided))
        seen = committed(seen, decided)
        if decided.wake_at is None or decided.wake_at > now:
            return seen, looks
    raise AssertionError(f"planning with {shown} in view does not come to an end: {decided}")


def in_line(nth: int, cause: Cause = Cause.SCHEDULE, status: str = "queued") -> Active:
    """Return the one of the nth hour."""
    at = BEGIN + nth * HOUR
    return Active(f"occ_{nth:012d}", at, at, OccurrenceStatus(status), cause)


@st.composite
def crowds(draw: st.DrawFn) -> list[Active]:
    """Some that are busy and some that wait, of instants and of requests, all before now."""
    statuses = st.sampled_from(["pending", "running", "awaiting_retry", "queued", "queued", "queued"])
    causes = st.sampled_from([Cause.SCHEDULE, Cause.SCHEDULE, Cause.TRIGGER])
    drawn = draw(st.lists(st.tuples(statuses, causes), min_size=1, max_size=30))
    return [in_line(nth, cause, status) for nth, (status, cause) in enumerate(drawn, start=1)]


def job_with(active: list[Active], **policies: object) -> JobSnapshot:
    """Return an hourly job whose next instant is due, with these active."""
    return with_active(replace(newborn("0 * * * *", policies), watermark=NOW - HOUR), active)


def places(seen: JobSnapshot) -> dict[str, str]:
    return {each.id: str(each.status) for each in (*seen.busy, *seen.waiting)}


@settings(max_examples=150)
@given(
    crowds(),
    st.sampled_from([Overlap.SKIP, Overlap.QUEUE, Overlap.QUEUE_LATEST, Overlap.ALLOW]),
    st.none() | st.integers(1, 40),
    st.integers(2, 12),
)
@example(
    # Of the first two in line only one is in view: the newcomer must not take the place of the other.
    [in_line(1), in_line(2), in_line(3, Cause.TRIGGER), in_line(4)],
    Overlap.ALLOW,
    2,
    2,
)
def test_who_is_in_view_does_not_change_who_comes_in(
    active: list[Active], overlap: Overlap, limit: int | None, shown: int
) -> None:
    """S0-061, C-11: it only takes more plans."""
    seen = job_with(active, overlap=overlap, max_concurrent=limit)

    few, _ = settled(seen, NOW, shown)
    all_, _ = settled(seen, NOW, 100)

    assert places(few) == places(all_)
    assert few.watermark == all_.watermark


@settings(max_examples=100)
@given(crowds(), st.integers(1, 40), st.integers(2, 12))
def test_the_next_instant_supersedes_all_that_wait_also_those_out_of_view(
    active: list[Active], limit: int, shown: int
) -> None:
    """C-11, cancel_running: all that wait are superseded, all that run are asked to stop, seen or not."""
    assume(len(active) >= limit)  # else there is room for all that wait and for one more
    seen = job_with(active, overlap="cancel_running", max_concurrent=limit)
    after, looks = settled(seen, NOW, shown)
    newest = [each.scheduled_for for each in after.waiting]
    started = {each.id for each in seen.busy if each.status != "pending"}
    gone = {each.id for look in looks for each in look.plan.endings}

    assert newest in ([], [NOW])
    assert started - gone <= told(looks), "somebody runs on and was not asked to stop"


def told(looks: list[Looked]) -> set[str]:
    """Return whom these plans ask to stop, as a store carries it out: before anything else of the plan."""
    asked = {id_ for look in looks for id_ in look.plan.cancels}
    for look in looks:
        before = look.plan.cancels_before
        if before is not None:
            asked |= {each.id for each in look.snapshot.busy if each.line_at < before}
    return asked


@settings(max_examples=100)
@given(crowds(), st.sampled_from(["stop_schedule", "restart_schedule"]), st.integers(2, 12))
def test_a_stop_reaches_every_busy_one_in_view_or_not(active: list[Active], kind: str, shown: int) -> None:
    """S4-044: every occurrence in line before the stop, and no other."""
    stop = NOW - HOUR / 2
    seen = job_with(active, overlap="allow", grace="1h", **{kind: "30 * * * *"})

    _, looks = settled(seen, stop, shown)

    assert told(looks[:1]) == {each.id for each in seen.busy if each.line_at < stop}


@settings(max_examples=100)
@given(crowds(), st.integers(1, 5), st.integers(2, 12))
def test_a_pause_hides_no_request_behind_a_long_line(active: list[Active], limit: int, shown: int) -> None:
    """S4-024: a pause holds the schedule, not people, however many instants wait before them."""
    seen = job_with(active, overlap="queue", max_concurrent=limit)
    seen = replace(seen, pauses=(PausedSpan(NOW - HOUR, None, Missed.SKIP),))
    seen = replace(seen, requests=(Request("key", Cause.TRIGGER, NOW - MINUTE),))

    after, _ = settled(seen, NOW, shown)

    asked = [each for each in after.waiting if each.cause is not Cause.SCHEDULE]
    assert not asked or after.busy_count >= limit
    scheduled = [each for each in seen.waiting if each.cause is Cause.SCHEDULE]
    assert [each for each in after.waiting if each.cause is Cause.SCHEDULE] == scheduled
