"""What `advance` costs: microseconds an event, over whole lives of realistic jobs.

    python3 dev.py bench advance

A life begins with a snapshot from the store and goes on until the end. Values are as in
production: slotted, not frozen. The quietest of many short rounds counts, because the
machine is shared; one value, built beside it, tells how fast it is just now.
"""

import sys
import time
import timeit
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from everytick.deciding.advance import advance
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.occurrence import occurrence_of
from everytick.domain.outcome import Failed, Outcome, Succeeded
from everytick.domain.retry import Retry
from everytick.domain.statuses import OccurrenceStatus, RunStatus
from everytick.domain.steps import (
    AttemptEnded,
    Claimed,
    LifeEvent,
    OccurrenceHeader,
    OccurrenceLife,
    RunState,
    WaitOver,
    header_of,
    life_of,
    rules_of,
)
from everytick.schedules.interval import every

ROUNDS = 300
LIMIT = 5.0
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Life(NamedTuple):
    """A job and how its attempts end: `outcome(task, number)`; the usual ones are held to the limit."""

    name: str
    job: Job
    outcome: Callable[[str, int], Outcome]
    usual: bool = True


def job(name: str, tasks: int, **policies: object) -> Job:
    policies = {"execution_timeout": "1h", **policies}
    return define_job(name, every("1m"), policies=policies, tasks=[define_task(name, f"t{n}") for n in range(tasks)])


def succeeds(task: str, number: int) -> Outcome:
    return Succeeded()


def fails_once(task: str, number: int) -> Outcome:
    return Failed("boom", ("builtins.ValueError",)) if number == 1 else Succeeded()


def one_fails(task: str, number: int) -> Outcome:
    return Failed("boom") if task == "t4" else Succeeded()


LIVES = [
    Life("1 task", job("one", 1), succeeds),
    Life("3 tasks, sequential", job("three", 3), succeeds),
    Life("10 tasks, parallel", job("ten", 10, mode="parallel"), succeeds),
    # Two ids for the jitter; ten runs that change at once.
    Life("1 task, one retry with jitter", job("again", 1, retry=Retry(3, "2s", jitter=0.5)), fails_once, usual=False),
    Life("10 tasks, parallel, fail-fast", job("fast", 10, mode="parallel"), one_fails, usual=False),
]


def events_of(life: Life) -> list[tuple[OccurrenceHeader, OccurrenceLife, LifeEvent, datetime]]:
    """Live one life and return what `advance` was asked on the way."""
    now, asked = NOON, []
    occurrence, rules = occurrence_of(life.job, NOON), rules_of(life.job)
    header, stands = header_of(occurrence, rules), life_of(occurrence, rules)
    coming: list[LifeEvent] = [Claimed()]
    while coming:
        asked.append((header, stands, coming.pop(0), now))
        step = advance(*asked[-1])
        now, stands = now + timedelta(milliseconds=700), step.after
        coming += [AttemptEnded(one.task, one.number, life.outcome(one.task, one.number)) for one in step.starts]
        coming += [WaitOver(wait.task) for wait in step.waits]
    assert stands.status in (OccurrenceStatus.COMPLETED, OccurrenceStatus.FAILED), stands.status
    return asked


def microseconds(life: Life) -> float:
    """The time of one event, over the quietest of many short rounds."""
    asked = events_of(life) * 30
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for header, stands, event, now in asked:
            advance(header, stands, event, now)
        best = min(best, time.perf_counter() - begun)
    return best / len(asked) * 1e6


def microseconds_of_a_value() -> float:
    """The time to build a RunState, for comparison."""
    rounds = timeit.repeat(lambda: RunState(RunStatus.RUNNING, 1, 0, None, None, NOON, NOON), number=300, repeat=ROUNDS)
    return min(rounds) / 300 * 1e6


def main() -> int:
    print(f"{'building one RunState':32} {microseconds_of_a_value():5.2f} µs")
    slow = 0
    for life in LIVES:
        each = microseconds(life)
        slow += life.usual and each > LIMIT
        print(f"{life.name:32} {each:5.2f} µs an event")
    print(f"at most {LIMIT:.0f} µs wanted of the first three: " + ("missed" if slow else "kept"))
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
