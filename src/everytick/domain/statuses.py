"""Where a record stands, and the one table of legal moves.

The names are what people and stores see. A move that is not in the table is a bug in
our own code, never a user's mistake: `move` asserts.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Protocol, TypeAlias, TypeVar


class OccurrenceStatus(StrEnum):
    """Where an occurrence stands."""

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_RETRY = "awaiting_retry"
    COMPLETED = "completed"
    COMPLETED_WITH_ERRORS = "completed_with_errors"
    FAILED = "failed"
    CANCELED = "canceled"
    FAILED_STALE = "failed_stale"
    SKIPPED = "skipped"
    MISSED = "missed"
    SUPERSEDED = "superseded"


class RunStatus(StrEnum):
    """Where one task within an occurrence stands; `skipped` never started."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    SKIPPED = "skipped"


class AttemptStatus(StrEnum):
    """Where one try at a task stands; `lost` means that its node fell silent."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    LOST = "lost"


Status: TypeAlias = OccurrenceStatus | RunStatus | AttemptStatus

_O, _R, _A = OccurrenceStatus, RunStatus, AttemptStatus

BUSY = frozenset({_O.PENDING, _O.RUNNING, _O.AWAITING_RETRY})
"""Takes one of the job's places, owned by a node or not."""

WAITING = frozenset({_O.QUEUED})
"""Stands in line for a place."""

ACTIVE = BUSY | WAITING
"""Not over: `plan` must see it."""

ENDED = frozenset(_O) - ACTIVE
"""Final: nothing moves out of it."""

FINISHED = ENDED - {_O.SKIPPED, _O.MISSED, _O.SUPERSEDED}
"""The ends that something which had started can come to by itself, or by a cancel or a loss."""

WELL = frozenset({_O.COMPLETED, _O.COMPLETED_WITH_ERRORS})
"""The ends that count as a success, as in `last_success` of a job."""

FAILURES = frozenset({_O.FAILED, _O.FAILED_STALE, _O.COMPLETED_WITH_ERRORS})
"""The ends that people call a failure: a task failed, or the node was lost."""

RUN_ENDED = frozenset(_R) - {_R.PENDING, _R.RUNNING}
"""A run is over; only `on_orphan` restart opens it again."""

ATTEMPT_ENDED = frozenset(_A) - {_A.PENDING, _A.RUNNING}
"""An attempt is over, for ever: a retry is a new attempt."""

_NONE: frozenset[Any] = frozenset()

# Missed has no way in: what is decided not to run is born so. What waits for another job may be skipped later.
MOVES: Mapping[OccurrenceStatus, frozenset[OccurrenceStatus]] = {
    _O.QUEUED: frozenset({_O.PENDING, _O.CANCELED, _O.SUPERSEDED, _O.SKIPPED}),
    # A pause puts unclaimed occurrences back in line.
    _O.PENDING: frozenset({_O.RUNNING, _O.QUEUED, _O.CANCELED, _O.SUPERSEDED}),
    # Pending again: an unstarted claim given back, or an orphan to resume or restart.
    _O.RUNNING: FINISHED | {_O.PENDING, _O.AWAITING_RETRY},
    # Only here may the next instant supersede what has already started: no attempt of it is running.
    _O.AWAITING_RETRY: FINISHED | {_O.RUNNING, _O.SUPERSEDED},
    **dict.fromkeys(ENDED, _NONE),
}

RUN_MOVES: Mapping[RunStatus, frozenset[RunStatus]] = {
    # Pending is also the wait between two attempts, and may end there as its last attempt did.
    _R.PENDING: frozenset({_R.RUNNING, _R.FAILED, _R.TIMEOUT, _R.CANCELED, _R.SKIPPED}),
    _R.RUNNING: frozenset({_R.PENDING, _R.SUCCESS, _R.FAILED, _R.TIMEOUT, _R.CANCELED}),
    **dict.fromkeys(RUN_ENDED, frozenset({_R.PENDING})),
}

ATTEMPT_MOVES: Mapping[AttemptStatus, frozenset[AttemptStatus]] = {
    # Pending: announced before its retry wait is over, so that no attempt starts unknown to the store.
    _A.PENDING: frozenset({_A.RUNNING, _A.CANCELED, _A.LOST}),
    _A.RUNNING: ATTEMPT_ENDED,
    **dict.fromkeys(ATTEMPT_ENDED, _NONE),
}

# By kind, because members of different kinds with one name are equal as text.
_TABLES: Mapping[type[Status], Mapping[Any, frozenset[Any]]] = {
    OccurrenceStatus: MOVES,
    RunStatus: RUN_MOVES,
    AttemptStatus: ATTEMPT_MOVES,
}

S = TypeVar("S", bound=Status, covariant=True)


class Record(Protocol[S]):
    """Anything with an id and a status: an Occurrence, a TaskRun or an Attempt."""

    @property
    def id(self) -> str:
        """The record's public id."""
        ...

    @property
    def status(self) -> S:
        """Where it stands."""
        ...


R = TypeVar("R", bound=Record[Any])


def may_move(from_: Status, to: Status) -> bool:
    """Say whether a record may go from one status to the other."""
    return type(from_) is type(to) and to in _TABLES[type(from_)][from_]


def move(record: R, to: Status) -> R:
    """Return the record in its new status; a move not in the table is a bug in our code."""
    assert may_move(record.status, to), f"{record.id}: {record.status} cannot become {to}"
    moved: R = replace(record, status=to)  # type: ignore[type-var]
    return moved
