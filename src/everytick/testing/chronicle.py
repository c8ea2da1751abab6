"""The chronicle of a test: every instant of every job and what happened to it, to read and to assert on."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, Protocol

from everytick.domain.decisions import Span
from everytick.domain.durations import instant
from everytick.domain.headlines import headline
from everytick.domain.lookups import Spans
from everytick.domain.names import did_you_mean
from everytick.domain.occurrence import Occurrence
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value
from everytick.stores.base import HistoryFilter, JobRecord
from everytick.stores.protocols import HistoryStore, JobStore, QuestionStore

_BEGIN, _END = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
_MOST_LISTED = 10_000
"""Most instants of one span that are listed."""


class PastStore(JobStore, HistoryStore, QuestionStore, Protocol):
    """A store whose past can be read."""


@value
class Entry:
    """One instant of one job: an occurrence that exists, or why there is none.

    `attempts` counts the tries of each task by its name, `errors` holds what the tasks said
    that failed, `results` what those returned that succeeded; `result` is that of the last task, and
    `payload` what the run was given. `count` is more than one, or None for more than can be counted, where a row of
    instants that did not run stands for many.
    """

    job: str
    scheduled_for: datetime
    status: str
    why: str = ""
    cause: str = "schedule"
    late: bool = False
    occurrence_id: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    attempts: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    count: int | None = 1
    results: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    payload: Any = None

    @property
    def did_run(self) -> bool:
        """Whether one of its tasks was started."""
        return self.started_at is not None

    def __str__(self) -> str:
        many = "" if self.count == 1 else f" ({'more than ' if self.count is None else ''}{self.count or _MOST_LISTED})"
        named = self.error or ""
        tries = [f"{task} tried {number}×" for task, number in self.attempts.items() if number > 1]
        errors = [f"{task}: {headline(error)}" for task, error in self.errors.items() if headline(error) not in named]
        said = "; ".join(part for part in (self.why, named, *errors, *tries) if part)
        return f"{self.scheduled_for:%Y-%m-%d %H:%M:%S}  {self.status:21}  {said}{many}"


class Chronicle:
    """Every planned instant, in order of time. `print` shows all of them."""

    def __init__(self, entries: Iterable[Entry], jobs: Iterable[str] = ()) -> None:
        self.entries = tuple(sorted(entries, key=lambda entry: (entry.scheduled_for, entry.job)))
        self._jobs = {*jobs, *(entry.job for entry in self.entries)}

    def __repr__(self) -> str:
        return f"Chronicle({len(self.entries)} entries of {len(self._jobs)} jobs)"

    def __str__(self) -> str:
        return "\n".join(f"{entry.job}: {entry}" for entry in self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def of(self, job: str) -> tuple[Entry, ...]:
        """Return the entries of one job. A name that no job has is refused."""
        if job not in self._jobs:
            known = did_you_mean(job, self._jobs) or f"; there are: {', '.join(sorted(self._jobs)) or 'none'}"
            raise LookupError(f"no job is named {job!r}{known}")
        return tuple(entry for entry in self.entries if entry.job == job)

    def ran(self, job: str) -> tuple[Entry, ...]:
        """Return the entries that were started, with any end."""
        return tuple(entry for entry in self.of(job) if entry.did_run)

    def skipped(self, job: str) -> tuple[Entry, ...]:
        """Return the entries that did not run: skipped, missed, superseded, or canceled before they began."""
        return tuple(entry for entry in self.of(job) if not entry.did_run and entry.status not in _TO_COME)

    def assert_ran(
        self, job: str, *instants: datetime | str, times: int | None = None, status: str | None = None
    ) -> None:
        """Fail unless the job ran: exactly at these instants, exactly this many times, or at all.

        With `status` every run must have ended so, "completed" for example.
        """
        entries = self.ran(job)
        self._check(job, "run", entries, instants, times)
        wrong = [entry for entry in entries if status is not None and entry.status != status]
        if wrong:
            self._fail(job, f"every run should have ended {status}, and {len(wrong)} did not")

    def assert_skipped(
        self, job: str, *instants: datetime | str, times: int | None = None, why: str | None = None
    ) -> None:
        """Fail unless instants of the job did not run: exactly these, exactly this many, or any.

        With `why` only those count whose status or reason says so: "overlap", "missed", "paused".
        """
        entries = [entry for entry in self.skipped(job) if why is None or why in f"{entry.status} {entry.why}"]
        self._check(job, "be skipped" if why is None else f"be skipped ({why})", entries, instants, times)

    def assert_failed(self, job: str, *, error: str | None = None) -> None:
        """Fail unless a run of the job failed, with this text in its error if one is given."""
        failed = [entry for entry in self.ran(job) if entry.status in _FAILED]
        said = ["\n".join([entry.error or "", *entry.errors.values()]) for entry in failed]
        if not any(error is None or error in text for text in said):
            self._fail(job, "no run failed" + ("" if error is None else f" with {error!r} in its error"))

    def _check(
        self, job: str, deed: str, entries: Iterable[Entry], instants: tuple[datetime | str, ...], times: int | None
    ) -> None:
        expected, actual = [instant(moment) for moment in instants], [entry.scheduled_for for entry in entries]
        if expected and actual != expected:
            self._fail(job, f"should {deed} exactly at {_listed(expected)}")
        number = sum(entry.count or _MOST_LISTED for entry in entries)
        if times is not None and number != times:
            self._fail(job, f"should {deed} {times} times, and it was {number} times")
        if not expected and times is None and not actual:
            self._fail(job, f"should {deed}, and never did")

    def _fail(self, job: str, said: str) -> None:
        happened = "\n".join(f"  {entry}" for entry in self.of(job)) or "  nothing"
        raise AssertionError(f"{job}: {said}\nwhat happened to {job}:\n{happened}")


_FAILED = ("failed", "failed_stale", "completed_with_errors")
_TO_COME = ("pending", "queued", "running", "awaiting_retry")


def _listed(instants: Iterable[datetime]) -> str:
    return ", ".join(f"{instant:%Y-%m-%d %H:%M:%S}" for instant in instants)


async def chronicle_of(store: PastStore) -> Chronicle:
    """Return the whole history of a store. It is meant for the few jobs of a test."""
    occurrences = [occurrence async for occurrence in _occurrences(store)]
    known = {record.job.id: record for record in await store.list()}
    known |= await store.get([occurrence.job_id for occurrence in occurrences if occurrence.job_id not in known])
    entries = [await _of_occurrence(store, occurrence, known[occurrence.job_id]) for occurrence in occurrences]
    for job_id, record in known.items():
        for span in await store.ask(Spans(job_id, _BEGIN, _END)):
            entries += _of_span(span, record)
    return Chronicle(entries, (record.job.name for record in known.values()))


async def _occurrences(store: HistoryStore) -> AsyncIterator[Occurrence]:
    cursor = None
    while True:
        page = await store.history(HistoryFilter(limit=1000, cursor=cursor))
        for occurrence in page.occurrences:
            yield occurrence
        cursor = page.cursor
        if cursor is None:
            return


async def _of_occurrence(store: HistoryStore, occurrence: Occurrence, record: JobRecord) -> Entry:
    whole = await store.whole(occurrence.id)
    return Entry(
        job=record.job.name,
        scheduled_for=occurrence.scheduled_for,
        status=str(occurrence.status),
        why=occurrence.reason or "",
        cause=str(occurrence.cause),
        late=occurrence.late,
        occurrence_id=occurrence.id,
        started_at=occurrence.started_at,
        ended_at=occurrence.ended_at,
        error=occurrence.error,
        attempts=dict(Counter(task for task, _ in whole.attempts)),
        errors={run.task: run.error for run in whole.runs if run.error},
        results=whole.results,
        result=whole.result,
        payload=occurrence.payload_under(record.job),
    )


def _of_span(span: Span, record: JobRecord) -> list[Entry]:
    """Return an entry for each instant of the span, or one for all if the definition cannot name them any more."""
    why = f"{span.why} {span.detail}".strip()
    status = str(OccurrenceStatus(span.status))
    if span.count is not None and span.version == record.job.version:
        schedule = record.job.bound(None if record.last_end is None else record.last_end.ended_at)
        named = list(schedule.instants(span.after, span.through, _MOST_LISTED))
        if len(named) == span.count:
            return [Entry(record.job.name, at, status, why) for at in named]
    return [Entry(record.job.name, span.through, status, why, count=span.count)]
