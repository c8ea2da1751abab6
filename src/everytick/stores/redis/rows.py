"""What Redis keeps of each row, as images: plain values from which a row is written, compared and put back.

An image is a copy of a row's columns in groups. Each group is one field of the row's hash, so that a change writes
only the groups that differ. The fields of runs and attempts continue the path of seed 0: the key
`job/<JobID>/occurrence/<OccurID>` with the field `task/<TaskID>/run` is the record at that path.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, TypeAlias

from everytick.domain import ids
from everytick.domain.job import Job
from everytick.domain.snapshots import Edition, Request
from everytick.domain.statuses import ENDED, FAILURES
from everytick.domain.steps import RunState
from everytick.stores.definitions import read_definition, write_definition
from everytick.stores.memory.rows import AttemptRow, BackfillRow, JobRow, OccurrenceRow
from everytick.stores.redis import codec

Fields: TypeAlias = dict[str, str]
"""The fields of one hash, by name, as the server has them."""

JOB_TALLY = ("last_end", "last_success", "other_success", "run_count", "last_error", "last_failure_at")
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
JOB_STATE = tuple(each.name for each in fields(JobRow) if each.name not in {*_JOB_OTHERS, *_JOB_GROUPS, *JOB_TALLY})
OCCURRENCE_MADE = ("handle", "creation", "overrides", "reason", "created_at", "line_at")
_MADE = ("job_id", *OCCURRENCE_MADE)
_CREATION = OCCURRENCE_MADE.index("creation")
_OCCURRENCE_OTHERS = {"id", "job", "runs", "attempts", "line", "claim_entry", "report_entry"}
OCCURRENCE_STATE = tuple(
    each.name for each in fields(OccurrenceRow) if each.name not in {*_OCCURRENCE_OTHERS, *OCCURRENCE_MADE}
)
_STATUS, _REPORT_DUE, _ENDED_AT = map(OCCURRENCE_STATE.index, ("status", "report_due", "ended_at"))
_BACKFILL = tuple(each.name for each in fields(BackfillRow))
_ATTEMPT = tuple(each.name for each in fields(AttemptRow))
_EDITION = ("in_force_after", "by", "follows", "rollout")


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


class OccurrenceImage(NamedTuple):
    """The columns of an occurrence. `is_ripe` says that it stands among the ready ones, not among the early ones."""

    job_id: str
    made: tuple[Any, ...]
    state: tuple[Any, ...]
    is_ripe: bool
    runs: tuple[tuple[str, RunState], ...]
    attempts: tuple[tuple[tuple[str, int], tuple[Any, ...]], ...]


# ---------------------------------------------------------------------------------------------------------------- jobs


def job_image(row: JobRow) -> JobImage:
    """Return a copy of the job's columns."""
    return JobImage(
        tuple([getattr(row, name) for name in JOB_STATE]),
        tuple([getattr(row, name) for name in JOB_TALLY]),
        tuple([edition.job.version for edition in row.editions]),
        tuple(row.pauses),
        tuple(row.adjustments.values()),
        tuple([(row.places[key][1], request) for key, request in row.requests.items()]),
        tuple(row.keys.items()),
        tuple(row.spans),
        row.coming,
        tuple([_backfill_image(each) for each in row.backfills.values()]),
        tuple(row.promises.values()),
        tuple(row.breaches.values()),
        tuple(row.forgotten.items()),
        tuple(row.needs_jobs.items()),
        tuple(row.timeline.values()),
    )


def _backfill_image(row: BackfillRow) -> tuple[Any, ...]:
    return (*(getattr(row, name) for name in _BACKFILL if name != "filled"), tuple(row.filled.items()))


def new_job(id_: str, image: JobImage) -> JobRow:
    """Return a row of this id whose columns are still to be set."""
    state = dict(zip(JOB_STATE, image.state, strict=True))
    return JobRow(id_, state["name"], [], state["watermark"], state["created_at"], state["needs"])


def set_job(row: JobRow, image: JobImage) -> None:
    """Set the columns that no index uses: all but the name, the needs, `wake_at`, requests and dependencies."""
    for name, each in zip(JOB_STATE, image.state, strict=True):
        if name not in ("name", "needs", "wake_at"):
            setattr(row, name, each)
    for name, each in zip(JOB_TALLY, image.tally, strict=True):
        setattr(row, name, each)
    if tuple(row.timeline.values()) != image.versions:
        row.timeline.clear()
        row.versions.clear()
        for edition in image.versions:
            row.add(edition)
    row.editions = [row.timeline[version] for version in image.editions]
    row.pauses = list(image.pauses)
    row.adjustments = {each.at: each for each in image.adjustments}
    row.keys, row.spans, row.coming = dict(image.keys), list(image.spans), image.coming
    row.backfills = {each.order.key: each for each in map(_backfill, image.backfills)}
    row.promises = {each.kind: each for each in image.promises}
    row.breaches = {(each.breach.kind, each.breach.broken_for): each for each in image.breaches}
    row.forgotten = dict(image.forgotten)


def _backfill(image: tuple[Any, ...]) -> BackfillRow:
    *columns, filled = image
    names = [name for name in _BACKFILL if name != "filled"]
    return BackfillRow(**dict(zip(names, columns, strict=True)), filled=dict(filled))


def job_changes(id_: str, before: JobImage | None, after: JobImage) -> dict[str, str | None]:
    """Return the fields that differ between two images, None for each that is gone."""
    changes: dict[str, str | None] = {}
    if before is None or before.state != after.state:
        changes["state"] = codec.write_fields(JOB_STATE, after.state)
    if before is None or before.tally != after.tally:
        changes["tally"] = codec.write_fields(JOB_TALLY, after.tally)
    for name in _JOB_GROUPS:
        group = getattr(after, name)
        if before is None or getattr(before, name) != group:
            changes[name] = codec.write(group)
    known = () if before is None else before.versions
    if known != after.versions:
        changes |= {f"version/{each.job.version}": _edition_text(each) for each in after.versions if each not in known}
        changes |= _task_changes(id_, known[-1].job if known else None, after.versions[-1].job)
    return changes


def _task_changes(id_: str, before: Job | None, after: Job) -> dict[str, str | None]:
    """Return a field for each task of the newest definition, for those who read the tree by its paths."""
    gone: dict[str, str | None] = {} if before is None else {f"task/{each.id}": None for each in before.tasks}
    found = {
        f"task/{each.id}": codec.write_fields(("name", "target"), (each.name, each.target)) for each in after.tasks
    }
    return gone | found


def _edition_text(edition: Edition) -> str:
    job = edition.job
    names = ("definition", "created_at", "updated_at", *_EDITION)
    own = (getattr(edition, name) for name in _EDITION)
    return codec.write_fields(names, (write_definition(job), job.created_at, job.updated_at, *own))


def changed_job(id_: str, before: JobImage | None, fields: Mapping[str, str | None]) -> JobImage:
    """Return the image after these fields were written; without an image before, they are all."""
    image = {} if before is None else before._asdict()
    versions = {} if before is None else {each.job.version: each for each in before.versions}
    for name, text in fields.items():
        if text is None or name.startswith("task/"):
            continue
        if name.startswith("version/"):
            number = int(name.partition("/")[2])
            versions[number] = _edition(id_, number, text)
        elif name == "state":
            image[name] = codec.read_fields(JOB_STATE, text)
        elif name == "tally":
            image[name] = codec.read_fields(JOB_TALLY, text)
        else:
            image[name] = codec.read(text)
    return JobImage(**{**image, "versions": tuple(versions[number] for number in sorted(versions))})


def _edition(id_: str, version: int, text: str) -> Edition:
    names = ("definition", "created_at", "updated_at", *_EDITION)
    definition, created_at, updated_at, in_force_after, by, follows, rollout = codec.read_fields(names, text)
    job = read_definition(definition, id=id_, version=version, created_at=created_at, updated_at=updated_at)
    return Edition(job, in_force_after, by, follows, rollout)


# --------------------------------------------------------------------------------------------------------- occurrences


def occurrence_image(row: OccurrenceRow, *, is_ripe: bool) -> OccurrenceImage:
    """Return a copy of the occurrence's columns."""
    attempts = row.attempts.items()
    return OccurrenceImage(
        row.job.id,
        tuple([getattr(row, name) for name in OCCURRENCE_MADE]),
        tuple([getattr(row, name) for name in OCCURRENCE_STATE]),
        is_ripe,
        tuple(row.runs.items()),
        tuple([(key, tuple([getattr(each, name) for name in _ATTEMPT])) for key, each in attempts]),
    )


def new_occurrence(id_: str, job: JobRow, image: OccurrenceImage) -> OccurrenceRow:
    """Return a row of this id whose columns are still to be set."""
    made, state = (
        dict(zip(OCCURRENCE_MADE, image.made, strict=True)),
        dict(zip(OCCURRENCE_STATE, image.state, strict=True)),
    )
    names = ("version", "status", "priority", "needs", "ready_at", "updated_at", "ended_at")
    return OccurrenceRow(id=id_, job=job, **made, **{name: state[name] for name in names})


def set_occurrence(row: OccurrenceRow, image: OccurrenceImage) -> None:
    """Set all columns; the indexes must not have the row."""
    for name, each in zip(OCCURRENCE_MADE, image.made, strict=True):
        setattr(row, name, each)
    for name, each in zip(OCCURRENCE_STATE, image.state, strict=True):
        setattr(row, name, each)
    row.runs = dict(image.runs)
    row.attempts = {key: AttemptRow(*columns) for key, columns in image.attempts}


def occurrence_changes(id_: str, before: OccurrenceImage | None, after: OccurrenceImage) -> dict[str, str | None]:
    """Return the fields that differ between two images, None for each that is gone.

    An occurrence that takes the place of another one of its id is written whole.
    """
    changes: dict[str, str | None] = {}
    if before is not None and before.made != after.made:
        changes, before = dict.fromkeys(occurrence_changes(id_, None, before)), None
    if before is None:
        changes["made"] = codec.write_fields(_MADE, (after.job_id, *after.made))
    if before is None or before.state != after.state or before.is_ripe != after.is_ripe:
        changes["state"] = codec.write_fields(("is_ripe", *OCCURRENCE_STATE), (after.is_ripe, *after.state))
    if before is None or before.runs != after.runs:
        known = {} if before is None else dict(before.runs)
        for task, run in after.runs:
            if known.get(task) != run:
                changes[f"task/{ids.task_id(after.job_id, task)}/run"] = codec.write([task, run])
    if before is None or before.attempts != after.attempts:
        tried = {} if before is None else dict(before.attempts)
        for key, columns in after.attempts:
            if tried.get(key) != columns:
                changes[_attempt_path(id_, after.job_id, *key)] = codec.write([*key, columns])
    return changes


def _attempt_path(id_: str, job_id: str, task: str, number: int) -> str:
    task_id = ids.task_id(job_id, task)
    return f"task/{task_id}/run/attempt/{ids.attempt_id(ids.run_id(id_, task_id), number)}"


def changed_occurrence(before: OccurrenceImage | None, fields: Mapping[str, str | None]) -> OccurrenceImage:
    """Return the image after these fields were written. A field `made` says that they are all."""
    before = None if "made" in fields else before
    image = {} if before is None else before._asdict()
    runs, tries = ({}, {}) if before is None else (dict(before.runs), dict(before.attempts))
    for name, text in fields.items():
        if text is None:
            continue
        if name == "made":
            image["job_id"], *made = codec.read_fields(_MADE, text)
            image[name] = tuple(made)
        elif name == "state":
            image["is_ripe"], *state = codec.read_fields(("is_ripe", *OCCURRENCE_STATE), text)
            image[name] = tuple(state)
        elif name.endswith("/run"):
            task, run = codec.read(text)
            runs[task] = run
        else:
            task, number, attempt = codec.read(text)
            tries[task, number] = attempt
    return OccurrenceImage(**{**image, "runs": tuple(runs.items()), "attempts": tuple(tries.items())})


def name_in(state: str | None) -> str:
    """Return the name of a job, from its field `state`."""
    return str(codec.read_fields(("name",), state or "{}")[0])


def occurrence_members(id_: str, before: OccurrenceImage | None, after: OccurrenceImage | None) -> Iterator[str]:
    """Give the changes of the sets by which occurrences are found: command, path, score and member of each.

    `open` are those that the copy of every process holds, `failed` those that have failed, by the time of their end.
    """
    known = before if after is None else after
    if known is None:
        return
    line, path = f"job/{known.job_id}/occurrences", f"{known.job_id}/occurrence/{id_}"
    if after is None:
        yield from ("ZREM", line, "", id_, "ZREM", "ids", "", f"{id_}:{known.job_id}")
    elif before is None or before.made != after.made:
        yield from ("ZADD", line, str(codec.micros(after.made[_CREATION].scheduled_for)), id_)
        yield from ("ZADD", "ids", "0", f"{id_}:{known.job_id}")
    was_open, is_open = _is_open(before), _is_open(after)
    if was_open != is_open:
        yield from ("SADD" if is_open else "SREM", "open", "", path)
    had_failed, failed_at = _failed_at(before), _failed_at(after)
    if had_failed != failed_at:
        yield from ("ZREM", "failed", "", path) if failed_at is None else ("ZADD", "failed", str(failed_at), path)


def _is_open(image: OccurrenceImage | None) -> bool:
    return image is not None and (image.state[_STATUS] not in ENDED or image.state[_REPORT_DUE])


def _failed_at(image: OccurrenceImage | None) -> int | None:
    if image is None or image.state[_STATUS] not in FAILURES or image.state[_ENDED_AT] is None:
        return None
    return codec.micros(image.state[_ENDED_AT])
