"""What was committed, told once, after the commit: to the log, to hooks, meters and streams of this process.

An event is a hint for people and meters; nothing is decided by it. Successes make events only
where a listener or the log takes them; failures always do.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

from everytick.domain.headlines import with_limit
from everytick.domain.statuses import RunStatus
from everytick.domain.steps import OccurrenceEnd, Row, Rules, Step
from everytick.domain.values import value
from everytick.stores.base import Claim

_FAILED_RUNS = (RunStatus.FAILED, RunStatus.TIMEOUT)


class Happening(StrEnum):
    """What happened."""

    CREATED = "created"
    SKIPPED = "skipped"
    STARTED = "started"
    ATTEMPT_ENDED = "attempt_ended"
    RETRY_PLANNED = "retry_planned"
    ENDED = "ended"
    LOST = "lost"
    STORE_LOST = "store_lost"
    STORE_FOUND = "store_found"
    DUPLICATE = "duplicate"
    DEFINITION_BROKEN = "definition_broken"
    DEFINITION_MENDED = "definition_mended"


@value(frozen=True)
class Event:
    """One thing that happened to a job, or to the node where `job` is empty.

    `status` is the status after it, `text` what a person would want to know. Instants that did
    not run for one reason are one event: `count` says how many (None: more than 10,000), `first`
    and `scheduled_for` are the first and the last of them.

    Of an attempt that ended, `of` says how many there may be at most (None: no limit, or not known),
    `retry_at` when the next one begins after which `wait`, and `is_last` that its occurrence ended
    with it. `traceback` is the whole error of a failure that is not tried again, or tried for ever.
    """

    kind: Happening
    at: datetime
    job: str = ""
    occurrence_id: str | None = None
    scheduled_for: datetime | None = None
    task: str | None = None
    attempt: int | None = None
    status: str = ""
    text: str = ""
    count: int | None = 1
    first: datetime | None = None
    of: int | None = None
    retry_at: datetime | None = None
    wait: timedelta | None = None
    is_last: bool = False
    traceback: str = ""


def events_of(claim: Claim, step: Step, at: datetime) -> Iterator[Event]:
    """Give what a committed step of the claim means to others."""
    seen = claim.header
    about = partial(Event, at=at, job=claim.job.name, occurrence_id=seen.id, scheduled_for=seen.scheduled_for)
    for row in step.rows:
        if row.attempt is not None and row.ended_at is not None:
            ended = partial(about, Happening.ATTEMPT_ENDED, task=row.task, attempt=row.number)
            limit = seen.rules.tasks[seen.rules.places[row.task]].timeout
            text = with_limit(row.error, limit) if row.error is not None else ""
            yield ended(status=row.attempt, text=text, **_what_follows(seen.rules, step, row))
    for wait in step.waits:
        yield about(Happening.RETRY_PLANNED, task=wait.task, attempt=wait.number, text=f"at {wait.until}")
    if step.resume_at is not None:
        # Parked: whoever claims it at that time goes on, so the step itself waits for nothing.
        for task, run in zip(seen.rules.tasks, step.after.runs, strict=True):
            if run.resume_at is not None:
                planned = partial(about, Happening.RETRY_PLANNED, task=task.name, attempt=run.attempts + 1)
                yield planned(text=f"at {run.resume_at}")
    if step.end is not None:
        yield about(Happening.ENDED, status=step.end.status, text=step.end.error or "", traceback=_tracebacks(step.end))


def _what_follows(rules: Rules, step: Step, row: Row) -> dict[str, Any]:
    """Return how many attempts there may be, and when the next one begins; nothing of one that ended well."""
    if row.error is None:
        return {}
    run, retry = row.run, rules.tasks[rules.places[row.task]].retry
    limit = 0 if retry is None else retry.max
    of = None if limit is None else row.number + max(limit - run.retries, 0) + (run.status is RunStatus.PENDING)
    if run.status is not RunStatus.PENDING:
        return {"of": of, "is_last": step.end is not None}
    wait = run.waits[-1] if run.waits else None
    return {"of": of, "retry_at": run.resume_at, "wait": wait, "traceback": "" if of is not None else row.error}


def _tracebacks(ended: OccurrenceEnd) -> str:
    """Return the whole errors of the tasks that failed, each below the name of its task if there are several.

    An error of one line stands in the text of the end already.
    """
    pairs = zip(ended.header.rules.tasks, ended.life.runs, strict=True)
    failed = [(task.name, run.error) for task, run in pairs if run.status in _FAILED_RUNS and run.error]
    if len(failed) == 1:
        [(_, error)] = failed
        return error if "\n" in error else ""
    return "\n".join(f"task {name}: {error}" for name, error in failed)


def start_of(claim: Claim, task: str, attempt: int, at: datetime) -> Event:
    """Return that an attempt begins."""
    seen = claim.header
    return Event(Happening.STARTED, at, claim.job.name, seen.id, seen.scheduled_for, task=task, attempt=attempt)


def has_failure(step: Step) -> bool:
    """Whether an attempt or the occurrence ended badly with this step."""
    is_bad_end = step.end is not None and step.end.error is not None
    return is_bad_end or any(row.error is not None for row in step.rows)
