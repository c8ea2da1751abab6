"""Rows as values and values as rows."""

import json
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from everytick.domain.codes import ATTEMPT_STATUSES, CAUSE_CODE, CAUSES, RUN_STATUSES, STATUSES
from everytick.domain.config import Level, Overrides, overrides
from everytick.domain.decisions import Span, Why
from everytick.domain.notes import Log, Progress
from everytick.domain.occurrence import Attempt, Occurrence
from everytick.domain.payload import Payload
from everytick.domain.policies import Overlap
from everytick.domain.snapshots import (
    Active,
    Adjustment,
    AdjustmentKind,
    Ended,
    Missed,
    Pause,
    Request,
    Reschedule,
)
from everytick.domain.steps import RunState, bounded

Row: TypeAlias = Any
"""A record of the driver, read by column name."""

E = TypeVar("E", bound=StrEnum)

_NOTHING = Overrides(Level.OCCURRENCE)
_MICROSECOND = timedelta(microseconds=1)


def text(given: str | None) -> str | None:
    """Return the text as PostgreSQL can hold it: no zero byte, no half of a surrogate pair."""
    if given is None or (given.isascii() and "\x00" not in given):
        return given
    return given.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


# --------------------------------------------------------------------------------------------------- occurrences


def occurrence(row: Row) -> Occurrence:
    """Return the record people see."""
    return Occurrence(
        id=f"occ_{row['id']}",
        job_id=row["job_id"],
        version=row["version"],
        scheduled_for=row["scheduled_for"],
        status=STATUSES[row["status"]],
        cause=CAUSES[row["cause"]],
        late=row["late"],
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


def active(row: Row) -> Active:
    """Return as much of an occurrence as a plan needs."""
    return Active(
        f"occ_{row['id']}",
        row["line_at"],
        row["scheduled_for"],
        STATUSES[row["status"]],
        CAUSES[row["cause"]],
        row["superseded_by_next"],
        row["late"],
    )


def payload_or_none(stored: str | None) -> Payload | None:
    """Return the payload, if there is one."""
    return None if stored is None else Payload(stored)


def write_overrides(given: Overrides | None) -> tuple[str | None, str | None]:
    """Return overrides as JSON text, and the payload among them as a text of its own."""
    if given is None or not given.items:
        return None, None
    payload = given.get("payload")
    apart = payload.text if isinstance(payload, Payload) else None
    rest = {key: each for key, each in given.as_data().items() if apart is None or key != "payload"}
    return (json.dumps(rest, separators=(",", ":")) if rest else None), apart


def read_overrides(written: str | None, payload: str | None) -> Overrides:
    """Return what `write_overrides` wrote."""
    if written is None and payload is None:
        return _NOTHING
    items = overrides(Level.OCCURRENCE, json.loads(written)).items if written else ()
    if payload is not None:
        items = tuple(sorted((*items, ("payload", Payload(payload))), key=lambda item: item[0]))
    return Overrides(Level.OCCURRENCE, items)


def run_state(row: Row) -> RunState:
    """Return where a task of an occurrence stands."""
    last, result = row["last_attempt_status"], row["result"]
    return RunState(
        status=RUN_STATUSES[row["status"]],
        attempts=row["attempts"],
        retries=row["retries"],
        last=None if last is None else ATTEMPT_STATUSES[last],
        resume_at=row["resume_at"],
        started_at=row["started_at"],
        attempt_started_at=row["attempt_started_at"],
        ended_at=row["ended_at"],
        error=row["error"],
        result=None if result is None else Payload(result),
        waits=tuple(timedelta(microseconds=each) for each in row["waits"] or ()),
        because_of=row["because_of"],
        out_of_time=row["out_of_time"],
    )


def write_waits(waits: tuple[timedelta, ...]) -> str | None:
    """Return waits as the text of an array of microseconds: arrays of arrays cannot differ in length."""
    return "{" + ",".join(str(each // _MICROSECOND) for each in waits) + "}" if waits else None


def write_timeout(timeout: timedelta | None) -> int | None:
    """Return an execution_timeout as microseconds; None for none, and for one that is longer than anything."""
    limit = bounded(timeout)
    return None if limit is None else limit // _MICROSECOND


def attempt(row: Row, run_id: str) -> Attempt:
    """Return one try at a run."""
    status = ATTEMPT_STATUSES[row["status"]]
    done, node = row["progress_done"], row["log_node"]
    return Attempt(
        run_id,
        row["number"],
        status,
        row["started_at"],
        row["ended_at"],
        row["error"],
        progress=None if done is None else Progress(done, row["progress_total"], row["progress_text"]),
        log=None if node is None else Log(node, row["log_path"]),
        node=row["node"],
    )


# ---------------------------------------------------------------------------------------------------------- jobs


def ended(row: Row, which: str) -> Ended | None:
    """Return the last end or the last success of a job."""
    if row[f"{which}_at"] is None:
        return None
    times = row[f"{which}_scheduled_for"], row[f"{which}_started_at"], row[f"{which}_at"]
    return Ended(*times, f"occ_{row[f'{which}_id']}")


def pause(row: Row) -> Pause:
    """Return one pause."""
    held = row["since_at"], row["until_at"], Missed(row["missed"]), row["reason"]
    return Pause(*held, row["paused_by"], row["resumed_by"])


def adjustment(row: Row) -> Adjustment:
    """Return what was said of one instant."""
    own = None
    if row["overrides"] is not None or row["payload"] is not None:
        own = read_overrides(row["overrides"], row["payload"])
    return Adjustment(
        row["instant_at"],
        AdjustmentKind(row["kind"]),
        row["moved_to_at"],
        row["reason"],
        row["adjusted_by"],
        row["is_done"],
        own,
    )


def reschedule(row: Row) -> Reschedule | None:
    """Return the next run that somebody set."""
    if row["reschedule_for"] is None:
        return None
    return Reschedule(row["reschedule_made_at"], row["reschedule_for"], row["reschedule_by"])


def request(row: Row) -> Request:
    """Return something that was asked for."""
    payload, overlap = row["payload"], row["overlap"]
    return Request(
        key=row["key"],
        cause=CAUSES[row["cause"]],
        requested_at=row["requested_at"],
        payload=None if payload is None else Payload(payload),
        overlap=None if overlap is None else Overlap(overlap),
        reason=row["reason"],
        by=row["requested_by"],
        replay_of=row["replay_of"],
        scheduled_for=row["scheduled_for"],
        covers_after=row["covers_after"],
        covers_through=row["covers_through"],
        after=row["fill_after"],
        through=row["fill_through"],
        again=row["again"],
        keeps=tuple(row["keeps"] or ()),
        as_of_now=row["as_of_now"],
        nth=row["nth"],
    )


def request_row(job: int, job_id: str, asked: Request) -> tuple[object, ...]:
    """Return a request as `add_request` takes it."""
    return (
        job,
        asked.key,
        CAUSE_CODE[asked.cause],
        asked.requested_at,
        asked.payload.text if asked.payload is not None else None,
        None if asked.overlap is None else str(asked.overlap),
        text(asked.reason),
        text(asked.by),
        asked.replay_of,
        asked.scheduled_for,
        asked.covers_after,
        asked.covers_through,
        asked.after,
        asked.through,
        asked.again,
        list(asked.keeps) or None,
        asked.as_of_now,
        asked.nth,
        asked.occurrence_id(job_id)[4:],
    )


def request_words(job: int, job_id: str, asked: Request) -> tuple[object, ...]:
    """Return a request as `ask_within` takes it: its times in words, which every connection can write."""
    return tuple(each.isoformat() if isinstance(each, datetime) else each for each in request_row(job, job_id, asked))


def span(row: Row) -> Span:
    """Return instants that did not run."""
    return Span(
        STATUSES[row["status"]],
        Why(row["why"]),
        row["detail"],
        row["span_after"],
        row["span_through"],
        row["version"],
        row["count"],
    )
