"""`show`: one job, or one occurrence with its attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from everytick.answers.jobs import job_data, job_details, promise_details, set_policies, word
from everytick.answers.occurrences import attempt_data, occurrence_data
from everytick.cli.asking import look
from everytick.cli.common_options import VerbCommand
from everytick.cli.completing import job_argument
from everytick.cli.history import last_of_each, names_of, took
from everytick.cli.ids import may_be_occurrence, occurrence_or_job
from everytick.cli.output import as_json_text, is_terminal, listed, show_json, show_pairs, show_table, show_text
from everytick.cli.promises import promise_pairs
from everytick.cli.times import Times
from everytick.cli.verb_options import reading
from everytick.domain.headlines import headline
from everytick.domain.templates import SCHEDULE, TASKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from everytick.answers.values import JobStatus, JobVersion, NodeReports
    from everytick.app import Everytick
    from everytick.domain.job import Job
    from everytick.domain.occurrence import Attempt
    from everytick.domain.promises import BreachRecord
    from everytick.domain.proposals import Proposal
    from everytick.stores.base import JobRecord, Whole

_BREACHES_SHOWN = 5


class _SeenJob(NamedTuple):
    """What is told of one job."""

    record: JobRecord
    status: JobStatus
    following: list[datetime]
    broken: NodeReports
    waiting: list[Proposal]
    past: Sequence[BreachRecord]
    versions: list[JobVersion]


@click.command(
    "show",
    cls=VerbCommand,
    help="Show one job, or one occurrence with its attempts.\n\n"
    "Of a job: schedule, tasks, policies, pause, next runs. "
    "Of an occurrence, give its id or at least the first 8 characters of it.",
)
@job_argument("job_or_occurrence")
@reading
def show_verb(job_or_occurrence: str, as_json: bool, utc: bool) -> None:
    """Show one job, or one occurrence with its attempts."""
    times, job = Times(utc), job_or_occurrence
    id_ = look(lambda app: occurrence_or_job(app, job)) if may_be_occurrence(job) else None
    if id_ is not None:
        _show_occurrence(id_, as_json, times)
        return

    async def asked(app: Everytick) -> _SeenJob:
        record = await app.job(job)
        waiting = (
            [proposal for proposal in await app.proposals() if job in proposal.jobs] if record.job.is_protected else []
        )
        return _SeenJob(
            record,
            await app.status(job),
            await app.next_runs(job, 5),
            await app.reports([record]),
            waiting,
            await app.breaches(job, limit=_BREACHES_SHOWN),
            await app.versions(job, 16),
        )

    record, status, following, broken, waiting, past, versions = look(asked)
    wrong, unknown = broken.of_job.get(record.job.name), broken.unknown.get(record.job.name)
    if as_json:
        more = {"proposals": [proposal.id for proposal in waiting], **promise_details(record, status, past)}
        show_json(job_data(record, status, broken) | job_details(record, following) | more)
        return
    pairs = [*_pairs(record, status, following, times, unknown, versions), *promise_pairs(record, status, past, times)]
    proposals = [f"{proposal.id}: {proposal.what}, by {proposal.by}" for proposal in waiting]
    wrongs = (wrong or "").splitlines()
    show_pairs([*pairs, *listed("proposed", proposals), *listed("broken file", wrongs)], times)


def _pairs(
    record: JobRecord,
    status: JobStatus,
    following: list[datetime],
    times: Times,
    unknown: str | None,
    versions: Sequence[JobVersion],
) -> Iterable[tuple[str, object]]:
    job, pause = record.job, record.pause
    yield "job", job.name
    yield "status", word(record, status, unknown)
    if unknown is not None:
        yield "no node can run it", unknown
    if record.parked_reason is not None:
        yield "not planned", record.parked_reason
    if status.waits:
        yield "waits", status.waits
    yield "description", job.settings.description
    if job.templates is not None:
        yield "templates", ", ".join(job.templates.names)
    yield "schedule", str(job.schedule) + _from_template(job, SCHEDULE)
    yield "in words", job.schedule.describe()
    yield "owner", f"{job.owner}, version {job.version}"
    yield from _in_force(record, versions, times)
    if pause is not None:
        until = "it is resumed" if pause.until is None else times.shown(pause.until)
        why = f": {pause.reason}" if pause.reason else ""
        by = f" by {pause.by}" if pause.by else ""
        yield "paused", f"since {times.shown(pause.since)} until {until}{by}{why}"
    yield from listed("depends on", [dependency.describe() for dependency in job.settings.depends_on])
    yield from listed("next runs", following)
    yield "last run", status.last_run
    yield "last result", status.last_result
    yield "runs", status.run_count
    yield "last error", headline(status.last_error) if status.last_error and is_terminal() else status.last_error
    yield from listed(
        "tasks" + _from_template(job, TASKS),
        (task.name + (f" after {', '.join(task.after)}" if task.after else "") for task in job.tasks),
    )
    yield from listed(
        "policies",
        (f"{name} = {value} (set by {_setter(name, level, job)})" for name, value, level in set_policies(record)),
    )


def _from_template(job: Job, part: str) -> str:
    source = None if job.templates is None else job.templates.source(part)
    return "" if source is None else f" (from template '{source}')"


def _in_force(record: JobRecord, versions: Sequence[JobVersion], times: Times) -> Iterable[tuple[str, object]]:
    """Give the version in force, where it is not the newest, and those that are to come."""
    for version in reversed(versions):
        if version.is_in_force and version.version != record.job.version:
            yield "in force", f"version {version.version}: {version.job.schedule}"
        if version.is_on_trial and version.rollout is not None:
            yield "on trial", f"version {version.version}: {version.rollout.stage}"
        if version.is_coming and version.in_force_after is not None:
            yield "to come", f"version {version.version} after {times.shown(version.in_force_after)}"


def _setter(policy: str, level: str, job: Job) -> str:
    """Say who set a policy: the defaults of a job that no application defines stand in its file."""
    if level == "template" and job.templates is not None:
        return f"template '{job.templates.source(policy)}'"
    is_file = level == "application" and not job.owner.startswith("code")
    return "the defaults of its file" if is_file else f"the {level}"


def _show_occurrence(id_: str, as_json: bool, times: Times) -> None:
    async def asked(app: Everytick) -> tuple[Whole, dict[str, str], Any]:
        whole = await app.entry(id_)
        return whole, await names_of(app, [whole.occurrence]), await app.payload_of(whole.occurrence)

    whole, names, payload = look(asked)
    data = occurrence_data(whole.occurrence, names) | {"payload": payload}
    tries = [(task, attempt) for task, attempt in whole.attempts]
    if as_json:
        results = {"result": whole.result, "results": whole.results}
        show_json(data | results | {"attempts": [attempt_data(task, attempt) for task, attempt in tries]})
        return
    pairs = [(key.replace("_", " "), value) for key, value in data.items() if key != "payload"]
    show_pairs([*pairs, ("payload", as_json_text(payload)), *_results(whole)], times)
    if tries:
        _show_attempts(tries, times)
    if is_terminal():
        for task, attempt in last_of_each(tries):
            if attempt.error is not None and "\n" in attempt.error:
                click.echo()
                show_text(f"{task}, attempt {attempt.number}:\n{attempt.error}")


def _results(whole: Whole) -> list[tuple[str, object]]:
    """Return the results of the tasks, by task name if there are several."""
    if len(whole.runs) == 1:
        return [("result", as_json_text(whole.result))]
    return [(f"result of {task}", as_json_text(result)) for task, result in whole.results.items()]


def _show_attempts(tries: Sequence[tuple[str, Attempt]], times: Times) -> None:
    """Write a row for each attempt. On a terminal the node is left out if one ran all of them: it stands above."""
    is_one_node = is_terminal() and len({attempt.node for _, attempt in tries}) == 1
    rows = [
        {
            "task": task,
            "attempt": attempt.number,
            "status": attempt.status,
            times.heading("started"): attempt.started_at,
            "took": took(attempt),
            **({} if is_one_node else {"node": attempt.node}),
            "error": _error(attempt),
        }
        for task, attempt in tries
    ]
    show_table(list(rows[0]), [list(row.values()) for row in rows], times)


def _error(attempt: Attempt) -> str | None:
    """Return the error of an attempt: one line on a terminal, which shows the last error whole; all in a pipe."""
    return headline(attempt.error) if attempt.error and is_terminal() else attempt.error
