"""What `plan` costs: microseconds a plan, over the looks that a planner takes.

    python3 dev.py bench plan

Values are as in production: slotted, not frozen. The quietest of many short rounds counts,
because the machine is shared; the id of one occurrence, made beside it, tells how fast it is
just now. A tick on time is held to its limit; the others are told for comparison.
"""

import sys
import timeit
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from everytick import schedule
from everytick.deciding.plan import plan, plan_in_full
from everytick.domain.ids import occurrence_id
from everytick.domain.job import define_job, define_task
from everytick.domain.snapshots import Active, Edition, Ended, JobSnapshot
from everytick.domain.statuses import OccurrenceStatus

ROUNDS = 400
LIMIT = 10.0
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


class Look(NamedTuple):
    """One look at a job: what is seen, when, and how many occurrences and skipped instants come out."""

    name: str
    snapshot: JobSnapshot
    now: datetime
    created: int
    skipped: int
    usual: bool = False


def seen(rule: str, watermark: datetime, *busy: Active, **policies: object) -> JobSnapshot:
    job = define_job("report", schedule(rule), policies=policies, tasks=[define_task("report", "main")])
    end = Ended(watermark, watermark, watermark + SECOND)
    return JobSnapshot(
        job.id, 7, 3, watermark, (Edition(job),), busy=busy, busy_count=len(busy), last_end=end, last_success=end
    )


def looks() -> list[Look]:
    busy = Active("occ_x", NOON - HOUR, NOON - HOUR, OccurrenceStatus.RUNNING)
    on_time, late = NOON + SECOND, NOON + timedelta(minutes=5)
    return [
        Look("one creation, cron", seen("0 * * * *", NOON - HOUR), on_time, 1, 0, usual=True),
        Look("one creation, cron in a zone", seen("cron: 0 * * * *; tz=Europe/Berlin", NOON - HOUR), on_time, 1, 0),
        Look("one creation, every hour", seen("every: 1h", NOON - HOUR), on_time, 1, 0, usual=True),
        Look("busy, skipped", seen("0 * * * *", NOON - HOUR, busy), on_time, 0, 1),
        Look("200 h late, execute_last", seen("0 * * * *", NOON - 200 * HOUR), late, 1, 199),
        Look("99 late, execute_all", seen("0 * * * *", NOON - 99 * HOUR, recovery="execute_all"), late, 99, 0),
        Look("a million late, execute_last", seen("every: 1s", NOON - 1_000_000 * SECOND), on_time, 1, -1),
    ]


def microseconds(call: str, known: dict[str, object]) -> float:
    """The time of one call in the quietest of many rounds of about a millisecond."""
    once = min(timeit.repeat(call, globals=known, number=1, repeat=20))
    number = max(1, int(0.001 / once))
    rounds = max(5, min(ROUNDS, int(1 / (once * number))))
    return min(timeit.repeat(call, globals=known, number=number, repeat=rounds)) / number * 1e6


def main() -> int:
    known: dict[str, object] = {"plan": plan, "whole": plan_in_full, "occurrence_id": occurrence_id, "noon": NOON}
    reference = microseconds("occurrence_id('job_x', noon)", known)
    print(f"{sys.version.split()[0]}: one occurrence id {reference:.2f} us")
    print(f"{'':32}{'us a plan':>10}{'us each':>10}{'us in full':>12}")
    slow = []
    for look in looks():
        decided = plan(look.snapshot, look.now)
        skipped = sum(-1 if each.count is None else each.count for each in decided.spans)
        assert (len(decided.creations), skipped) == (look.created, look.skipped), f"{look.name}: {decided}"
        known |= {"snapshot": look.snapshot, "now": look.now}
        spent, whole = microseconds("plan(snapshot, now)", known), microseconds("whole(snapshot, now)", known)
        print(f"  {look.name:30}{spent:10.2f}{spent / max(look.created, 1):10.2f}{whole:12.2f}")
        slow += [look.name] if look.usual and spent > LIMIT else []
    print(f"limit for one creation {LIMIT} us: {'kept' if not slow else 'MISSED by ' + ', '.join(slow)}")
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main())
