"""Which ends of a job its receivers are told of: the first failure of an outage, and the first success after it.

An outage is a row of failures in the order of ends. Whether an end begins or ends one is a function of the history
alone, so a report that comes twice, late or out of order leads to the same notices. Requested runs of past instants
are judged among themselves: a replay of last month that succeeds does not end today's outage.

A notice is a run of a job of its own: it is retried, stored and explained like any other run.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from everytick.domain.config import Level
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.notices import OWNER, NoticeKind, Notify
from everytick.domain.occurrence import Cause, Occurrence, TaskRun
from everytick.domain.payload import Payload, payload
from everytick.domain.policy_checks import as_data
from everytick.domain.promises import Breach
from everytick.domain.retry import Retry
from everytick.domain.rollouts import RolloutVerdict, Way
from everytick.domain.statuses import FAILURES, OccurrenceStatus, RunStatus
from everytick.domain.values import value
from everytick.errors import shown
from everytick.schedules.notice import NoticeSchedule

NEWS = FAILURES | {OccurrenceStatus.COMPLETED}
"""The ends that begin or end an outage. An occurrence that was skipped, missed, superseded or canceled does neither."""

TYPES = {
    NoticeKind.ON_FAILURE: "io.everytick.occurrence.failed.v1",
    NoticeKind.ON_RECOVERY: "io.everytick.occurrence.recovered.v1",
    NoticeKind.ON_SUCCESS: "io.everytick.occurrence.succeeded.v1",
}
BROKEN, KEPT = "io.everytick.promise.broken.v1", "io.everytick.promise.kept.v1"
"""The types of events about a promise that was broken, and about one that is kept again."""

ROLLED_BACK, ROLLED_OUT = "io.everytick.rollout.rolled_back.v1", "io.everytick.rollout.finished.v1"
"""The types of events about a version on trial that was rolled back, and about one that came into force."""

_LONGEST_ERROR = 4_000
"""Characters of an error in an event: a command has to take all of it in one environment variable."""

_LONGEST_TASK_ERROR = 2_000
"""Characters of the error of one task in an event."""

_MOST_TASKS = 5
_FAILED_RUNS = frozenset({RunStatus.FAILED, RunStatus.TIMEOUT})

_RETRY = Retry(max=36, interval="1s", factor=2, max_interval="1h", jitter=0.1)
"""A receiver that is away for a day is still told: twelve tries in the first hour, then one each hour."""

_SIGN_RETRY = Retry(max=5, interval="1s", factor=2, max_interval="30s", jitter=0.1)
"""A sign of life is of no use hours later: the next success sends another."""


@value
class Notice:
    """One notice that is due: its kind, and the occurrence that it is about."""

    kind: NoticeKind
    occurrence: Occurrence


def notices_of(occurrence_id: str, ends: Iterable[Occurrence], *, tells_success: bool = False) -> tuple[Notice, ...]:
    """Return the notices that follow from the end of this occurrence, by the ends of its job around it.

    The end after it is judged too. It may have been reported before this one was committed, and then looked as if it
    followed another end. With `tells_success` its own success is told, unless it was of a past instant: that the job
    did last month's work again is no sign that it runs today.
    """
    known = {end.id: end for end in ends if end.status in NEWS and end.ended_at is not None}
    if occurrence_id not in known:
        return ()
    own = known[occurrence_id]
    peers = (end for end in known.values() if past_cause(end) is past_cause(own))
    row = sorted(peers, key=lambda end: (end.ended_at, end.id))
    place = row.index(own)
    judged = (_judged(row[at - 1] if at else None, row[at]) for at in range(place, min(place + 2, len(row))))
    notices = tuple(notice for notice in judged if notice is not None)
    is_success = tells_success and own.status is OccurrenceStatus.COMPLETED and past_cause(own) is None
    return (*notices, Notice(NoticeKind.ON_SUCCESS, own)) if is_success else notices


def past_cause(end: Occurrence) -> Cause | None:
    """Return the cause of a run of a past instant; None for a run of its own time."""
    is_of_past = end.cause in (Cause.BACKFILL, Cause.REPLAY) or (
        end.cause is Cause.TRIGGER and end.line_at is not None and end.scheduled_for < end.line_at
    )
    return end.cause if is_of_past else None


def _judged(before: Occurrence | None, end: Occurrence) -> Notice | None:
    """Say whether this end begins or ends an outage, by the end before it."""
    was_failing = before is not None and before.status in FAILURES
    if end.status in FAILURES:
        return None if was_failing else Notice(NoticeKind.ON_FAILURE, end)
    return Notice(NoticeKind.ON_RECOVERY, end) if was_failing else None


def _failed_task(run: TaskRun) -> dict[str, object]:
    error = None if run.error is None else run.error[:_LONGEST_TASK_ERROR]
    return {"task": run.task, "status": str(run.status), "attempts": run.attempts, "error": error}


def receivers_of(job: Job, kind: NoticeKind) -> Notify | None:
    """Return who is told. Of a breach these are the receivers of `on_failure`, unless `on_breach` is set."""
    if kind is NoticeKind.ON_BREACH and job.settings.origin(kind) is Level.DEFAULT:
        return job.settings.on_failure
    wanted: Notify | None = getattr(job.settings, kind)
    return wanted


def notice_job(job: Job, kind: NoticeKind, queue: str | None = None) -> Job | None:
    """Return the job that sends this kind of notice of a job; None if no receiver is named.

    It needs what the job needs: a node that may run the job has the environment that the receivers want. With a
    `queue` any node may send it that takes from this queue: no node that may run the job is there.
    """
    wanted = receivers_of(job, kind)
    if wanted is None:
        return None
    name, needs = notice_job_name(job.name, kind), job.labels.split("\n") if job.labels and queue is None else []
    receivers = [json.loads(text) for text in wanted.receivers]
    tasks = [
        define_task(name, task, target=json.dumps({"notice": receiver, "needs": needs}, ensure_ascii=False))
        for task, receiver in zip(_task_names(receivers), receivers, strict=True)
    ]
    policies: dict[str, object] = {
        "description": f"Notices of job '{shown(job.name)}'.",
        "failure": "continue",
        "max_lost": None,
        "mode": "parallel",
        "on_orphan": "resume",
        "overlap": "allow",
        "queue": job.settings.queue if queue is None else queue,
        "retry": _SIGN_RETRY if kind is NoticeKind.ON_SUCCESS else _RETRY,
        "task_timeout": "2m",
    }
    return define_job(name, NoticeSchedule(kind), policies=policies, tasks=tasks, owner=OWNER, code=job.code)


def notice_job_name(job: str, kind: NoticeKind) -> str:
    """Return the name of the job that sends this kind of notice."""
    return f"{job}.{kind}"


def _task_names(receivers: list[dict[str, Any]]) -> list[str]:
    """Name each task as its receiver; of several of one kind the second is `webhook-2`."""
    kinds = [next(key for key in receiver if key not in ("env", "cwd")) for receiver in receivers]
    counted = [kinds[: place + 1].count(kind) for place, kind in enumerate(kinds)]
    return [kind if count == 1 else f"{kind}-{count}" for kind, count in zip(kinds, counted, strict=True)]


def event_of(job: Job, notice: Notice, runs: Iterable[TaskRun] = ()) -> Payload:
    """Return the CloudEvent of a notice, with the tasks that failed among these runs of the occurrence.

    The same notice has the same event, whichever node asks for it.
    """
    end = notice.occurrence
    assert end.ended_at is not None, "a notice is about an end"
    word = TYPES[notice.kind].split(".")[-2]
    return payload(
        {
            "specversion": "1.0",
            "id": f"{end.id}.{word}",
            "source": f"/everytick/jobs/{job.id}",
            "type": TYPES[notice.kind],
            "subject": job.name,
            "time": end.ended_at.isoformat(),
            "datacontenttype": "application/json",
            "data": {
                "job": job.name,
                "job_id": job.id,
                "occurrence_id": end.id,
                "version": end.version,
                "cause": str(end.cause),
                "status": str(end.status),
                "error": None if end.error is None else end.error[:_LONGEST_ERROR],
                "scheduled_for": end.scheduled_for.isoformat(),
                "started_at": None if end.started_at is None else end.started_at.isoformat(),
                "ended_at": end.ended_at.isoformat(),
                "node": end.node,
                "failed_tasks": [_failed_task(run) for run in runs if run.status in _FAILED_RUNS][:_MOST_TASKS],
            },
        },
        "the event of a notice",
    )


def breach_key(breach: Breach, *, is_over: bool) -> str:
    """Return the key under which the notice of a breach, or of its end, is asked for once."""
    return f"{breach.kind} {breach.broken_for.isoformat()} {'kept' if is_over else 'broken'}"


def breach_event(job: Job, breach: Breach, *, is_over: bool) -> Payload:
    """Return the CloudEvent of a promise that was broken, or that is kept again; the same whichever node asks."""
    word, at = ("kept", breach.ended_at) if is_over else ("broken", breach.due_at)
    assert at is not None, "a promise is kept again when its breach has ended"
    return payload(
        {
            "specversion": "1.0",
            "id": f"{job.id}.{breach.kind}.{breach.broken_for.isoformat()}.{word}",
            "source": f"/everytick/jobs/{job.id}",
            "type": KEPT if is_over else BROKEN,
            "subject": job.name,
            "time": at.isoformat(),
            "datacontenttype": "application/json",
            "data": {
                "job": job.name,
                "job_id": job.id,
                "promise": str(breach.kind),
                "promised": as_data(getattr(job.settings, breach.kind)),
                "status": word,
                "error": None if is_over else str(breach)[:_LONGEST_ERROR],
                "scheduled_for": breach.broken_for.isoformat(),
                "due_at": breach.due_at.isoformat(),
                "found_at": breach.found_at.isoformat(),
                "ended_at": None if not is_over else at.isoformat(),
                "instants": breach.count,
                "occurrence_id": breach.occurrence_id,
            },
        },
        "the event of a notice",
    )


def rollout_event(job: Job, verdict: RolloutVerdict, now: datetime) -> Payload:
    """Return the CloudEvent of a rollout that is over. What it comes to is the version after the one on trial."""
    is_back = verdict.way is Way.BACK
    return payload(
        {
            "specversion": "1.0",
            "id": f"{job.id}.rollout.{verdict.version}",
            "source": f"/everytick/jobs/{job.id}",
            "type": ROLLED_BACK if is_back else ROLLED_OUT,
            "subject": job.name,
            "time": now.isoformat(),
            "datacontenttype": "application/json",
            "data": {
                "job": job.name,
                "job_id": job.id,
                "version": verdict.version,
                "version_in_force": verdict.version + 1,
                "status": "rolled_back" if is_back else "in_force",
                "error": verdict.said[:_LONGEST_ERROR] if is_back else None,
                "reason": verdict.said[:_LONGEST_ERROR],
            },
        },
        "the event of a notice",
    )
