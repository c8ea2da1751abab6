"""The job of the core that a task is: everything the specification asks for is a policy of it.

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

from everytick.app.lookups import in_zone
from everytick.declarative.documents import TaskDocument, target_of, written
from everytick.declarative.registrations import Registration, job_name
from everytick.domain.job import Job, TaskDefinition, define_job, define_task
from everytick.domain.retry import Retry

TASK = "callback"
"""The name of the one task in each of these jobs."""

# Longer than any downtime: a make-up run then stands in line as any other does, and only the newest of all waits.
_NEVER_LATE = timedelta(days=36_500)


def owner_of(scheduler: str) -> str:
    """Return whose the jobs of this scheduler are, which is also the queue they stand in."""
    return f"declarative:{scheduler}"


def prefix_of(scheduler: str) -> str:
    """Return what the names of all jobs of this scheduler begin with."""
    return job_name(scheduler, "")


def job_of(scheduler: str, registration: Registration, document: TaskDocument) -> Job:
    """Return the definition of the task, with its document on it."""
    name = job_name(scheduler, registration.name)
    return define_job(
        name,
        registration.schedule,
        policies={
            "overlap": "queue_latest",
            "recovery": "execute_last",
            "grace": _NEVER_LATE,
            "on_create": "if_matching_now",
            "retry": Retry(None, registration.retry_delay, superseded_by_next=True),
            "on_orphan": "restart",
            "max_lost": None,
            "task_timeout": None,
            "queue": owner_of(scheduler),
        },
        tasks=[define_task(name, TASK, target=written(document))],
        owner=owner_of(scheduler),
        in_zone=in_zone,
    )


def with_data(job: Job, data: object) -> Job:
    """Return the same job with this JSON value in the place of its document, whatever it says."""
    return _again(job, tasks=[define_task(job.name, TASK, target=target_of(data))])


def unscheduled(job: Job) -> Job:
    """Return the same job, which is kept and decides nothing: its task is not registered."""
    return _again(job, enabled=False)


def _again(job: Job, *, enabled: bool | None = None, tasks: list[TaskDefinition] | None = None) -> Job:
    policies = dict(job.overrides.items)
    if enabled is not None:
        policies["enabled"] = enabled
    kept = [TaskDefinition(task.name, task.target, task.after, task.overrides) for task in job.tasks]
    return define_job(
        job.name,
        job.schedule,
        policies=policies,
        tasks=kept if tasks is None else tasks,
        owner=job.owner,
        in_zone=in_zone,
    )
