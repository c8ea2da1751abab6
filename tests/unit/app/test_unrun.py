"""Instants that did not run are counted in few questions, and up to a bounded number one by one."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from everytick import Everytick, every
from everytick.app.unrun import MOST_COUNTED, Unrun
from everytick.domain.decisions import Span, Why
from everytick.domain.job import Job
from everytick.domain.lookups import Editions
from everytick.domain.questions import QuestionBatch
from everytick.domain.statuses import OccurrenceStatus

NOON = datetime(2026, 10, 23, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MISSED = OccurrenceStatus.MISSED


class Defined:
    """A store that knows definitions, and nothing that made up for an instant. It counts what it is asked."""

    def __init__(self, jobs: list[Job]) -> None:
        self._jobs, self.asked = {job.id: job for job in jobs}, 0

    async def ask(self, question: Any) -> Any:
        self.asked += 1
        if not isinstance(question, QuestionBatch):
            return frozenset[str]()
        return [
            [SimpleNamespace(job=self._jobs[each.job_id])] for each in question.questions if isinstance(each, Editions)
        ]


def jobs_of(count: int, length: str) -> list[Job]:
    tick = Everytick("memory://", name="shop", timezone="UTC")
    return [tick.define(f"job-{number}", every(length)).command("run", "true").job for number in range(count)]


@pytest.mark.parametrize(("count", "length", "found", "is_more"), [(250, "20m", 750, False), (40, "1s", 10_000, True)])
async def test_an_outage_that_began_before_the_time_is_counted_in_few_questions(
    count: int, length: str, found: int, is_more: bool
) -> None:
    """Each job had a question of its own and 10,000 instants one by one: the history took seconds, on a bad day."""
    jobs = jobs_of(count, length)
    spans = [(job.id, Span(MISSED, Why.MISSED, "", NOON - 9 * HOUR, NOON, job.version, None)) for job in jobs]
    store: Any = Defined(jobs)

    counts, more = await Unrun(store, (MISSED,), NOON).counted(NOON - HOUR, NOON, spans)

    assert (counts[MISSED], more) == (found, is_more)
    assert found <= MOST_COUNTED
    assert store.asked <= 5
