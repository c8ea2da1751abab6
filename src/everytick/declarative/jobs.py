"""The job that runs a task: every rule of the specification is a policy of it.

| The specification | The core |
|---|---|
| POSIX expression, zone of the host, missing minutes skipped, repeated ones run twice | `posix`, the zone by name |
| never beside itself; what came meanwhile is one run (S2-007) | `overlap="queue_latest"` |
| at most one run after any downtime (S2-011) | `recovery="execute_last"`, and the newest is never late |
| runs at first sight only in its minute (S2-012) | `on_create="if_matching_now"` |
| retries without end, until the next minute comes (S2-022…024) | `Retry(None, delay, superseded_by_next=True)` |
| what an earlier instance left running restarts (S2-059) | `on_orphan="restart"`, `max_lost=None` |
| callbacks are closures of one process | a queue for each scheduler, which no other node serves |
"""

from datetime import timedelta
from functools import lru_cache

from everytick.app.text_reading import in_zone
from everytick.declarative.documents import TaskDocument, target_of, written
from everytick.declarative.names import job_name
from everytick.declarative.registrations import Registration
from everytick.domain.config import Level, Overrides, overrides
from everytick.domain.durations import LONGEST_DURATION
from everytick.domain.ids import job_id
from everytick.domain.job import Job, TaskDefinition, restored_job
from everytick.domain.retry import Retry

TASK = "callback"
"""The name of the one task in each of these jobs."""

# Longer than any downtime: a make-up run then waits as any other, and only the newest of all waiting runs is kept.
_NEVER_LATE = timedelta(days=36_500)

_NOTHING = Overrides(Level.TASK)


def owner_of(scheduler: str) -> str:
    """Return the owner of this scheduler's jobs, which is also their queue."""
    return f"declarative:{scheduler}"


@lru_cache(maxsize=64)
def common_policies(scheduler: str) -> Overrides:
    """Return the policies that all jobs of a scheduler share."""
    common = {
        "overlap": "queue_latest",
        "recovery": "execute_last",
        "grace": _NEVER_LATE,
        "on_create": "if_matching_now",
        "on_orphan": "restart",
        "max_lost": None,
        "task_timeout": None,
        "queue": owner_of(scheduler),
    }
    return overrides(Level.APPLICATION, common)


@lru_cache(maxsize=1024)
def own_policies(delay: timedelta) -> Overrides:
    """Return the policies of one job: its retry delay, at most the longest duration that a date can have."""
    return overrides(Level.JOB, {"retry": Retry(None, min(delay, LONGEST_DURATION), superseded_by_next=True)})


def job_of(scheduler: str, registration: Registration, document: TaskDocument) -> Job:
    """Return the definition of the task, with its document. Its parts were checked before."""
    name = job_name(scheduler, registration.name)
    return restored_job(
        id=job_id(name),
        name=name,
        schedule=registration.schedule,
        tasks=[TaskDefinition(TASK, written(document), (), _NOTHING)],
        overrides=own_policies(registration.retry_delay),
        application=common_policies(scheduler),
        version=1,
        owner=owner_of(scheduler),
        in_zone=in_zone,
    )


def with_data(job: Job, data: object) -> Job:
    """Return the same job with this JSON value as its document, unchecked."""
    return _again(job, job.overrides, [TaskDefinition(TASK, target_of(data), (), _NOTHING)])


def unscheduled(job: Job) -> Job:
    """Return the same job disabled: its task is not registered."""
    disabled = overrides(Level.JOB, {**dict(job.overrides.items), "enabled": False})
    tasks = [TaskDefinition(task.name, task.target, task.after, task.overrides, task.parameters) for task in job.tasks]
    return _again(job, disabled, tasks)


def _again(job: Job, own: Overrides, tasks: list[TaskDefinition]) -> Job:
    return restored_job(
        id=job.id,
        name=job.name,
        schedule=job.schedule,
        tasks=tasks,
        overrides=own,
        application=job.application,
        version=job.version,
        owner=job.owner,
        in_zone=in_zone,
    )
