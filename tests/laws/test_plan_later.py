"""Law: a run that was asked for at a time is one occurrence, at that time or after it, whatever else happens (A9)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import JobSnapshot, Missed, Request
from everytick.domain.upcoming import in_force
from tests.laws.worlds import (
    MINUTE,
    RULES,
    Fact,
    History,
    Looked,
    Step,
    facts,
    histories,
    lived,
    newborn,
    pause,
    policies,
    request,
    resume,
    steps,
)


def _asks_for_one(seen: JobSnapshot, now: datetime) -> JobSnapshot:
    """A person asks for a run in two hours, if the job takes requests."""
    if not seen.editions[-1].job.enabled:
        return seen
    asked = Request("the one", Cause.TRIGGER, now, due_at=now + 120 * MINUTE)
    return replace(seen, requests=(*seen.requests, asked))


def _enables(seen: JobSnapshot, now: datetime) -> JobSnapshot:
    """The job is in service from now on and nothing holds it."""
    last = seen.editions[-1].job
    job = replace(last, settings=replace(last.settings, enabled=True), version=last.version + 1)
    edition = replace(seen.editions[-1], job=job, in_force_after=now)
    return resume(None)(replace(seen, editions=(*seen.editions, edition)), now)


@settings(max_examples=80)
@given(st.sampled_from(RULES), policies(), steps(facts()), st.integers(1, 100))
def test_it_is_one_occurrence_at_its_time_or_after_it(
    rule: str, given_policies: dict[str, Any], lives: list[Step], limit: int
) -> None:
    """A9: pauses, edits, outages, a removal and other requests come in between; then the job is in service again."""
    ask: Fact = _asks_for_one
    rest = [(None, timedelta(seconds=10), True)] * 5
    day: list[Step] = [(_enables, timedelta(days=1), True), *rest]
    seen = newborn(rule, {**given_policies, "enabled": True})
    looks = list(_until_done(seen, [(ask, timedelta(0), True), *lives, *day], limit))
    id_ = Request("the one", Cause.TRIGGER, seen.watermark).occurrence_id(seen.job_id)
    made = [(looked, each) for looked in looks for each in looked.plan.creations if each.id == id_]
    assert len(made) == 1, looks
    [(looked, created)] = made
    due_at = seen.watermark + 120 * MINUTE
    has_retired = looked.snapshot.retire_at is not None and looked.snapshot.retire_at <= looked.now
    assert looked.now >= due_at or has_retired, looked
    assert (created.line_at, created.scheduled_for) == (due_at, due_at)


def _until_done(seen: JobSnapshot, given_steps: list[Step], limit: int) -> Iterator[Looked]:
    """Give the looks of these steps, and more at their end: a small limit needs several for what has become due."""
    end = seen.watermark + sum((wait for _, wait, _ in given_steps), timedelta(0))
    more: list[Step] = [(None, timedelta(0), True)] * (2000 // limit)
    for looked in lived(seen, [*given_steps, *more], limit):
        yield looked
        wake_at = looked.plan.wake_at
        if looked.now == end and (wake_at is None or wake_at > end):
            return


def _asked_and_held() -> st.SearchStrategy[Fact]:
    """Runs are asked for at a time, pauses come and go, and now and then something else happens."""
    asks = st.builds(request, st.just(Cause.TRIGGER), st.integers(0, 5), st.none(), st.integers(1, 900), st.just(True))
    pauses = st.builds(pause, st.none() | st.integers(1, 300), st.sampled_from(Missed))
    return st.one_of(asks, pauses, asks, st.builds(resume, st.none() | st.sampled_from(Missed)), facts())


@settings(max_examples=120)
@given(histories(_asked_and_held()))
def test_the_job_wakes_for_the_next_one(history: History) -> None:
    """A9, Liveness: unless it is disabled or removed, in which case an edit wakes it."""
    for looked in history:
        seen, wake_at = looked.snapshot, looked.plan.wake_at
        if seen.next_request_at is None or seen.retire_at is not None:
            continue
        if in_force(seen.editions, looked.now).enabled:
            assert wake_at is not None, looked
            assert wake_at <= seen.next_request_at, looked
