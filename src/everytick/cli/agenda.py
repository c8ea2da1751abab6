"""`next` and `explain`: what comes, what a schedule means, and why an instant ran or did not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from everytick.cli.completing import job_argument
from everytick.cli.exits import Refused
from everytick.cli.ids import with_short_ids
from everytick.cli.options import reading
from everytick.cli.output import is_terminal, listed, say, show_json, show_pairs, show_table, write
from everytick.cli.session import WAYS, application, look, store_of_app
from everytick.cli.state import Verb, state
from everytick.cli.times import Times
from everytick.errors import NotFound, StoreUnavailable, shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everytick import Explanation
    from everytick.app import Everytick
    from everytick.app.questions import UpcomingRun
    from everytick.domain.job import Job
    from everytick.domain.schedule import Schedule
    from everytick.schedules.cron import ClockChange

_MOST = 10_000
_USUAL = 10
_LAST_DECISIONS = 5
_CHANGES_WITHIN = timedelta(days=400)


def clock_changes(schedule: object, after: datetime, through: datetime) -> Iterator[ClockChange]:
    """Give the effects of clock changes on a schedule, also on a cron expression inside another schedule."""
    from everytick.schedules.cron import Cron

    if isinstance(schedule, Cron):
        yield from schedule.clock_changes(after, through)
    inner = getattr(schedule, "schedule", None)
    for part in (*getattr(schedule, "parts", ()), *([] if inner is None else [inner])):
        yield from clock_changes(part, after, through)


def change_words(change: ClockChange) -> str:
    """Return the effect of a clock change in words."""
    wall = change.wall.strftime("%Y-%m-%d %H:%M")
    said = {
        "moved": f"{wall} does not exist, the clock skips it: it comes right after",
        "skipped": f"{wall} does not exist, the clock skips it: it is left out",
        "doubled": f"{wall} comes twice, and so does this",
        "silenced": f"{wall} comes twice, and only one of them counts",
    }
    return f"{said.get(change.what, change.what)} ({change.rule})"


# ------------------------------------------------------------------------------------------------------------- next


@click.command(
    "next",
    cls=Verb,
    help="Show the next run of each job, or the next runs of one JOB.\n\n"
    "With -n or --until, the runs of all jobs in order. "
    "Without a store, or while it does not answer, as the application's code and files say. "
    "Example: everytick next nightly -n 5 --tz Europe/Berlin",
)
@job_argument("job", required=False)
@click.option(
    "-n", "count", type=click.IntRange(1, _MOST), help=f"How many runs at most; of one JOB {_USUAL} unless given."
)
@click.option("--until", metavar="T", help="Only through this moment.")
@click.option("--tz", metavar="ZONE", help="Show times in this zone.")
@reading
def next_verb(job: str | None, count: int | None, until: str | None, tz: str | None, as_json: bool, utc: bool) -> None:
    """Show what runs next."""
    times = Times(utc, _zone(tz))
    end = None if until is None else times.read(until)
    # One job that runs every few seconds must not hide all others.
    is_one_each = job is None and count is None and until is None

    agenda = _agenda(job, 1 if is_one_each else count or _USUAL)
    found = sorted((run for run in agenda.runs if end is None or run[0].at <= end), key=lambda run: run[0].at)
    found = found if is_one_each else found[: count or _USUAL]
    rows = [
        (run.at, run_job.name, note, None if run.is_asked_for else agenda.moved.get((run_job.id, run.at)), run.id)
        for (run, run_job), note in zip(found, _notes(found, agenda.now), strict=True)
    ]
    if as_json:
        names = ("at", "job", "clock_change", "moved_from", "asked_for")
        show_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    notes = [
        "; ".join(filter(None, (note, f"moved from {times.shown(moved)}" if moved else None, _asked_words(run))))
        for (_, _, note, moved, _), (run, _) in zip(rows, found, strict=True)
    ]
    table = [(row[0], row[1], note) for row, note in zip(rows, notes, strict=True)]
    is_noted = any(notes) or not is_terminal()
    show_table([times.heading("at"), "job", "note"][: 2 + is_noted], [row[: 2 + is_noted] for row in table], times)
    if not rows:
        say("nothing is to come")


class Agenda(NamedTuple):
    """Runs with their jobs, and the time it is. `moved` says from where runs were moved, by job id and time."""

    runs: list[tuple[UpcomingRun, Job]]
    now: datetime
    moved: Mapping[tuple[str, datetime], datetime]


def _agenda(job: str | None, count: int) -> Agenda:
    """The next runs of each job: from the store, or from definitions if there is none."""

    async def asked(app: Everytick) -> Agenda:
        store = await store_of_app(app)
        records = await app.jobs() if job is None else [await app.job(job)]
        runs = [(run, record.job) for record in records for run in await _runs(app, record.job.name, count)]
        seen = await store.look([record.job.id for record in records])
        moved = {
            (id_, adjustment.to): adjustment.at
            for id_, snapshot in seen.items()
            for adjustment in snapshot.adjustments
            if adjustment.to is not None and adjustment.vacates
        }
        return Agenda(runs, await store.now(), moved)

    app = application(make=True)
    if not app.definitions and app.jobs_folder is None:
        return look(asked)
    file = app._make_store().address.file
    if file is not None and not file.exists():
        say(f"there is no store {file} yet: this is what the definitions say")
        return _defined(app, job, count)
    try:
        return look(asked)
    except StoreUnavailable as error:
        say(f"{error}; this is what the definitions say, whatever was paused or skipped")
        return _defined(app, job, count)


def _defined(app: Everytick, job: str | None, count: int) -> Agenda:
    """The next runs of what code and files define, by this machine's clock."""
    from everytick.app.questions import UpcomingRun
    from everytick.app.upcoming_runs import coming
    from everytick.domain.names import did_you_mean

    now = datetime.now(UTC)
    jobs = {job.name: job for job in _jobs_of(app)}
    if job is not None and job not in jobs:
        raise Refused(f"job not found: {shown(job)}{did_you_mean(job, jobs)}", Exit.NOT_FOUND)
    chosen = jobs.values() if job is None else [jobs[job]]
    runs = [(UpcomingRun(at), chosen_job) for chosen_job in chosen for at in coming(chosen_job, now, count)]
    return Agenda(runs, now, {})


def _jobs_of(app: Everytick) -> Iterator[Job]:
    yield from (definition.job for definition in app.definitions)
    if app.jobs_folder is not None:
        from everytick.sources.files import read_all

        for file in read_all([app.jobs_folder]):
            for mistake in file.mistakes:
                say(str(mistake), mark="red")
            yield from (file_job.job for file_job in file.jobs if not file_job.suspended)


async def _runs(app: Everytick, name: str, count: int) -> list[UpcomingRun]:
    """Return when the job runs next. A job that was removed since does not run."""
    try:
        return await app.upcoming(name, count)
    except NotFound:
        return []


def _asked_words(run: UpcomingRun) -> str | None:
    """Say of a run that was asked for, by whom and how it is canceled."""
    if run.id is None:
        return None
    return with_short_ids(f"{', '.join(filter(None, ('asked for', run.detail)))}, {run.id}")


def _notes(found: list[tuple[UpcomingRun, Job]], now: datetime) -> list[str | None]:
    """Return the clock changes between each run and the run of its job before it."""
    last: dict[str, datetime] = {}
    notes: list[str | None] = []
    for run, job in found:
        if run.is_asked_for:
            notes.append(None)
            continue
        at = run.at
        changes = clock_changes(job.schedule, last.get(job.id, now), at)
        notes.append("; ".join(map(change_words, changes)) or None)
        last[job.id] = at
    return notes


def _zone(name: str | None) -> str | None:
    """Return the time zone of this name. The error suggests a similar name."""
    if name is None:
        return None
    from everytick.app.lookups import zone_named

    return zone_named(name).name


# ---------------------------------------------------------------------------------------------------------- explain


@click.command(
    "explain",
    cls=Verb,
    help="Say what a schedule means, or why a job ran or did not.\n\n"
    "EXPR is any schedule and needs no store. Of a job: the last decisions and the next run, or with --at one "
    "instant.\n\n"
    "Examples: everytick explain '30 2 * * 1-5' --tz Europe/Berlin; everytick explain nightly; "
    "everytick explain nightly --at 2026-11-15T02:30",
)
@click.argument("expr_or_job")
@click.option("--at", metavar="T", help="The instant of a job to explain.")
@click.option("--tz", metavar="ZONE", help="The zone of a schedule that names none.")
@click.option(
    "-n", "count", default=_LAST_DECISIONS, show_default=True, type=click.IntRange(1, _MOST), help="How many instants."
)
@reading
def explain_verb(expr_or_job: str, at: str | None, tz: str | None, count: int, as_json: bool, utc: bool) -> None:
    """Say what a schedule means, or why a job ran or did not."""
    if at is None:
        _explain_schedule_or_job(expr_or_job, tz, count, as_json, utc)
        return
    times = Times(utc, _zone(tz))
    instant = times.read(at)
    explanation = look(lambda app: app.explain(expr_or_job, instant))
    if as_json:
        show_json(_explanation_data(explanation))
        return
    write(f"{explanation.verdict}: {explanation.job} at {times.shown(explanation.at)}: {_said(explanation, times)}")
    facts = (
        ("occurrence", None if explanation.occurrence is None else explanation.occurrence.id),
        ("behind", explanation.behind),
        ("moved to", explanation.moved_to),
        ("instant before", explanation.previous),
        ("instant after", explanation.next),
    )
    show_pairs([(name, value) for name, value in facts if value is not None] or [("at", explanation.at)], times)


def _said(found: Explanation, times: Times) -> str:
    """Return the sentence without job and instant, with its times in the zone and its ids as tables show them."""
    return with_short_ids(times.in_text(found.text.partition(": ")[2]))


def _explain_job(job: str, tz: str | None, count: int, as_json: bool, utc: bool) -> None:
    """The last decisions about a job, the oldest first, and the next run."""
    times = Times(utc, _zone(tz))

    async def asked(app: Everytick) -> list[Explanation]:
        decided = [occurrence.scheduled_for for occurrence in await app.history(job, limit=count)]
        following = [*await _undecided(app, job), *(run.at for run in await _runs(app, job, 1))]
        return [await app.explain(job, at) for at in (*reversed(decided), *following)]

    explanations = look(asked)
    if as_json:
        show_json([_explanation_data(decision) for decision in explanations])
        return
    rows = [(decision.at, decision.verdict, _said(decision, times)) for decision in explanations]
    show_table([times.heading("at"), "what", "why"], rows, times)
    if not rows:
        say(f"nothing of '{shown(job)}' was decided yet, and nothing is to come")


async def _undecided(app: Everytick, job: str) -> Sequence[datetime]:
    """Return the first instant of the job that is due and not planned, None for a removed job."""
    try:
        record = await app.job(job)
    except NotFound:
        return []
    now = await (await store_of_app(app)).now()
    return await app.instants(job, record.watermark, now, limit=1) if record.watermark < now else []


def _explanation_data(found: Explanation) -> dict[str, Any]:
    return {
        "job": found.job,
        "at": found.at,
        "verdict": found.verdict,
        "text": found.text,
        "occurrence": None if found.occurrence is None else found.occurrence.id,
        "behind": found.behind,
        "moved_to": found.moved_to,
        "previous": found.previous,
        "next": found.next,
    }


def _explain_schedule_or_job(text: str, tz: str | None, count: int, as_json: bool, utc: bool) -> None:
    """Explain the text as a schedule. If it is none and an application or a store is named, as the name of a job."""
    from everytick.app.lookups import schedule_of
    from everytick.errors import InvalidSchedule

    try:
        schedule = schedule_of(text)
    except InvalidSchedule as error:
        settings = state().settings
        if all(settings[key].value is None for key in ("app", "store", "jobs")):
            hint = "" if " " in text else f" (to ask about a job, name its store: {WAYS})"
            raise Refused(f"{error}{hint}") from error
        try:
            _explain_job(text, tz, count, as_json, utc)
        except Refused as refused:
            # A text with spaces was meant as a schedule.
            raise Refused(str(error)) if refused.code is Exit.NOT_FOUND and " " in text.strip() else refused from None
        return
    _explain_schedule(schedule, tz, count, as_json, utc)


def _explain_schedule(read: Schedule, tz: str | None, count: int, as_json: bool, utc: bool) -> None:
    """Show a schedule in words, with the instants around now and its clock changes. No store is opened."""
    from everytick.app.lookups import in_zone
    from everytick.domain.schedule import waits_for_end

    schedule = in_zone(read, _zone(tz) or "UTC")
    now = datetime.now(UTC)
    own, note = _bound(schedule)
    following = list(own.instants(now, now + timedelta(days=366 * 400), count)) if not waits_for_end(own) else []
    former = _former(own, now, 2) if following or not waits_for_end(own) else []
    changes = list(clock_changes(schedule, now, now + _CHANGES_WITHIN))
    if as_json:
        kinds = [
            {"what": change.what, "wall": change.wall, "at": change.instant, "rule": change.rule} for change in changes
        ]
        show_json(
            {
                "schedule": str(schedule),
                "words": schedule.describe(),
                "previous": former,
                "next": following,
                "clock_changes": kinds,
            }
        )
        return
    zone = getattr(getattr(schedule, "tz", None), "name", None)
    times = Times(utc, zone if zone is not None else "UTC")
    write(schedule.describe())
    rows: list[tuple[str, object]] = [
        ("schedule", str(schedule)),
        ("times in", times.zone),
        *listed("previous", former),
    ]
    rows += listed("next", following) or [("next", note or ("never again" if former else "never"))]
    rows += listed("clock", [change_words(change) for change in changes])
    show_pairs(rows, times)
    if note and following:
        say(note)


def _bound(schedule: Schedule) -> tuple[Schedule, str]:
    """The schedule as a job would have it, and a word about that where the job matters."""
    from everytick.domain.ids import job_id
    from everytick.domain.schedule import bound, waits_for_end
    from everytick.errors import UnboundSchedule

    if waits_for_end(schedule):
        return schedule, "it depends on when the last occurrence ends"
    try:
        schedule.next_after(datetime(2026, 1, 1, tzinfo=UTC))
    except UnboundSchedule:
        return bound(schedule, job_id("example"), None), "these are the instants of a job called 'example'"
    return schedule, ""


def _former(schedule: Schedule, now: datetime, count: int) -> list[datetime]:
    found: list[datetime] = []
    at = schedule.last_at(now)
    while at is not None and len(found) < count:
        found.insert(0, at)
        at = schedule.last_at(at - timedelta(microseconds=1))
    return found
