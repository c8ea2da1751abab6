"""`list`, `show`, `history` and `nodes`: what is defined, how it stands, what has been, and who runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from everytick.cli.completing import job_argument
from everytick.cli.ids import may_be_occurrence, occurrence_or_job, short, with_short_ids
from everytick.cli.options import reading, watchable
from everytick.cli.output import (
    as_json_text,
    columns,
    is_terminal,
    listed,
    say,
    show_json,
    show_pairs,
    show_table,
    show_text,
)
from everytick.cli.session import look, store_of_app
from everytick.cli.state import Verb
from everytick.cli.times import Times, before
from everytick.domain.headlines import headline
from everytick.errors import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from everytick.app import Everytick
    from everytick.app.questions import JobStatus
    from everytick.domain.occurrence import Attempt, Occurrence
    from everytick.stores.base import JobRecord, NodeRecord, Whole

_PAGE = 1000
UNKNOWN = "no node can run it"
FAILED = ("failed", "failed_stale", "completed_with_errors")


# ------------------------------------------------------------------------------------------------------------- list


@click.command("list", cls=Verb, help="List the jobs in the store.\n\nExample: everytick list -k backup --failed")
@click.option("-k", "contains", metavar="TEXT", help="Only jobs whose name contains this.")
@click.option("--tag", metavar="TAG", help="Only jobs that carry this tag.")
@click.option("--failed", is_flag=True, help="Only jobs whose last occurrence did not end well.")
@click.option("--all", "all_", is_flag=True, help="Also the jobs that send notices, such as nightly.on_failure.")
@reading
@watchable
def list_verb(contains: str | None, tag: str | None, failed: bool, all_: bool, as_json: bool, utc: bool) -> None:
    """List the jobs in the store."""
    from everytick.domain.notices import OWNER

    async def asked(app: Everytick) -> tuple[list[tuple[JobRecord, JobStatus]], int, Broken]:
        records = await app.jobs()
        broken = await told_by_nodes(app, records)
        stored = {record.job.name for record in records}
        missing = sum(definition.name not in stored for definition in app.definitions)
        # A notice that cannot be sent is shown among what failed, asked for or not.
        shown = records if all_ or failed else [record for record in records if record.job.owner != OWNER]
        chosen = [record for record in shown if _is_chosen(record, contains, tag, failed)]
        return await with_status(app, chosen), missing, broken

    found, missing, broken = look(asked)
    if missing:
        say(f"{missing} of the application's jobs are not in the store yet: its first run brings them there")
    tell_broken(broken)
    if as_json:
        show_json([job_data(*pair, broken) for pair in found])
        return
    times = Times(utc)
    following = times.heading("next run")
    headings = ["job", "status", "schedule", following, "last run", "last result", "broken file"]
    if is_terminal():
        # The schedule is the longest text: as the last column it may go below its row. Broken files are told above.
        headings = ["job", "status", following, "last run", "last result", "schedule"]
    rows = [
        {
            "job": record.job.name,
            "status": word(record, status, broken.unknown.get(record.job.name)),
            "schedule": record.job.schedule,
            following: status.next_run,
            "last run": status.last_run,
            "last result": _last(record),
            "broken file": (broken.of_job.get(record.job.name) or "").partition("\n")[0],
        }
        for record, status in found
    ]
    show_table(headings, [[row[heading] for heading in headings] for row in rows], times)
    if not broken.living and any(record.job.enabled for record, _ in found):
        say("no node is running: everytick run starts one", mark="yellow")
    if not rows:
        say("no job answers to that" if contains or tag or failed else "the store holds no job")


class Broken(NamedTuple):
    """The job files that living nodes cannot read, with their mistakes, and the same by the jobs of these files.

    `unknown` are the jobs that no living node knows how to run, with the reason. `parked` are those
    of which nothing is planned: some node cannot read their definition, or the store refuses their plan.
    `living` is how many nodes live.
    """

    files: dict[str, str]
    of_job: dict[str, str]
    unknown: dict[str, str]
    parked: dict[str, str]
    living: int


async def told_by_nodes(app: Everytick, records: Sequence[JobRecord]) -> Broken:
    """Return the broken files and unknown jobs that living nodes report, and the jobs that the store has parked.

    What a silent node said may be mended since, and is left out.
    """
    from everytick.domain.nodes import unknown_targets, unmet_needs

    store = await store_of_app(app)
    now = await store.now()
    alive = [node for node in await app.nodes() if node.is_alive(now, app.settings.node_timeout)]
    found = Broken({}, {}, {}, {**await store.parked()}, len(alive))
    told = [node.facts for node in alive if node.facts is not None]
    for facts in told:
        found.files.update(facts.broken_files)
        known = dict(facts.broken_files)
        found.of_job.update((job, known.get(file, f"{file}: broken")) for job, file in facts.stale_jobs)
    jobs = [record.job for record in records]
    if len(told) == len(alive):
        # A node that has not told its facts yet may well run it.
        found.unknown.update(unmet_needs(jobs, told, now))
    found.unknown.update(unknown_targets(jobs, told))
    return found


def tell_broken(broken: Broken) -> None:
    """Say which files are broken, which jobs go on as they were, which are parked, and which no node can run."""
    for job, reason in broken.parked.items():
        say(f"nothing of {shown(job)} is planned: {shown(reason, 300)}", mark="red")
    for reason in sorted(set(broken.unknown.values())):
        names = sorted(job for job, why in broken.unknown.items() if why == reason)
        say(f"no living node can run {shown(', '.join(names), 300)}: {shown(reason, 300)}", mark="red")
    for file, wrong in sorted(broken.files.items()):
        kept = sorted(job for job, reason in broken.of_job.items() if reason == wrong)
        after = f"; as they were before: {shown(', '.join(kept), 300)}" if kept else ""
        say(f"broken file {file}{after}\n  " + wrong.replace("\n", "\n  "), mark="red")


async def with_status(app: Everytick, records: Sequence[JobRecord]) -> list[tuple[JobRecord, JobStatus]]:
    """Return each job with its status. A job that was removed since is left out."""
    statuses = await app._statuses(records)
    return [(record, statuses[record.job.id]) for record in records if record.job.id in statuses]


def _is_chosen(record: JobRecord, contains: str | None, tag: str | None, failed: bool) -> bool:
    job = record.job
    if contains is not None and contains.lower() not in job.name.lower():
        return False
    if tag is not None and tag not in job.settings.tags:
        return False
    return not failed or _last(record) == "failed"


def _last(record: JobRecord) -> str | None:
    """How the last occurrence ended, as far as the job remembers: well or not."""
    end, success = record.last_end, record.last_success
    if end is None:
        return None
    return "completed" if success is not None and success.ended_at >= end.ended_at else "failed"


def word(record: JobRecord, status: JobStatus, unknown: str | None = None) -> str:
    """Return the status of a job in a word or two. `unknown` is why no node can run it."""
    if not record.job.enabled:
        return "disabled"
    if record.pause is not None:
        return "paused"
    if unknown is not None:
        return UNKNOWN
    if record.parked_reason is not None:
        return "parked"
    if status.is_running:
        return "running"
    # A job that sends notices has no instant to come, and is not over.
    return "enabled" if status.is_active or record.job.schedule_type == "notice" else "over"


def job_data(record: JobRecord, status: JobStatus, broken: Broken) -> dict[str, Any]:
    """Return a job as data."""
    job = record.job
    unknown = broken.unknown.get(job.name)
    return {
        "name": job.name,
        "id": job.id,
        "status": word(record, status, unknown),
        "unknown_target": unknown,
        "parked_reason": record.parked_reason,
        "definition_error": broken.of_job.get(job.name),
        "schedule": str(job.schedule),
        "schedule_type": job.schedule_type,
        "schedule_words": job.schedule.describe(),
        "next_run": status.next_run,
        "last_run": status.last_run,
        "last_result": _last(record),
        "run_count": status.run_count,
        "last_error": status.last_error,
        "owner": job.owner,
        "version": job.version,
        "tags": job.settings.tags,
        "is_active": status.is_active,
        "is_paused": status.is_paused,
        "is_enabled": status.is_enabled,
        "is_running": status.is_running,
    }


# ------------------------------------------------------------------------------------------------------------- show


@click.command(
    "show",
    cls=Verb,
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

    async def asked(app: Everytick) -> tuple[JobRecord, JobStatus, list[datetime], Broken]:
        record = await app.job(job)
        broken = await told_by_nodes(app, [record])
        return record, await app.status(job), await app.next_runs(job, 5), broken

    record, status, following, broken = look(asked)
    wrong, unknown = broken.of_job.get(record.job.name), broken.unknown.get(record.job.name)
    if as_json:
        show_json(job_data(record, status, broken) | _details(record, following))
        return
    pairs = _pairs(record, status, following, times, unknown)
    show_pairs([*pairs, *listed("broken file", (wrong or "").splitlines())], times)


def _details(record: JobRecord, following: list[datetime]) -> dict[str, Any]:
    pause = record.pause
    return {
        "description": record.job.settings.description,
        "next_runs": following,
        "decided_through": record.watermark,
        "pause": None
        if pause is None
        else {
            "since": pause.since,
            "until": pause.until,
            "missed": pause.missed,
            "reason": pause.reason,
            "by": pause.by,
        },
        "tasks": [{"name": task.name, "after": task.after, "target": task.target} for task in record.job.tasks],
        "policies": {name: {"value": value, "set_by": level} for name, value, level in _policies(record)},
    }


def _policies(record: JobRecord) -> list[tuple[str, object, str]]:
    """Return the policies that were set, each with its origin. Others have built-in values."""
    from everytick.domain.reading import as_data

    effective = record.job.settings.effective()
    return [
        (key, as_data(setting.value), str(setting.origin))
        for key, setting in effective.items()
        if setting.origin != "default"
    ]


def _pairs(
    record: JobRecord, status: JobStatus, following: list[datetime], times: Times, unknown: str | None
) -> Iterable[tuple[str, object]]:
    job, pause = record.job, record.pause
    yield "job", job.name
    yield "status", word(record, status, unknown)
    if unknown is not None:
        yield "no node can run it", unknown
    if record.parked_reason is not None:
        yield "not planned", record.parked_reason
    yield "description", job.settings.description
    yield "schedule", str(job.schedule)
    yield "in words", job.schedule.describe()
    yield "owner", f"{job.owner}, version {job.version}"
    if pause is not None:
        until = "somebody resumes it" if pause.until is None else times.shown(pause.until)
        why = f": {pause.reason}" if pause.reason else ""
        by = f" by {pause.by}" if pause.by else ""
        yield "paused", f"since {times.shown(pause.since)} until {until}{by}{why}"
    yield from listed("next runs", following)
    yield "last run", status.last_run
    yield "last result", _last(record)
    yield "runs", status.run_count
    yield "last error", headline(status.last_error) if status.last_error and is_terminal() else status.last_error
    yield from listed(
        "tasks", (task.name + (f" after {', '.join(task.after)}" if task.after else "") for task in job.tasks)
    )
    yield from listed(
        "policies",
        (f"{name} = {value} (set by {_setter(level, job.owner)})" for name, value, level in _policies(record)),
    )


def _setter(level: str, owner: str) -> str:
    """Say who set a policy: the defaults of a job that no application defines stand in its file."""
    return "the defaults of its file" if level == "application" and not owner.startswith("code") else f"the {level}"


def _show_occurrence(id_: str, as_json: bool, times: Times) -> None:
    async def asked(app: Everytick) -> tuple[Whole, dict[str, str], Any]:
        whole = await app.occurrence(id_)
        return whole, await _names(app, [whole.occurrence]), await _payload(app, whole.occurrence)

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
        rows = [
            (task, attempt.number, attempt.status, attempt.started_at, _took(attempt), attempt.node, _error(attempt))
            for task, attempt in tries
        ]
        show_table(["task", "attempt", "status", times.heading("started"), "took", "node", "error"], rows, times)
    if is_terminal():
        for task, attempt in last_of_each(tries):
            if attempt.error is not None and "\n" in attempt.error:
                click.echo()
                show_text(f"{task}, attempt {attempt.number}:\n{attempt.error}")


async def _payload(app: Everytick, found: Occurrence) -> Any:
    """Return the payload it runs with; only its own if its definition cannot be read here."""
    editions = await (await store_of_app(app)).editions(found.job_id, {found.version})
    return found.payload_under(editions[0].job) if editions else found.payload


def _results(whole: Whole) -> list[tuple[str, object]]:
    """Return the results of the tasks, by task name if there are several."""
    if len(whole.runs) == 1:
        return [("result", as_json_text(whole.result))]
    return [(f"result of {task}", as_json_text(result)) for task, result in whole.results.items()]


def _error(attempt: Attempt) -> str | None:
    """Return the error of an attempt: one line on a terminal, which shows the last error whole; all in a pipe."""
    return headline(attempt.error) if attempt.error and is_terminal() else attempt.error


def last_of_each(tries: Iterable[tuple[str, Attempt]]) -> list[tuple[str, Attempt]]:
    """Return the last attempt of each task."""
    return list(dict(tries).items())


def attempt_data(task: str, attempt: Attempt) -> dict[str, Any]:
    """Return an attempt as data."""
    progress, log = attempt.progress, attempt.log
    return {
        "task": task,
        "attempt": attempt.number,
        "status": attempt.status,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "node": attempt.node,
        "error": attempt.error,
        "progress": None if progress is None else [progress.done, progress.total, progress.text],
        "log": None if log is None else {"node": log.node, "path": log.path},
    }


# ---------------------------------------------------------------------------------------------------------- history


@click.command(
    "history",
    cls=Verb,
    help="Show what ran, newest first; of one JOB also what did not run, and why.\n\n"
    "Example: everytick history nightly --failed --since 7d",
)
@job_argument("job", required=False)
@click.option("--failed", is_flag=True, help="Only what did not end well.")
@click.option("--status", multiple=True, metavar="STATUS", help="Only this status, like missed; may be repeated.")
@click.option("--cause", metavar="CAUSE", help="Only this cause: schedule, trigger, replay, backfill, create, restart.")
@click.option("--since", metavar="TIME", help="Only runs from the last 24h, 7d, …")
@click.option("--after", metavar="T", help="Only what was scheduled after this moment.")
@click.option("--through", metavar="T", help="Only what was scheduled through this moment.")
@click.option("-n", "count", default=50, show_default=True, type=click.IntRange(1), help="How many at most.")
@reading
@watchable
def history_verb(
    job: str | None,
    failed: bool,
    status: tuple[str, ...],
    cause: str | None,
    since: str | None,
    after: str | None,
    through: str | None,
    count: int,
    as_json: bool,
    utc: bool,
) -> None:
    """Show what ran, newest first."""
    times = Times(utc)
    if since is not None and after is not None:
        raise click.UsageError("--since and --after both say where to begin: give one")

    async def asked(app: Everytick) -> tuple[list[Occurrence], dict[str, str]]:
        start = None if after is None else times.read(after)
        if since is not None:
            start = before(await (await store_of_app(app)).now(), since)
        end = None if through is None else times.read(through)
        statuses = [*status, *(FAILED if failed else ())]
        page = await app.history(
            job, status=statuses or None, cause=cause, after=start, through=end, limit=min(count, _PAGE)
        )
        occurrences: list[Occurrence] = []
        async for occurrence in page:
            occurrences.append(occurrence)
            if len(occurrences) == count:
                break
        return occurrences, await _names(app, occurrences)

    occurrences, names = look(asked)
    if as_json:
        show_json([occurrence_data(occurrence, names) for occurrence in occurrences])
        return
    headings = [times.heading("scheduled for"), "job", "status", "cause", "took", "id", "why"]
    rows = [
        (
            occurrence.scheduled_for,
            names[occurrence.job_id],
            occurrence.status,
            occurrence.cause,
            _took(occurrence),
            short(occurrence.id),
            _why(occurrence),
        )
        for occurrence in occurrences
    ]
    show_table(headings, rows, times)
    if not rows:
        say("no matching runs")


async def _names(app: Everytick, found: Iterable[Occurrence]) -> dict[str, str]:
    """The names of the jobs, also of those that were removed since."""
    wanted = {occurrence.job_id for occurrence in found}
    records = await (await store_of_app(app)).get(wanted)
    return {id_: records[id_].job.name if id_ in records else id_ for id_ in wanted}


def _took(found: Occurrence | Attempt) -> object:
    return None if found.started_at is None or found.ended_at is None else found.ended_at - found.started_at


def _why(found: Occurrence) -> str | None:
    # The reason of what recovery kept says so itself.
    late = "late" if found.late and not (found.reason or "").startswith("late") else None
    return with_short_ids("; ".join(filter(None, (late, found.error, found.reason)))) or None


def occurrence_data(found: Occurrence, names: dict[str, str]) -> dict[str, Any]:
    """Return an occurrence as data."""
    return {
        "id": found.id,
        "job": names[found.job_id],
        "scheduled_for": found.scheduled_for,
        "status": found.status,
        "cause": found.cause,
        "late": found.late,
        "started_at": found.started_at,
        "ended_at": found.ended_at,
        "node": found.node,
        "owner": found.owner,
        "error": found.error,
        "reason": found.reason,
        "replay_of": found.replay_of,
        "version": found.version,
    }


# ------------------------------------------------------------------------------------------------------------ nodes


@click.command("nodes", cls=Verb, help="Show known nodes and whether they are alive.")
@reading
@watchable
def nodes_verb(as_json: bool, utc: bool) -> None:
    """Show the nodes that were heard of."""

    async def asked(app: Everytick) -> tuple[Sequence[NodeRecord], datetime, Everytick]:
        return await app.nodes(), await (await store_of_app(app)).now(), app

    nodes, now, app = look(asked)
    limit = app.settings.node_timeout
    rows = [(node.id, _state(node, now, limit), node.beat_at, node.holds) for node in nodes]
    if as_json:
        show_json(
            [
                {**dict(zip(("id", "status", "heard_at", "holds"), row, strict=True)), **_facts_data(node)}
                for row, node in zip(rows, nodes, strict=True)
            ]
        )
        return
    times = Times(utc)
    is_narrow = is_terminal() and columns() < _WIDE
    heading = ["node", "status", times.heading("last heard"), "holds", *(["facts"] if is_narrow else _FACTS)]
    facts = [(_facts_text(node),) if is_narrow else _facts_cells(node) for node in nodes]
    show_table(heading, [(*row, *more) for row, more in zip(rows, facts, strict=True)], times)
    if not rows:
        say("no node has ever run on this store: everytick run starts one")


def _state(node: NodeRecord, now: datetime, limit: timedelta) -> str:
    if not node.beats:
        return "stopped"
    return "alive" if node.is_alive(now, limit) else "silent"


_FACTS = ("slots", "queues", "everytick", "python", "zone data", "clock")
_WIDE = 140
"""A narrower terminal has no room for a column for each fact: they share the last one."""


def _facts_cells(node: NodeRecord) -> tuple[object, ...]:
    """Return the facts of the node, in the order of the headings; empty cells if it has told none."""
    facts = node.facts
    if facts is None:
        return (None,) * len(_FACTS)
    seconds = facts.clock_offset.total_seconds()
    return facts.slots, ", ".join(facts.queues), facts.version, facts.python, facts.zone_data, f"{seconds:+.1f} s"


def _facts_text(node: NodeRecord) -> str | None:
    """Return the facts of the node in one text."""
    cells = _facts_cells(node)
    return ", ".join(f"{name} {value}" for name, value in zip(_FACTS, cells, strict=True) if value is not None) or None


def _facts_data(node: NodeRecord) -> dict[str, Any]:
    return {} if node.facts is None else node.facts.as_data()
