"""The numbers that stand for statuses and causes in tables never change."""

from everytick.domain.codes import (
    ATTEMPT_CODE,
    CAUSE_CODE,
    FIRST_ENDED,
    FIRST_ENDED_ATTEMPT,
    RUN_CODE,
    STATUS_CODE,
)
from everytick.domain.occurrence import Cause
from everytick.domain.statuses import ATTEMPT_ENDED, ENDED, RUN_ENDED, AttemptStatus, OccurrenceStatus, RunStatus


def test_every_member_has_a_code_of_its_own() -> None:
    for codes, kind in (
        (STATUS_CODE, OccurrenceStatus),
        (RUN_CODE, RunStatus),
        (ATTEMPT_CODE, AttemptStatus),
        (CAUSE_CODE, Cause),
    ):
        assert set(codes) == set(kind)
        assert len(set(codes.values())) == len(codes)


def test_what_is_over_is_one_comparison() -> None:
    assert {status for status, code in STATUS_CODE.items() if code >= FIRST_ENDED} == ENDED
    assert {status for status, code in RUN_CODE.items() if code >= FIRST_ENDED_ATTEMPT} == RUN_ENDED
    assert {status for status, code in ATTEMPT_CODE.items() if code >= FIRST_ENDED_ATTEMPT} == ATTEMPT_ENDED
