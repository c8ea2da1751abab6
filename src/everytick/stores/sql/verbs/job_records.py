"""get, list and look, and the questions about parked jobs, later requests and editions."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everytick.domain.job import Job
from everytick.domain.lookups import Editions, LaterRequests, ParkedJobs
from everytick.domain.snapshots import Edition, JobSnapshot, Request
from everytick.domain.updates import asked_edition
from everytick.errors import NotFound
from everytick.stores.base import JobRecord
from everytick.stores.sql import commands, rows
from everytick.stores.sql.commands import Ask, Found, Rows, Verb, Versions, many
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row
from everytick.stores.storing_rules import as_named

if TYPE_CHECKING:
    from datetime import datetime

_ALL = 2**31 - 1
"""The limit of a question without one."""


def get(q: ColdQueries, job_ids: Collection[str]) -> Verb[dict[str, JobRecord]]:
    """Return the jobs with these ids that exist and are readable, in the order of the ids."""
    found: Rows = yield q.jobs_by_id(job_ids=list(job_ids), now=(yield Ask.NOW))
    by_id = {record.job.id: record for record in (yield from _records(found))}
    return {id_: by_id[id_] for id_ in job_ids if id_ in by_id}


def in_service(q: ColdQueries, *, removed: bool, after: str = "", limit: int | None = None) -> Verb[list[JobRecord]]:
    """Return every job that is not removed and can be read, by name, or the removed ones too.

    With `limit`, return up to so many behind the name `after`: more are read in place of those that cannot be.
    """
    most, records = _ALL if limit is None else max(limit, 0), list[JobRecord]()
    while most > len(records):
        asked = most - len(records)
        found: Rows = yield q.jobs_by_name(is_any=removed, now=(yield Ask.NOW), after_name=after, limit=asked)
        records += yield from _records(found)
        if len(found) < asked:
            break
        after = found[-1]["name"]
    return records


def _records(found: Rows) -> Verb[list[JobRecord]]:
    versions: Found = yield Versions(tuple((row["job_key"], row["version"]) for row in found))
    keyed = [(versions.read.get((row["job_key"], row["version"])), row) for row in found]
    windows = yield from _windows([compiled.edition for compiled, _ in keyed if compiled is not None], found)
    now: datetime = yield Ask.NOW
    records = []
    for compiled, row in keyed:
        if compiled is not None:
            around = windows.get(compiled.job.id, ())
            asked = asked_edition((compiled.edition, *around), now) if around else compiled.edition
            lapsed = around[0].job if around and asked.follows is not None else None
            records.append(_record(row, as_named(asked.job, row["name"]), lapsed))
    return records


def _windows(newest: Sequence[Edition], found: Rows) -> Verb[dict[str, tuple[Edition, ...]]]:
    """Return the editions around the window for each job whose newest version follows one, by job id."""
    after = {edition.job.id: edition.follows for edition in newest if edition.follows is not None}
    if not after:
        return {}
    keys = {row["job_id"]: row["job_key"] for row in found}
    wanted = {id_: ((keys[id_], follows), (keys[id_], follows + 1)) for id_, follows in after.items()}
    read: Found = yield Versions(tuple(key for pair in wanted.values() for key in pair))
    return {
        id_: tuple(read.read[key].edition for key in pair)
        for id_, pair in wanted.items()
        if all(key in read.read for key in pair)
    }


def _record(row: Row, job: Job, lapsed: Job | None) -> JobRecord:
    return JobRecord(
        job=job,
        revision=row["revision"],
        watermark=row["watermark"],
        wake_at=row["wake_at"],
        pause=None if row["since_at"] is None else rows.pause(row, "pause_reason"),
        removed_at=row["removed_at"],
        retire_at=row["retire_at"],
        last_end=rows.ended(row, "last_end"),
        last_success=rows.ended(row, "last_success"),
        removed_by=row["removed_by"],
        next_run=row["next_run_at"],
        run_count=row["run_count"],
        last_error=row["last_error"],
        needs=row["needs"],
        parked_reason=row["parked_reason"],
        last_failure_at=row["last_failure_at"],
        lapsed=lapsed,
    )


def look(job_ids: Collection[str]) -> Verb[dict[str, JobSnapshot]]:
    """Return the snapshots of the jobs that exist and are readable, in the order of the ids."""
    seen: Mapping[str, JobSnapshot] = yield commands.look(job_ids)
    return {id_: seen[id_] for id_ in job_ids if id_ in seen}


def parked(q: ColdQueries, _: ParkedJobs) -> Verb[dict[str, str]]:
    """Return the parked jobs in service with the reasons, by name."""
    return {row["name"]: row["parked_reason"] for row in (yield q.parked_jobs())}


def show_unreadable(q: ColdQueries, found: Sequence[Mapping[str, Any]]) -> Verb[None]:
    """Show people why a node cannot read these jobs. Nodes that can read them plan them."""
    yield many(q.show_unreadable, found)


def look_again(q: ColdQueries) -> Verb[None]:
    """Clear the mark of jobs that this process can read: it may be a newer everytick."""
    for row in (yield q.unreadable_jobs()):
        waiting = tuple((row["job_key"], version) for version in range(row["oldest_version"], row["version"] + 1))
        found: Found = yield Versions(waiting)
        if not found.broken and len(found.read) == len(waiting):
            yield q.unpark(job_key=row["job_key"])


def later(q: ColdQueries, asked: LaterRequests) -> Verb[list[tuple[str, Request]]]:
    """Return open requests of these jobs that were asked for at a time, soonest first."""
    found: Rows = yield q.later_requests(job_ids=list(asked.job_ids), most=asked.limit)
    return [(row["job_id"], rows.request(row)) for row in found]


def job_key(q: ColdQueries, job_id: str) -> Verb[int]:
    """Return the inner key of a job."""
    found: Rows = yield q.keys_of_jobs(job_ids=[job_id])
    if not found:
        raise NotFound("job", job_id)
    key: int = found[0]["job_key"]
    return key


def editions(q: ColdQueries, asked: Editions) -> Verb[list[Edition]]:
    """Return these versions of a job's definition, and the version in force at `at`, in order."""
    key = yield from job_key(q, asked.job_id)
    wanted = set(asked.versions)
    if asked.at is not None:
        wanted |= {row["version"] for row in (yield q.version_at(job_key=key, instant_at=asked.at))}
    found: Found = yield Versions(tuple((key, version) for version in sorted(wanted)))
    return [found.read[key].edition for key in sorted(found.read)]
