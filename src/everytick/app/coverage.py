"""What a store knows of the coverage of a job: its instants by the definitions of their time, and its runs."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from everytick.app.past_instants import timeline
from everytick.deciding.coverage import CoverageLedger, CoverageSpan, CoverageState, coverage_spans
from everytick.deciding.past import past_instants
from everytick.domain.questions import MOST_COVERED, Coverage

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

__all__ = ["CoverageLedger", "CoverageSpan", "CoverageState", "coverage_of"]

_BEHIND = 20
"""How many occurrences behind the end are read too: the first of the schedule may stand for instants before the end."""


async def coverage_of(store: AnyStore, record: JobRecord, after: datetime, through: datetime) -> CoverageLedger:
    """Return the ledger of a job for `(after, through]`, or for as much of it as one answer holds."""
    now = await store.now()
    asked = Coverage(record.job.id, after, through)
    answer = await store.ask(asked)
    end = min(answer.runs[-1].scheduled_for if answer.is_cut else through, now)
    runs = list(answer.runs)
    if end < now:
        runs += (await store.ask(Coverage(record.job.id, end, now, _BEHIND))).runs
    if end <= after:
        return CoverageLedger(record.job.name, after, after, ())
    editions = await timeline(store, record, after, end)
    named = list(islice(past_instants(editions, after, end), MOST_COVERED + 1))
    is_cut = answer.is_cut or len(named) > MOST_COVERED
    shown = named[:MOST_COVERED]
    reached = shown[-1][0] if len(named) > MOST_COVERED else end
    by_id = {run.id: run for run in runs}
    return CoverageLedger(record.job.name, after, reached, coverage_spans(shown, by_id.values()), is_cut)
