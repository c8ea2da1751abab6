"""Rows as values and values as rows."""

import json
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from everytick.domain.codes import ATTEMPT_STATUSES, CAUSE_CODE, CAUSES, RUN_STATUSES, STATUSES
from everytick.domain.durations import MICROSECOND
from everytick.domain.payload import Payload
from everytick.domain.snapshots import (
    Active,
    Request,
)
from everytick.domain.steps import RunState, bounded
from everytick.stores.open_requests import stored_due_at
from everytick.stores.sql.rows import read_waits
from everytick.stores.sql.rows import request as read_request

Row: TypeAlias = Any
"""A record of the driver, read by column name."""

E = TypeVar("E", bound=StrEnum)


def text(given: str | None) -> str | None:
    """Return the text without zero bytes and lone surrogates, which PostgreSQL refuses."""
    if given is None or (given.isascii() and "\x00" not in given):
        return given
    return given.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


# --------------------------------------------------------------------------------------------------- occurrences


def active(row: Row) -> Active:
    """Return the part of an occurrence that a snapshot has."""
    return Active(
        f"occ_{row['id']}",
        row["line_at"],
        row["scheduled_for"],
        STATUSES[row["status"]],
        CAUSES[row["cause"]],
        row["superseded_by_next"],
        row["late"],
    )


def run_state(row: Row) -> RunState:
    """Return the state of a task of an occurrence."""
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
        waits=read_waits(row["waits"]),
        because_of=row["because_of"],
        out_of_time=row["out_of_time"],
    )


def write_timeout(timeout: timedelta | None) -> int | None:
    """Return an execution_timeout as microseconds. None for none, and for one beyond the range of dates."""
    limit = bounded(timeout)
    return None if limit is None else limit // MICROSECOND


# ---------------------------------------------------------------------------------------------------------- jobs


def request(row: Row) -> Request:
    """Return one request."""
    return read_request(row, CAUSES[row["cause"]])


def request_row(job: int, job_id: str, asked: Request) -> dict[str, object]:
    """Return a request by the names of the parameters that `ask` takes."""
    return {
        "job_key": job,
        "key": asked.key,
        "cause_code": CAUSE_CODE[asked.cause],
        "requested_at": asked.requested_at,
        "payload": asked.payload.text if asked.payload is not None else None,
        "overlap": None if asked.overlap is None else str(asked.overlap),
        "reason": asked.reason,
        "requested_by": asked.by,
        "replay_of": asked.replay_of,
        "scheduled_for": asked.scheduled_for,
        "covers_after": asked.covers_after,
        "covers_through": asked.covers_through,
        "keeps": json.dumps(asked.keeps) if asked.keeps else None,
        "nth": asked.nth,
        "id": asked.occurrence_id(job_id)[4:],
        "due_at": stored_due_at(asked),
    }


def request_words(job: int, job_id: str, asked: Request) -> dict[str, object]:
    """Return a request as `ask_within` takes it: its times in words, which every connection can write."""
    row = request_row(job, job_id, asked)
    return {name: sent.isoformat() if isinstance(sent, datetime) else sent for name, sent in row.items()}
