"""Every question that pages ask, about whatever a store holds."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from everytick.domain.headlines import fingerprint
from everytick.domain.lookups import MissedSpans, SpansOfJobs
from everytick.domain.occurrence import Cause
from everytick.domain.questions import (
    Alike,
    Buckets,
    By,
    Counts,
    Coverage,
    Days,
    LastRuns,
    Lengths,
    Question,
    QuestionBatch,
    TimeWindow,
    WaitingInQueues,
)

HOUR = timedelta(hours=1)


def questions(now: datetime, job_ids: Sequence[str]) -> Iterator[Question[Any]]:
    """Give questions of every kind about the time before `now` and these jobs."""
    ids = tuple(job_ids)
    for after, through in ((now - 9 * HOUR, now), (now - HOUR, now + HOUR), (now - 9 * HOUR, now - HOUR)):
        for limit in (5_000, 3):
            yield TimeWindow(after, through, limit)
            yield TimeWindow(after, through, limit, ids)
        yield Counts(None, after, through)
        for step in (timedelta(minutes=5), HOUR, timedelta(days=1), timedelta(days=2)):
            yield Buckets(after, through, step, By.BAND)
            yield Buckets(after, through, step)
            if ids:
                yield Buckets(after, through, step, By.JOB, ids)
    yield SpansOfJobs(ids, now - 9 * HOUR, now)
    yield QuestionBatch((SpansOfJobs(ids[:1], now - HOUR, now), Counts(), Lengths(ids)))
    yield MissedSpans(now - 9 * HOUR, now)
    yield MissedSpans(now - HOUR, now, 2)
    yield MissedSpans(now - 9 * HOUR, now - HOUR, 2)
    yield Alike(now - 9 * HOUR)
    yield Alike(now - HOUR, None, 1)
    yield Alike(now - 9 * HOUR, fingerprint("boom"))
    yield LastRuns(ids, 4)
    yield LastRuns((*ids, "job_none"))
    yield Counts()
    yield Counts(cause=Cause.TRIGGER)
    yield Lengths(ids)
    yield Lengths()
    yield WaitingInQueues()
    for id_ in (*ids, "job_none"):
        yield Days(id_, now.year)
        yield Counts(id_)
        yield Coverage(id_, now - 9 * HOUR, now)
        yield Coverage(id_, now - 9 * HOUR, now, 2)
