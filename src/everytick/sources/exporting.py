"""Export: from definitions to job files. Each file is read back before it is written; a job that differs is left out.

What only a program can say has no words in a file: its own functions, calendars with their
dates, names outside of letters, digits, `_` and `-`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from everytick.domain.values import value
from everytick.errors import shown
from everytick.runners.targets import CallTarget, FunctionTarget, read_target
from everytick.schedules.combine import Spread
from everytick.sources.job_files import read_jobs
from everytick.sources.yaml_writer import written_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from everytick.domain.job import Job, Task

_OTHERWISE = "a file would not say the same"


@value
class Unwritten:
    """A job that no file can hold, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"job '{shown(self.name)}': {self.why}"


@value
class Exported:
    """The texts of the files, and the jobs that are in none of them."""

    texts: tuple[str, ...]
    left: tuple[Unwritten, ...]
    count: int
    is_merged: bool
    """Whether defaults of applications were written into their jobs, to bring all into one file."""


def export_jobs(jobs: Iterable[Job], *, one_file: bool, as_calls: bool = False, head: Iterable[str] = ()) -> Exported:
    """Return files with these jobs, one for all jobs with the same application defaults.

    With `one_file` there is only one; where the defaults differ, each job says its own then.
    `as_calls` writes functions of an application as calls, which a node must allow.
    """
    left: list[Unwritten] = []
    groups: dict[str, dict[str, Mapping[str, object]]] = {}
    chosen = list(jobs)
    shared = {json.dumps(job.application.as_data(), sort_keys=True) for job in chosen}
    merge = one_file and len(shared) > 1
    for job in chosen:
        defaults = {} if merge else job.application.as_data()
        try:
            parts = _parts(job, as_calls, merge)
        except _Unwritable as reason:
            left.append(Unwritten(job.name, str(reason)))
            continue
        if why := _mistakes(job, parts, defaults, as_calls=as_calls):
            left.append(Unwritten(job.name, why))
        else:
            groups.setdefault(json.dumps(defaults, sort_keys=True), {})[job.name] = parts
    texts = [written_file(found, defaults=json.loads(defaults), head=head) for defaults, found in groups.items()]
    return Exported(tuple(texts), tuple(left), sum(map(len, groups.values())), merge)


class _Unwritable(Exception):
    """No file can express this. The text is the reason."""


def _parts(job: Job, as_calls: bool, merge: bool) -> dict[str, object]:
    """Return the job as values for a file."""
    inherited = {} if job.templates is None else job.templates.overrides.as_data()
    policies = {**(job.application.as_data() if merge else {}), **inherited, **job.overrides.as_data()}
    # The policy is an option of the schedule already, and a file with both is refused.
    own = job.schedule.schedule if isinstance(job.schedule, Spread) and job.settings.spread else job.schedule
    return {"schedule": str(own), **policies, **_work(job, as_calls)}


def _work(job: Job, as_calls: bool) -> dict[str, object]:
    if not job.tasks:
        raise _Unwritable("it has no task")
    only = job.tasks[0]
    if len(job.tasks) == 1 and only.name == job.name and not only.after and not only.overrides.items:
        return _target(only, as_calls)
    return {"tasks": [_task(task, as_calls) for task in sorted(job.tasks, key=lambda task: task.order)]}


def _task(task: Task, as_calls: bool) -> dict[str, object]:
    after: dict[str, object] = {"after": list(task.after)} if task.after else {}
    return {"name": task.name, **_target(task, as_calls), **after, **task.overrides.as_data()}


def _target(task: Task, as_calls: bool) -> dict[str, object]:
    if isinstance(read_target(task.target), FunctionTarget):
        if not as_calls:
            raise _Unwritable(f"'{shown(task.target)}' is a function of its application: --as-calls writes a call")
        return {"call": task.target}
    found: dict[str, object] = json.loads(task.target)
    return found


def _mistakes(job: Job, parts: Mapping[str, object], defaults: Mapping[str, object], *, as_calls: bool) -> str:
    """Return why a file with this job would be refused or differ, an empty text if it would not."""
    try:
        raw = written_file({job.name: parts}, defaults=defaults).encode()
    except UnicodeEncodeError:
        return "it holds half a character, which no file can"
    read = read_jobs(raw, "")
    if read.mistakes:
        return "; ".join(mistake.message for mistake in read.mistakes)
    [file_job] = read.jobs
    return "" if meaning(file_job.job, as_calls=as_calls) == meaning(job, as_calls=as_calls) else _OTHERWISE


def meaning(job: Job, *, as_calls: bool = False) -> Any:
    """Return all parts of a definition except its owner, its version and the levels of its policies.

    With `as_calls` a function and a call of the same place are the same.
    """
    settings = [(key, setting.value) for key, setting in job.settings.effective().items()]
    tasks = [(task.name, task.order, _done(task.target, as_calls), task.after, task.overrides) for task in job.tasks]
    return job.id, job.name, job.schedule, settings, tasks


def _done(target: str, as_calls: bool) -> object:
    found = read_target(target)
    return found.path if as_calls and isinstance(found, (FunctionTarget, CallTarget)) else found
