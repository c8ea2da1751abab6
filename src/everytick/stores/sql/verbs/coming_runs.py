"""The runs to come that plans store: rows as values, and the statements that write what a plan changes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from everytick.domain import ids
from everytick.domain.lookups import ComingRuns
from everytick.domain.upcoming import Coming, ComingRun, Mark
from everytick.schedules.timezones import zone_data
from everytick.stores.sql.commands import Rows, Verb
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.rows import read_overrides, write_overrides
from everytick.stores.sql.statements import Query, Row, Statement


class JobComing(NamedTuple):
    """What a plan says of the runs to come of one job."""

    job_key: int
    job_id: str
    runs: Sequence[ComingRun]


def coming(q: ColdQueries, asked: ComingRuns) -> Verb[dict[str, Coming]]:
    """Return the stored runs to come of these jobs, by job id."""
    found: Rows = yield q.coming_of(job_ids=list(asked.job_ids))
    by_job: dict[str, list[Row]] = {}
    for row in found:
        by_job.setdefault(row["job_id"], []).append(row)
    return {id_: Coming(tuple(map(_run, some)), some[0]["zone_data"]) for id_, some in by_job.items()}


def written_before(q: ColdQueries, told: Sequence[JobComing]) -> Query:
    """Return the query for the rows of these jobs."""
    return q.coming_of_keys(job_keys=[job.job_key for job in told])


def changes(
    q: ColdQueries, before: Iterable[Row], told: Sequence[JobComing]
) -> list[tuple[Statement, list[Mapping[str, Any]]]]:
    """Return the statements that make the rows what the plans say, each with the arguments of every row it changes.

    A tick changes few of many rows.
    """
    zones = zone_data().version
    known = {(row["job_key"], row["instant_at"]): (_run(row), row["zone_data"]) for row in before}
    wanted = {(job.job_key, run.instant) for job in told for run in job.runs}
    gone: list[Mapping[str, Any]] = [
        {"job_key": job, "instant_at": instant} for job, instant in sorted(known.keys() - wanted)
    ]
    kept: list[Mapping[str, Any]] = [
        _arguments(job, run, zones)
        for job in told
        for run in job.runs
        if known.get((job.job_key, run.instant)) != (run, zones)
    ]
    return [(statement, some) for statement, some in ((q.forget_coming, gone), (q.keep_coming, kept)) if some]


def _run(row: Row) -> ComingRun:
    own = read_overrides(row["overrides"], row["payload"])
    mark = None if row["mark"] is None else Mark(row["mark"])
    return ComingRun(row["run_at"], row["instant_at"], mark, row["detail"], own if own.items else None)


def _arguments(told: JobComing, run: ComingRun, zones: str) -> dict[str, Any]:
    overrides, payload = write_overrides(run.overrides)
    return {
        "job_key": told.job_key,
        "instant_at": run.instant,
        "run_at": run.at,
        "occurrence_id": ids.occurrence_id(told.job_id, run.instant),
        "mark": None if run.mark is None else str(run.mark),
        "detail": run.detail,
        "overrides": overrides,
        "payload": payload,
        "zone_data": zones,
    }
