"""The one table of the small numbers that stand for statuses and causes in SQL.

A number, once written to a table, never changes its meaning: so each is written out here, and none follows from the
order of an enum. An occurrence is active below `FIRST_ENDED` and over from there on; the gap leaves room for another
active status. SQL texts name a code as `{pending}`, `{run.success}`, `{attempt.failed}` or `{cause.schedule}`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from everytick.domain.occurrence import Cause
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus

E = TypeVar("E", bound=StrEnum)

_O, _R, _A = OccurrenceStatus, RunStatus, AttemptStatus

STATUS_CODE: Mapping[OccurrenceStatus, int] = {
    _O.PENDING: 0,
    _O.QUEUED: 1,
    _O.RUNNING: 2,
    _O.AWAITING_RETRY: 3,
    _O.COMPLETED: 10,
    _O.COMPLETED_WITH_ERRORS: 11,
    _O.FAILED: 12,
    _O.CANCELED: 13,
    _O.FAILED_STALE: 14,
    _O.SKIPPED: 15,
    _O.MISSED: 16,
    _O.SUPERSEDED: 17,
}

FIRST_ENDED = 10
"""An occurrence with this code or a higher one is over."""

RUN_CODE: Mapping[RunStatus, int] = {
    _R.PENDING: 0,
    _R.RUNNING: 1,
    _R.SUCCESS: 2,
    _R.FAILED: 3,
    _R.TIMEOUT: 4,
    _R.CANCELED: 5,
    _R.SKIPPED: 6,
}

ATTEMPT_CODE: Mapping[AttemptStatus, int] = {
    _A.PENDING: 0,
    _A.RUNNING: 1,
    _A.SUCCESS: 2,
    _A.FAILED: 3,
    _A.TIMEOUT: 4,
    _A.CANCELED: 5,
    _A.LOST: 6,
}

FIRST_ENDED_ATTEMPT = 2
"""An attempt with this code or a higher one is over, and so is a run."""

CAUSE_CODE: Mapping[Cause, int] = {
    Cause.SCHEDULE: 0,
    Cause.TRIGGER: 1,
    Cause.REPLAY: 2,
    Cause.BACKFILL: 3,
    Cause.CREATE: 4,
    Cause.RESTART: 5,
}


def _by_code(codes: Mapping[E, int]) -> Mapping[int, E]:
    return {code: member for member, code in codes.items()}


STATUSES = _by_code(STATUS_CODE)
RUN_STATUSES = _by_code(RUN_CODE)
ATTEMPT_STATUSES = _by_code(ATTEMPT_CODE)
CAUSES = _by_code(CAUSE_CODE)

IN_SQL: Mapping[str, int] = {
    **{str(status): code for status, code in STATUS_CODE.items()},
    "first_ended": FIRST_ENDED,
    **{f"run.{status}": code for status, code in RUN_CODE.items()},
    **{f"attempt.{status}": code for status, code in ATTEMPT_CODE.items()},
    "attempt.first_ended": FIRST_ENDED_ATTEMPT,
    **{f"cause.{cause}": code for cause, code in CAUSE_CODE.items()},
}
"""What stands in braces in a SQL text, and the code that takes its place when the text is loaded."""
