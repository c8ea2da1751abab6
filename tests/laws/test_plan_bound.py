"""Planning costs what is decided, never how long it was not planned."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everytick import schedule
from everytick.deciding.plan import plan
from everytick.domain.job import define_job, define_task
from everytick.domain.schedule import Schedule
from everytick.domain.snapshots import (
    PLAN_LIMIT,
    Active,
    Adjustment,
    AdjustmentKind,
    Edition,
    JobSnapshot,
    PausedSpan,
    Rescheduled,
)
from everytick.domain.statuses import OccurrenceStatus
from tests.laws.worlds import BEGIN, MINUTE, recoveries

COUNTED = 10_000
A_FEW = 40
"""Questions at the edges: of segments, of spans, of what was said by hand, and for the next wake."""


class Asked:
    """A schedule that keeps count of what it is asked; it stands for any, also one that is slow to answer."""

    def __init__(self, rule: str) -> None:
        self.rule: Schedule = schedule(rule)
        self.questions = 0
        self.listed = 0

    def next_after(self, instant: datetime, /) -> datetime | None:
        self.questions += 1
        return self.rule.next_after(instant)

    def last_at(self, instant: datetime, /) -> datetime | None:
        self.questions += 1
        return self.rule.last_at(instant)

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> Sequence[datetime]:
        found = self.rule.instants(after, through, limit)
        self.listed += len(found)
        return found

    def describe(self) -> str:
        return self.rule.describe()


def _seen(rule: Schedule, **policies: Any) -> JobSnapshot:
    job = define_job("report", rule, policies=policies, tasks=[define_task("report", "main")])
    return JobSnapshot(job.id, 1, 1, BEGIN, (Edition(job),))


@settings(max_examples=80)
@given(
    recoveries(),
    st.sampled_from(["queue", "skip", "allow"]),
    st.integers(1, 200),
    st.integers(1, 100),
    st.integers(0, 1_000_000),
    st.booleans(),
)
def test_no_outage_is_walked_through(
    recovery: Any, late_overlap: str, cap: int, limit: int, seconds: int, busy: bool
) -> None:
    """Bound; D4: at most late_cap + PLAN_LIMIT instants are looked at, and a few at the edges."""
    asked = Asked("every: 1s")
    seen = _seen(asked, recovery=recovery, late_overlap=late_overlap, late_cap=cap)
    runs = Active("x", BEGIN, BEGIN, OccurrenceStatus.RUNNING)
    if busy:
        seen = JobSnapshot(seen.job_id, 1, 1, BEGIN, seen.editions, busy=(runs,), busy_count=1)
    asked.questions = 0

    decided = plan(seen, BEGIN + timedelta(seconds=seconds), limit)

    assert asked.questions <= cap + PLAN_LIMIT + A_FEW
    assert asked.listed <= 2 * (COUNTED + 1)
    assert len(decided.creations) <= limit


def test_what_people_wrote_adds_a_few_questions_each() -> None:
    asked = Asked("every: 1s")
    seen = _seen(asked)
    moves = tuple(Adjustment(BEGIN + n * MINUTE, AdjustmentKind.MOVE, BEGIN + (n + 30) * MINUTE) for n in range(1, 11))
    pauses = tuple(PausedSpan(BEGIN + n * MINUTE, BEGIN + (n + 1) * MINUTE) for n in range(60, 80, 2))
    whole = JobSnapshot(
        seen.job_id,
        1,
        1,
        BEGIN,
        seen.editions,
        adjustments=moves,
        pauses=pauses,
        reschedule=Rescheduled(BEGIN + 100 * MINUTE, BEGIN + 110 * MINUTE + timedelta(milliseconds=1)),
    )
    asked.questions = asked.listed = 0

    plan(whole, BEGIN + timedelta(days=365))

    assert asked.questions <= 8 * (len(moves) + 2 * len(pauses)) + A_FEW
    assert asked.listed <= 4 * (COUNTED + 1)


@pytest.mark.parametrize("recovery", ["execute_last", "execute_all", "mark_as_missed", "compressed"])
def test_ten_years_cost_no_more_than_ten_hours(recovery: str) -> None:
    """D4: the number of questions is the same."""

    def questions(hours: int) -> int:
        asked = Asked("every: 1s")
        seen = _seen(asked, recovery=recovery, late_cap=50)
        asked.questions = 0
        plan(seen, BEGIN + timedelta(hours=hours))
        return asked.questions

    assert questions(10 * 365 * 24) == questions(10)
