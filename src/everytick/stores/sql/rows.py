"""Rows of the shared statements as values, and values as their arguments."""

import json
from datetime import timedelta
from typing import Any

from everytick.domain.config import Level, Overrides, overrides
from everytick.domain.decisions import Span
from everytick.domain.durations import MICROSECOND
from everytick.domain.notes import Log, Progress
from everytick.domain.occurrence import Attempt, Cause, Occurrence
from everytick.domain.payload import Payload
from everytick.domain.policies import Overlap
from everytick.domain.snapshots import Active, Adjustment, AdjustmentKind, Ended, Missed, PausedSpan, Request
from everytick.domain.steps import RunState
from everytick.domain.values import value
from everytick.stores.open_requests import read_due_at, stored_due_at
from everytick.stores.sql.statements import Row

NO_OVERRIDES = Overrides(Level.OCCURRENCE)


@value
class LineHead:
    """The first of one job's busy and waiting occurrences, how many there are, and if all busy ones are awaited."""

    busy: tuple[Active, ...] = ()
    busy_count: int = 0
    waiting: tuple[Active, ...] = ()
    waiting_count: int = 0
    awaited: bool = True


EMPTY_LINE = LineHead()


def payload_or_none(stored: str | None) -> Payload | None:
    """Return the payload, if there is one."""
    return None if stored is None else Payload(stored)


def write_overrides(given: Overrides | None) -> tuple[str | None, str | None]:
    """Return the overrides of an occurrence as JSON text, and its payload as a separate text."""
    if given is None or not given.items:
        return None, None
    items = dict(given.items)
    payload = items.pop("payload", None)
    rest = Overrides(given.level, tuple(items.items())).as_data()
    return json.dumps(rest, separators=(",", ":")) if rest else None, payload.text if payload is not None else None


def read_overrides(rest: str | None, payload: str | None) -> Overrides:
    """Return what `write_overrides` wrote."""
    if rest is None:
        return NO_OVERRIDES if payload is None else Overrides(Level.OCCURRENCE, (("payload", Payload(payload)),))
    items = overrides(Level.OCCURRENCE, json.loads(rest)).items
    if payload is not None:
        items = tuple(sorted((*items, ("payload", Payload(payload))), key=lambda item: item[0]))
    return Overrides(Level.OCCURRENCE, items)


def pause(row: Row, reason: str = "reason") -> PausedSpan:
    """Return one pause; `reason` names the column with its reason."""
    return PausedSpan(
        since=row["since_at"],
        until=row["until_at"],
        missed=Missed(row["missed"]),
        reason=row[reason],
        by=row["paused_by"],
        resumed_by=row["resumed_by"],
    )


def adjustment(row: Row) -> Adjustment:
    """Return the adjustment of one instant."""
    own = read_overrides(row["overrides"], row["payload"])
    return Adjustment(
        at=row["instant_at"],
        kind=AdjustmentKind(row["kind"]),
        to=row["moved_to_at"],
        reason=row["reason"],
        by=row["adjusted_by"],
        done=bool(row["is_done"]),
        overrides=own if own.items else None,
        told_at=row["told_at"],
    )


def ended(row: Row, which: str) -> Ended | None:
    """Return the last end or the last success of a job."""
    if row[f"{which}_at"] is None:
        return None
    times = row[f"{which}_scheduled_for"], row[f"{which}_started_at"], row[f"{which}_at"]
    return Ended(*times, row[f"{which}_occurrence_id"])


def request(row: Row, cause: Cause | None = None) -> Request:
    """Return something that was asked for; `cause` is given where the row holds its code."""
    overlap = row["overlap"]
    return Request(
        key=row["key"],
        cause=cause or row["cause"],
        requested_at=row["requested_at"],
        payload=payload_or_none(row["payload"]),
        overlap=None if overlap is None else Overlap(overlap),
        reason=row["reason"],
        by=row["requested_by"],
        replay_of=row["replay_of"],
        scheduled_for=row["scheduled_for"],
        covers_after=row["covers_after"],
        covers_through=row["covers_through"],
        keeps=tuple(json.loads(row["keeps"])) if row["keeps"] else (),
        nth=row["nth"],
        due_at=read_due_at(row["due_at"]),
    )


def request_arguments(job_key: int, job_id: str, asked: Request) -> dict[str, Any]:
    """Return a request as `keep_request` takes it."""
    return {
        "job_key": job_key,
        "key": asked.key,
        "cause": asked.cause,
        "requested_at": asked.requested_at,
        "payload": None if asked.payload is None else asked.payload.text,
        "overlap": None if asked.overlap is None else str(asked.overlap),
        "reason": asked.reason,
        "requested_by": asked.by,
        "replay_of": asked.replay_of,
        "scheduled_for": asked.scheduled_for,
        "covers_after": asked.covers_after,
        "covers_through": asked.covers_through,
        "keeps": json.dumps(asked.keeps) if asked.keeps else None,
        "nth": asked.nth,
        "occurrence_id": asked.occurrence_id(job_id),
        "due_at": stored_due_at(asked),
    }


def occurrence(row: Row) -> Occurrence:
    """Return the record that people see."""
    return Occurrence(
        id=row["occurrence_id"],
        job_id=row["job_id"],
        version=row["version"],
        scheduled_for=row["scheduled_for"],
        status=row["status"],
        cause=row["cause"],
        late=bool(row["late"]),
        covers_after=row["covers_after"],
        covers_through=row["covers_through"],
        line_at=row["line_at"],
        ready_at=row["ready_at"],
        owner=row["owner"],
        fence=row["fence"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        error=row["error"],
        overrides=read_overrides(row["overrides"], row["payload"]),
        replay_of=row["replay_of"],
        reason=row["reason"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        node=row["node"],
    )


def run_state(row: Row) -> RunState:
    """Return the state of a task of an occurrence."""
    return RunState(
        status=row["run_status"],
        attempts=row["attempts"],
        retries=row["retries"],
        last=row["last_attempt_status"],
        resume_at=row["resume_at"],
        started_at=row["started_at"],
        attempt_started_at=row["attempt_started_at"],
        ended_at=row["ended_at"],
        error=row["error"],
        result=payload_or_none(row["result"]),
        waits=read_waits(row["waits"]),
        because_of=row["because_of"],
        out_of_time=bool(row["out_of_time"]),
    )


def run_arguments(handle: int, task: str, run: RunState) -> dict[str, Any]:
    """Return the state of a task of an occurrence, as `record_run` takes it."""
    return {
        "handle": handle,
        "task": task,
        "run_status": run.status,
        "attempts": run.attempts,
        "retries": run.retries,
        "last_attempt_status": run.last,
        "out_of_time": run.out_of_time,
        "resume_at": run.resume_at,
        "started_at": run.started_at,
        "attempt_started_at": run.attempt_started_at,
        "ended_at": run.ended_at,
        "error": run.error,
        "because_of": run.because_of,
        "result": None if run.result is None else run.result.text,
        "waits": write_waits(run.waits),
    }


def write_waits(waits: tuple[timedelta, ...]) -> str | None:
    """Return waits as a JSON list of microseconds, if there are any."""
    return json.dumps([wait // MICROSECOND for wait in waits]) if waits else None


def read_waits(stored: str | None) -> tuple[timedelta, ...]:
    """Return what `write_waits` wrote."""
    return tuple(timedelta(microseconds=wait) for wait in json.loads(stored)) if stored else ()


def span_arguments(job_key: int, span: Span) -> dict[str, Any]:
    """Return instants that did not run, as `add_span` takes them."""
    return {
        "job_key": job_key,
        "status": span.status,
        "why": str(span.why),
        "detail": span.detail,
        "span_after": span.after,
        "span_through": span.through,
        "version": span.version,
        "count": span.count,
    }


def attempt(row: Row, run_id: str) -> Attempt:
    """Return one try at a run."""
    done, node = row["progress_done"], row["log_node"]
    return Attempt(
        run_id,
        row["number"],
        row["attempt_status"],
        row["started_at"],
        row["ended_at"],
        row["error"],
        progress=None if done is None else Progress(done, row["progress_total"], row["progress_text"]),
        log=None if node is None else Log(node, row["log_path"]),
        node=row["node"],
        handed_to=row["handed_to"],
    )
