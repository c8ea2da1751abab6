"""What a store knows of the coverage of a job: its instants by the definitions of their time, and its runs."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from everytick.app.past_instants import held_back, timeline
from everytick.deciding.coverage import CoverageLedger, CoverageSpan, CoverageState, coverage_spans, retention_floor
from everytick.deciding.past import past_instants
from everytick.domain.lookups import Spans
from everytick.domain.questions import MOST_COVERED, Coverage, QuestionBatch
from everytick.domain.upcoming import effective

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

__all__ = ["CoverageLedger", "CoverageSpan", "CoverageState", "coverage_of"]

_BEHIND = 20
"""How many occurrences behind the end are read too: the first of the schedule may stand for instants before the end."""


async def coverage_of(store: AnyStore, record: JobRecord, after: datetime, through: datetime) -> CoverageLedger:
    """Return the ledger of a job for `(after, through]`, or for as much of it as one answer holds."""
    now, job_id = await store.now(), record.job.id
    asked = Coverage(job_id, after, through), Spans(job_id, after, through)
    answer, spans = await store.ask(QuestionBatch(asked))
    end = min(answer.runs[-1].scheduled_for if answer.is_cut else through, now)
    if end <= after:
        return CoverageLedger(record.job.name, after, after, ())
    runs = {run.id: run for run in answer.runs}
    if end < now:
        runs |= {run.id: run for run in (await store.ask(Coverage(job_id, end, now, _BEHIND))).runs}
    # Later versions count too: each may have set another retention.
    editions = await timeline(store, record, after, now)
    named = list(islice(past_instants(editions, after, end), MOST_COVERED + 1))
    is_cut = answer.is_cut or len(named) > MOST_COVERED
    shown = named[:MOST_COVERED]
    reached = shown[-1][0] if len(named) > MOST_COVERED else end
    ledger = coverage_spans(
        shown,
        runs.values(),
        spans=[*spans, *await held_back(store, record, now)],
        first=record.job.created_at,
        floor=retention_floor(effective(editions), now),
    )
    return CoverageLedger(record.job.name, after, reached, ledger, is_cut)
