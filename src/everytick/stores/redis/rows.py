"""What Redis keeps of each row, as images: plain values from which a row is written, compared and put back.

An image is a copy of a row's columns in groups. Each group is one field of the row's hash, so that a change writes
only the groups that differ. The fields of runs and attempts continue the path of seed 0: the key
`job/<JobID>/occurrence/<OccurID>` with the field `task/<TaskID>/run` is the record at that path.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import lru_cache
from itertools import repeat
from typing import Any, NamedTuple

from everytick.domain import ids
from everytick.domain.job import Job
from everytick.domain.snapshots import Edition, Request
from everytick.domain.statuses import ENDED, FAILURES
from everytick.domain.steps import RunState
from everytick.stores.definitions import read_definition, write_definition
from everytick.stores.memory.rows import AttemptRow, BackfillRow, JobRow, OccurrenceRow
from everytick.stores.redis import codec
from everytick.stores.redis.entries import Member

_TALLY = ("last_end", "last_success", "other_success", "run_count", "last_error", "last_failure_at")
_JOB_GROUPS = (
    "editions",
    "pauses",
    "adjustments",
    "requests",
    "keys",
    "spans",
    "coming",
    "backfills",
    "promises",
    "breaches",
    "forgotten",
    "needs_jobs",
)
_JOB_OTHERS = {"id", "asked", "places", "versions", "timeline", "busy", "waiting", "history"}
# A column that is added to a row later belongs to its state: none can be forgotten here.
_JOB_STATE = codec.Columns(
    [column.name for column in fields(JobRow) if column.name not in {*_JOB_OTHERS, *_JOB_GROUPS, *_TALLY}], JobRow
)
_JOB_TALLY = codec.Columns(_TALLY, JobRow)
_MADE = codec.Columns(("handle", "creation", "overrides", "reason", "created_at", "line_at"), OccurrenceRow)
_CREATION = _MADE.names.index("creation")
# Plans and edits set these. They stand apart from what every claim and end writes.
_PLACE = codec.Columns(
    ("version", "priority", "needs", "ready_at", "execution_timeout", "is_early", "awaited", "superseded_by_next"),
    OccurrenceRow,
)
_OCCURRENCE_OTHERS = {"id", "job", "runs", "attempts", "line", "claim_entry", "report_entry"}
_STATE = codec.Columns(
    [
        column.name
        for column in fields(OccurrenceRow)
        if column.name not in {*_OCCURRENCE_OTHERS, *_MADE.names, *_PLACE.names}
    ],
    OccurrenceRow,
)
_MADE_FOR_JOB = codec.Columns(("job_id", *_MADE.names), OccurrenceRow)
_READY_STATE = codec.Columns(("is_ready", *_STATE.names), OccurrenceRow)
_STATUS, _REPORT_DUE, _ENDED_AT = map(_STATE.names.index, ("status", "report_due", "ended_at"))
_BACKFILL = tuple(column.name for column in fields(BackfillRow))
_ATTEMPT = codec.Columns([column.name for column in fields(AttemptRow)], AttemptRow)
_NAMED_ATTEMPT = codec.Columns(("task", "number", *_ATTEMPT.names), AttemptRow)
_TASK = codec.Columns(("name", "target"))
_NAME = codec.Columns(("name",))
_OF_EDITION = ("in_force_after", "by", "follows", "rollout")
_EDITION = codec.Columns(("definition", "created_at", "updated_at", *_OF_EDITION))


class JobImage(NamedTuple):
    """The columns of a job. `requests` have their places in line, `editions` the versions that plans decide by."""

    state: tuple[Any, ...]
    tally: tuple[Any, ...]
    editions: tuple[int, ...]
    pauses: tuple[Any, ...]
    adjustments: tuple[Any, ...]
    requests: tuple[tuple[int, Request], ...]
    keys: tuple[Any, ...]
    spans: tuple[Any, ...]
    coming: Any
    backfills: tuple[tuple[Any, ...], ...]
    promises: tuple[Any, ...]
    breaches: tuple[Any, ...]
    forgotten: tuple[Any, ...]
    needs_jobs: tuple[Any, ...]
    versions: tuple[Edition, ...]


_JOB_FIELDS = JobImage._fields[:-1]
_JOB_WRITERS = {"state": _JOB_STATE.write, "tally": _JOB_TALLY.write}
_NOTHING = object()


class OccurrenceImage(NamedTuple):
    """The columns of an occurrence. `is_ready` says that it stands among the ready ones, not among the early ones."""

    job_id: str
    made: tuple[Any, ...]
    place: tuple[Any, ...]
    state: tuple[Any, ...]
    is_ready: bool
    runs: tuple[tuple[str, RunState], ...]
    attempts: tuple[tuple[tuple[str, int], tuple[Any, ...]], ...]


# ---------------------------------------------------------------------------------------------------------------- jobs


def job_image(row: JobRow) -> JobImage:
    """Return a copy of the job's columns."""
    return JobImage(
        state=_JOB_STATE.of(row),
        tally=_JOB_TALLY.of(row),
        editions=tuple([edition.job.version for edition in row.editions]),
        pauses=tuple(row.pauses),
        adjustments=tuple(row.adjustments.values()),
        requests=tuple([(row.places[key][1], request) for key, request in row.requests.items()]),
        keys=tuple(row.keys.items()),
        spans=tuple(row.spans),
        coming=row.coming,
        backfills=tuple([_backfill_image(backfill) for backfill in row.backfills.values()]),
        promises=tuple(row.promises.values()),
        breaches=tuple(row.breaches.values()),
        forgotten=tuple(row.forgotten.items()),
        needs_jobs=tuple(row.needs_jobs.items()),
        versions=tuple(row.timeline.values()),
    )


def _backfill_image(row: BackfillRow) -> tuple[Any, ...]:
    return (*(getattr(row, name) for name in _BACKFILL if name != "filled"), tuple(row.filled.items()))


def new_job(id_: str, image: JobImage) -> JobRow:
    """Return a row of this id whose columns are still to be set."""
    state = job_state(image)
    return JobRow(id_, state["name"], [], state["watermark"], state["created_at"], state["needs"])


def job_state(image: JobImage) -> dict[str, Any]:
    """Return the columns of the group `state`, by name."""
    return dict(zip(_JOB_STATE.names, image.state, strict=True))


def set_job(row: JobRow, image: JobImage) -> None:
    """Set the columns that no index uses: all but the name, the needs, `wake_at`, requests and dependencies."""
    for name, held in zip(_JOB_STATE.names, image.state, strict=True):
        if name not in ("name", "needs", "wake_at"):
            setattr(row, name, held)
    set_tally(row, image)
    if tuple(row.timeline.values()) != image.versions:
        row.timeline.clear()
        row.versions.clear()
        for edition in image.versions:
            row.add(edition)
    row.editions = [row.timeline[version] for version in image.editions]
    row.pauses = list(image.pauses)
    row.adjustments = {adjustment.at: adjustment for adjustment in image.adjustments}
    row.keys, row.spans, row.coming = dict(image.keys), list(image.spans), image.coming
    row.backfills = {backfill.order.key: backfill for backfill in map(_backfill, image.backfills)}
    row.promises = {promise.kind: promise for promise in image.promises}
    row.breaches = {(owed.breach.kind, owed.breach.broken_for): owed for owed in image.breaches}
    row.forgotten = dict(image.forgotten)


def is_same_but_tally(before: JobImage, image: JobImage) -> bool:
    """Whether two images of a job differ in nothing but what an end changes."""
    return before._replace(tally=image.tally) == image


def set_tally(row: JobRow, image: JobImage) -> None:
    """Set the columns that an end changes; no index uses them."""
    for name, held in zip(_JOB_TALLY.names, image.tally, strict=True):
        setattr(row, name, held)


def _backfill(image: tuple[Any, ...]) -> BackfillRow:
    *columns, filled = image
    names = [name for name in _BACKFILL if name != "filled"]
    return BackfillRow(**dict(zip(names, columns, strict=True)), filled=dict(filled))


def job_changes(id_: str, before: JobImage | None, after: JobImage) -> dict[str, str | None]:
    """Return the fields that differ between two images, None for each that is gone."""
    changes: dict[str, str | None] = {}
    # The versions are written one by one, below.
    for name, was, group in zip(_JOB_FIELDS, before or repeat(_NOTHING), after, strict=False):
        if was != group:
            changes[name] = _JOB_WRITERS.get(name, codec.write)(group)
    known = () if before is None else before.versions
    if known != after.versions:
        changes |= {
            f"version/{edition.job.version}": _edition_text(edition)
            for edition in after.versions
            if edition not in known
        }
        changes |= _task_changes(id_, known[-1].job if known else None, after.versions[-1].job)
    return changes


def _task_changes(id_: str, before: Job | None, after: Job) -> dict[str, str | None]:
    """Return a field for each task of the newest definition, for those who read the tree by its paths."""
    gone: dict[str, str | None] = {} if before is None else {f"task/{task.id}": None for task in before.tasks}
    return gone | {f"task/{task.id}": _TASK.write((task.name, task.target)) for task in after.tasks}


def _edition_text(edition: Edition) -> str:
    job = edition.job
    own = (getattr(edition, name) for name in _OF_EDITION)
    return _EDITION.write((write_definition(job), job.created_at, job.updated_at, *own))


def is_whole_job(fields: Mapping[str, str | None]) -> bool:
    """Whether these fields are all of a job, as for a new one."""
    return fields.keys() >= {*_JOB_FIELDS}


def changed_job(id_: str, before: JobImage | None, fields: Mapping[str, str | None]) -> JobImage:
    """Return the image after these fields were written; without an image before, they are all."""
    image: dict[str, Any] = {}
    versions = {} if before is None else {edition.job.version: edition for edition in before.versions}
    for name, text in fields.items():
        if text is None or name.startswith("task/"):
            continue
        if name.startswith("version/"):
            number = int(name.partition("/")[2])
            versions[number] = _edition(id_, number, text)
        elif name == "state":
            image[name] = _JOB_STATE.read(text)
        elif name == "tally":
            image[name] = _JOB_TALLY.read(text)
        else:
            image[name] = codec.read(text)
    image["versions"] = tuple([versions[number] for number in sorted(versions)])
    return JobImage(**image) if before is None else before._replace(**image)


def _edition(id_: str, version: int, text: str) -> Edition:
    definition, created_at, updated_at, in_force_after, by, follows, rollout = _EDITION.read(text)
    job = read_definition(definition, id=id_, version=version, created_at=created_at, updated_at=updated_at)
    return Edition(job, in_force_after, by, follows, rollout)


# --------------------------------------------------------------------------------------------------------- occurrences


def occurrence_image(row: OccurrenceRow, *, is_ready: bool) -> OccurrenceImage:
    """Return a copy of the occurrence's columns."""
    attempts = row.attempts.items()
    return OccurrenceImage(
        row.job.id,
        _MADE.of(row),
        _PLACE.of(row),
        _STATE.of(row),
        is_ready,
        tuple(row.runs.items()),
        tuple([(key, _ATTEMPT.of(attempt)) for key, attempt in attempts]),
    )


def new_occurrence(id_: str, job: JobRow, image: OccurrenceImage) -> OccurrenceRow:
    """Return the row that the image says; no index has it yet."""
    columns = dict(
        zip((*_MADE.names, *_PLACE.names, *_STATE.names), (*image.made, *image.place, *image.state), strict=True)
    )
    return OccurrenceRow(id=id_, job=job, runs=dict(image.runs), attempts=_attempts(image), **columns)


def set_occurrence(row: OccurrenceRow, before: OccurrenceImage, image: OccurrenceImage) -> None:
    """Set the columns in which two images of an occurrence differ; what it was made with is the same in both."""
    for group, was, columns in ((_PLACE, before.place, image.place), (_STATE, before.state, image.state)):
        if was != columns:
            for name, held in zip(group.names, columns, strict=True):
                setattr(row, name, held)
    if before.runs != image.runs:
        row.runs = dict(image.runs)
    if before.attempts != image.attempts:
        row.attempts = _attempts(image)


def _attempts(image: OccurrenceImage) -> dict[tuple[str, int], AttemptRow]:
    return {key: AttemptRow(*columns) for key, columns in image.attempts}


def occurrence_changes(id_: str, before: OccurrenceImage | None, after: OccurrenceImage) -> dict[str, str | None]:
    """Return the fields that differ between two images, None for each that is gone.

    An occurrence that takes the place of another one of its id is written whole.
    """
    changes: dict[str, str | None] = {}
    if before is not None and before.made != after.made:
        changes, before = dict.fromkeys(occurrence_changes(id_, None, before)), None
    if before is None:
        changes["made"] = _MADE_FOR_JOB.write((after.job_id, *after.made))
    if before is None or before.place != after.place:
        changes["place"] = _PLACE.write(after.place)
    if before is None or before.state != after.state or before.is_ready != after.is_ready:
        changes["state"] = _READY_STATE.write((after.is_ready or None, *after.state))
    if before is None or before.runs != after.runs:
        known = {} if before is None else dict(before.runs)
        for task, run in after.runs:
            if known.get(task) != run:
                changes[f"task/{_task_id(after.job_id, task)}/run"] = codec.write([task, run])
    if before is None or before.attempts != after.attempts:
        tried = {} if before is None else dict(before.attempts)
        for key, columns in after.attempts:
            if tried.get(key) != columns:
                changes[_attempt_path(id_, after.job_id, *key)] = _NAMED_ATTEMPT.write((*key, *columns))
    return changes


_task_id = lru_cache(maxsize=10_000)(ids.task_id)


def _attempt_path(id_: str, job_id: str, task: str, number: int) -> str:
    task_id = _task_id(job_id, task)
    return f"task/{task_id}/run/attempt/{ids.attempt_id(ids.run_id(id_, task_id), number)}"


def changed_occurrence(before: OccurrenceImage | None, fields: Mapping[str, str | None]) -> OccurrenceImage:
    """Return the image after these fields were written. A field `made` says that they are all."""
    before = None if "made" in fields else before
    image: dict[str, Any] = {}
    runs, tries = ({}, {}) if before is None else (dict(before.runs), dict(before.attempts))
    for name, text in fields.items():
        if text is None:
            continue
        if name == "made":
            image["job_id"], *made = _MADE_FOR_JOB.read(text)
            image[name] = tuple(made)
        elif name == "place":
            image[name] = _PLACE.read(text)
        elif name == "state":
            is_ready, *state = _READY_STATE.read(text)
            image["is_ready"], image[name] = bool(is_ready), tuple(state)
        elif name.endswith("/run"):
            task, run = codec.read(text)
            runs[task] = run
        else:
            task, number, *attempt = _NAMED_ATTEMPT.read(text)
            tries[task, number] = tuple(attempt)
    image["runs"], image["attempts"] = tuple(runs.items()), tuple(tries.items())
    return OccurrenceImage(**image) if before is None else before._replace(**image)


def name_in(state: str | None) -> str:
    """Return the name of a job, from its field `state`."""
    return str(_NAME.read(state or "{}")[0])


def occurrence_members(id_: str, before: OccurrenceImage | None, after: OccurrenceImage | None) -> Iterator[Member]:
    """Give the changes of the sets by which occurrences are found.

    `open` are those that the copy of every process holds, `failed` those that have failed, by the time of their end.
    """
    known = before if after is None else after
    if known is None:
        return
    line, path = f"job/{known.job_id}/occurrences", f"{known.job_id}/occurrence/{id_}"
    if after is None:
        yield "ZREM", line, id_
        yield "ZREM", "ids", f"{id_}:{known.job_id}"
    elif before is None or before.made != after.made:
        yield "ZADD", line, str(codec.micros(after.made[_CREATION].scheduled_for)), id_
        yield "ZADD", "ids", "0", f"{id_}:{known.job_id}"
    was_open, is_open = _is_open(before), _is_open(after)
    if was_open != is_open:
        yield "SADD" if is_open else "SREM", "open", path
    had_failed, failed_at = _failed_at(before), _failed_at(after)
    if had_failed != failed_at:
        yield ("ZREM", "failed", path) if failed_at is None else ("ZADD", "failed", str(failed_at), path)


def has_ended(image: OccurrenceImage) -> bool:
    """Whether the occurrence has ended."""
    return image.state[_STATUS] in ENDED


def _is_open(image: OccurrenceImage | None) -> bool:
    return image is not None and (image.state[_STATUS] not in ENDED or image.state[_REPORT_DUE])


def _failed_at(image: OccurrenceImage | None) -> int | None:
    if image is None or image.state[_STATUS] not in FAILURES or image.state[_ENDED_AT] is None:
        return None
    return codec.micros(image.state[_ENDED_AT])
