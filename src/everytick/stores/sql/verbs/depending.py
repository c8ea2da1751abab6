"""depends_on: which jobs others depend on, followed by id, and what a plan must know of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from everytick.domain.changes import Edit, Put
from everytick.domain.dependencies import Dependency
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job
from everytick.domain.snapshots import Dependence, InLine, Upstream, UpstreamRun
from everytick.domain.statuses import ACTIVE, WELL
from everytick.domain.values import value
from everytick.stores.base import Stored
from everytick.stores.depending import refuse_circles, refuse_never_meeting, unknown_dependency
from everytick.stores.sql.commands import Found, PlainVerb, Rows, Verb, Versions, many
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.rows import ended
from everytick.stores.sql.statements import Row
from everytick.stores.sql.verbs.locked_job import wake

# ------------------------------------------------------------------------------------------------------- definitions


def names_needed(changes: Sequence[Edit]) -> set[str]:
    """Return the names of the jobs that the put jobs depend on."""
    jobs = (change.job for change in changes if isinstance(change, Put))
    return {dependency.job for job in jobs for dependency in job.settings.depends_on}


def depend(q: ColdQueries, changes: Sequence[Edit], stored: Mapping[int, Stored], now: datetime) -> Verb[None]:
    """Write which jobs the put jobs depend on, and mark those as needed."""
    put = {
        stored[place].job_id: change.job
        for place, change in enumerate(changes)
        if isinstance(change, Put) and stored[place].changed
    }
    is_new = all(stored[place].version == 1 for place in stored)
    if not put or (is_new and not any(job.settings.depends_on for job in put.values())):
        return
    found: Rows = yield q.keys_of_jobs(job_ids=list(put))
    keys = {row["job_id"]: row["job_key"] for row in found}
    before: Rows = yield q.dependencies_of(job_keys=list(keys.values()))
    if not before and not any(job.settings.depends_on for job in put.values()):
        return
    followed = {(row["job_key"], row["name"]): row["needed_id"] for row in before}
    needed = yield from _needed(q, put, keys, followed, now)
    for job_id in put:
        yield q.forget_dependencies(job_key=keys[job_id])
    edges = [{"job_key": keys[job_id], "name": name, "needed_id": id_} for job_id, name, id_ in needed]
    yield many(q.add_dependency, edges)
    yield from _refuse_circles(q, put)
    for row in (yield q.need_jobs(job_ids=sorted({id_ for _, _, id_ in needed}), is_needed=True)):
        yield from wake(q, row["job_key"], now)


def _needed(
    q: ColdQueries,
    put: Mapping[str, Job],
    keys: Mapping[str, int],
    followed: Mapping[tuple[int, str], str],
    now: datetime,
) -> Verb[list[tuple[str, str, str]]]:
    """Return the dependencies of the put jobs: id of the job, name it depends on, id that this name stands for."""
    names = sorted({dependency.job for job in put.values() for dependency in job.settings.depends_on})
    rows: Rows = yield q.named_jobs(names=names)
    named = {row["name"]: row for row in rows if row["removed_at"] is None}
    versions: Found = yield Versions(tuple((row["job_key"], row["version"]) for row in named.values()))
    earlier: Rows = yield q.keys_of_jobs(job_ids=sorted(set(followed.values())))
    there = {row["job_id"] for row in earlier}
    found: list[tuple[str, str, str]] = []
    for job_id, job in put.items():
        for dependency in job.settings.depends_on:
            row, known = named.get(dependency.job), followed.get((keys[job_id], dependency.job))
            if row is None and known not in there:
                in_service: Rows = yield q.names_in_service()
                raise unknown_dependency(job.name, dependency.job, [row["name"] for row in in_service])
            if row is not None:
                _refuse_never_meeting(job, dependency, row, versions, now)
            found.append((job_id, dependency.job, known or "" if row is None else row["job_id"]))
    return found


def _refuse_never_meeting(job: Job, dependency: Dependency, row: Row, versions: Found, now: datetime) -> None:
    needed = versions.read.get((row["job_key"], row["version"]))
    if needed is not None:
        refuse_never_meeting(job, dependency, needed.job, now)


def _refuse_circles(q: ColdQueries, put: Mapping[str, Job]) -> Verb[None]:
    above: Rows = yield q.dependencies_above(job_ids=list(put))
    edges: dict[str, list[str]] = {}
    for row in above:
        edges.setdefault(row["name"], []).append(row["needed_name"])
    refuse_circles([job.name for job in put.values()], lambda name: edges.get(name, ()))


# --------------------------------------------------------------------------------------------------------- snapshots


@value
class Asked:
    """A job whose plan must know of others: what it depends on, and the ids of those in line that it is shown."""

    depends_on: tuple[Dependency, ...]
    in_line: Sequence[str]


def dependence(q: ColdQueries, asked: Mapping[int, Asked], now: datetime) -> PlainVerb[dict[int, Dependence]]:
    """Return what the plans of these jobs must know of the jobs on which they depend, by key.

    Where a job stands is read before its runs: what it has decided by then is among these.
    """
    standing: Rows = yield q.upstreams(job_keys=list(asked), now=now)
    deleted: Rows = yield q.deleted_upstreams(job_keys=list(asked))
    rows = [*standing, *({**row, "needed_key": None} for row in deleted)]
    rows.sort(key=lambda row: (row["job_key"], row["name"]))
    places: Rows = yield q.places_in_line(
        occurrence_ids=[id_ for question in asked.values() for id_ in question.in_line]
    )
    times = {
        row["occurrence_id"]: InLine(row["occurrence_id"], row["created_at"], row["covers_through"]) for row in places
    }
    in_line = {key: tuple(times[id_] for id_ in question.in_line if id_ in times) for key, question in asked.items()}
    wanted = [
        (row["needed_key"], row["needed_id"], instant)
        for row in rows
        if row["needed_key"] is not None and _is_for_the_same_instant(asked[row["job_key"]], row["name"])
        for instant in sorted({place.instant for place in in_line[row["job_key"]]})
    ]
    runs = yield from _runs(q, wanted)
    return {
        key: Dependence(
            tuple(_upstream(row, runs, in_line[key], question) for row in rows if row["job_key"] == key), in_line[key]
        )
        for key, question in asked.items()
    }


def _is_for_the_same_instant(asked: Asked, name: str) -> bool:
    return any(dependency.job == name and dependency.within is None for dependency in asked.depends_on)


def _runs(
    q: ColdQueries, wanted: Sequence[tuple[int, str, datetime]]
) -> PlainVerb[dict[tuple[int, datetime], UpstreamRun]]:
    """Return the runs of these jobs for these instants: the instant's own occurrence and its repeats."""
    if not wanted:
        return {}
    ids = {occurrence_id(job_id, instant): (key, instant) for key, job_id, instant in wanted}
    found: Rows = yield q.own_runs(occurrence_ids=list(ids))
    own = {ids[row["occurrence_id"]]: row for row in found}
    # A moved occurrence has another time than its instant.
    times = {(key, at) for key, _, instant in wanted for at in (instant, *_moved_to(own.get((key, instant))))}
    at: Rows = yield q.runs_at(asked=[{"job_key": key, "scheduled_for": when} for key, when in sorted(times)])
    made: dict[tuple[int, datetime], UpstreamRun] = {}
    for key, _, instant in wanted:
        alike = [row for row in at if row["job_key"] == key and row["covers_through"] == instant]
        well = [row["ended_at"] for row in alike if row["status"] in WELL]
        status = own[key, instant]["status"] if (key, instant) in own else None
        is_active = any(row["status"] in ACTIVE for row in alike)
        made[key, instant] = UpstreamRun(instant, min(well, default=None), is_active, status)
    return made


def _moved_to(own: Row | None) -> tuple[datetime, ...]:
    return () if own is None else (own["scheduled_for"],)


def _upstream(
    row: Row, runs: Mapping[tuple[int, datetime], UpstreamRun], in_line: Sequence[InLine], asked: Asked
) -> Upstream:
    key = row["needed_key"]
    if key is None:
        return Upstream(row["name"], row["needed_id"], state="deleted")
    instants = sorted({place.instant for place in in_line}) if _is_for_the_same_instant(asked, row["name"]) else ()
    state = (
        "removed"
        if row["is_removed"]
        else "disabled"
        if not row["is_enabled"]
        else "paused"
        if row["is_paused"]
        else ""
    )
    return Upstream(
        row["name"],
        row["needed_id"],
        row["called"],
        state,
        row["watermark"],
        ended(row, "last_success"),
        tuple(runs[key, instant] for instant in instants),
    )
