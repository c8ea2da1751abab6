"""The list of jobs: the state of each, which of them a filter means, and the order in which they need a look.

It asks the store for the jobs, which are kept for some seconds, for what is under way, at most 1,000 occurrences, for
how long those usually take, and for the promises that are broken. So it says the same as the page Now.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from everytick.app.store_access import open_store
from everytick.domain.lookups import Breaches
from everytick.domain.statuses import ACTIVE, OccurrenceStatus
from everytick.domain.values import value
from everytick.web.job_standing import overruns
from everytick.web.words import LATE_AFTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from everytick.app import Everytick
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.promises import Breach
    from everytick.domain.questions import JobLengths
    from everytick.stores.base import JobRecord

_UNDER_WAY = 1_000
"""Most occurrences under way that are looked at. Those beyond are the oldest in line of jobs with many."""

_BREACHES = 200
"""Most broken promises that are looked at, as on the page Now."""

_LONGEST_CHARACTERS = 200
"""How much of a typed filter is read."""

_FAR = float("inf")
_S = OccurrenceStatus


class JobState(StrEnum):
    """What stands out of a job, most urgent first."""

    FAILED = "failed"
    PROMISE_BROKEN = "promise_broken"
    LATE = "late"
    OVERRUNNING = "overrunning"
    PARKED = "parked"
    AWAITING_RETRY = "awaiting_retry"
    RUNNING = "running"
    PAUSED = "paused"
    DISABLED = "disabled"
    NEVER_RAN = "never_ran"
    FINE = "fine"


_NEEDS_LOOK = (
    JobState.FAILED,
    JobState.PROMISE_BROKEN,
    JobState.LATE,
    JobState.OVERRUNNING,
    JobState.PARKED,
)
"""As on the page Now: a retry comes by itself, and needs no person yet."""
_RANKS = {state: rank for rank, state in enumerate(JobState)}
_LAST = _RANKS[JobState.PAUSED]
"""What is paused, disabled, new or fine stands in one order: by what comes next."""


@value(frozen=True)
class JobFilter:
    """Which jobs: those with a text in their name, owner or a tag, with a tag, of an owner, in a state."""

    q: str = ""
    tag: str = ""
    owner: str = ""
    state: str = ""

    @classmethod
    def read(cls, typed: Mapping[str, str]) -> JobFilter:
        """Return the filter that an address names. A state that is none is left out."""
        q, tag, owner, state = (
            typed.get(name, "").strip()[:_LONGEST_CHARACTERS] for name in ("q", "tag", "owner", "state")
        )
        return cls(q, tag, owner, state if state in list(JobState) else "")

    @property
    def query(self) -> dict[str, str]:
        """What stands in the address."""
        named = {"q": self.q, "tag": self.tag, "owner": self.owner, "state": self.state}
        return {name: said for name, said in named.items() if said}

    @property
    def is_of_all(self) -> bool:
        """Whether every job is meant, whatever its state."""
        return not (self.q or self.tag or self.owner)

    def means(self, record: JobRecord) -> bool:
        """Whether the job is meant, whatever its state."""
        job = record.job
        if (self.tag and self.tag not in job.settings.tags) or (self.owner and self.owner != job.owner):
            return False
        wanted = self.q.lower()
        return not wanted or any(wanted in text.lower() for text in (job.name, job.owner, *job.settings.tags))


@value(frozen=True)
class ListedJob:
    """A job of the list: its state, its newest occurrence under way, and the promise that is broken now."""

    record: JobRecord
    state: JobState
    active: Occurrence | None = None
    breach: Breach | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.job.name


@value(frozen=True)
class JobList:
    """The jobs that a filter means, in order. `counts` are those of all states, as if the filter named none."""

    jobs: Sequence[ListedJob]
    counts: Mapping[str, int]
    total: int

    @property
    def need_look(self) -> int:
        """How many need a look."""
        return sum(self.counts.get(state, 0) for state in _NEEDS_LOOK)

    def page(self, after: str, size: int) -> tuple[Sequence[ListedJob], int, bool]:
        """Return the jobs behind the one of this name, the place of the first, and whether more follow.

        A name that is no longer listed begins at the front.
        """
        places = (place for place, each in enumerate(self.jobs, 1) if each.name == after)
        begin = next(places, 0) if after else 0
        return self.jobs[begin : begin + size], begin, begin + size < len(self.jobs)


async def job_list(tick: Everytick, records: Iterable[JobRecord], wanted: JobFilter, now: datetime) -> JobList:
    """Return the jobs that the filter means."""
    under_way = await tick.history(status=[str(status) for status in ACTIVE], limit=_UNDER_WAY)
    newest: dict[str, Occurrence] = {}
    for occurrence in under_way:
        held = newest.get(occurrence.job_id)
        if held is None or _urgency(occurrence) > _urgency(held):
            newest[occurrence.job_id] = occurrence
    running = [id_ for id_, each in newest.items() if each.status is _S.RUNNING]
    usual = await tick.lengths(running) if running else {}
    store = await open_store(tick)
    broken = {each.job_id: each.breach for each in await store.ask(Breaches(is_open=True, limit=_BREACHES))}
    found = []
    for record in records if wanted.is_of_all else filter(wanted.means, records):
        id_ = record.job.id
        active, breach = newest.get(id_), broken.get(id_)
        state = job_state(record, active, now, usual.get(id_), is_broken=breach is not None)
        found.append((state, record, active, breach))
    counts: Counter[str] = Counter([state for state, *_ in found])
    places = [
        (*_place(state, record), ListedJob(record, state, active, breach))
        for state, record, active, breach in found
        if not wanted.state or state == wanted.state
    ]
    # Names differ, so that no two jobs are compared.
    return JobList([place[-1] for place in sorted(places)], counts, len(found))


def _urgency(occurrence: Occurrence) -> int:
    return (_S.QUEUED, _S.PENDING, _S.RUNNING, _S.AWAITING_RETRY).index(occurrence.status)


def _place(state: JobState, record: JobRecord) -> tuple[int, float, str]:
    """Return where a job stands: by need, then by what comes next."""
    coming = record.next_run
    return min(_RANKS[state], _LAST), _FAR if coming is None else coming.timestamp(), record.job.name


def job_state(
    record: JobRecord,
    active: Occurrence | None,
    now: datetime,
    usual: JobLengths | None = None,
    *,
    is_broken: bool = False,
) -> JobState:
    """Return the state of a job: what needs a look goes before what only is so."""
    grace = record.job.settings.grace
    if active is not None and active.status is _S.AWAITING_RETRY:
        return JobState.AWAITING_RETRY
    if has_failed(record):
        return JobState.FAILED
    if is_broken:
        return JobState.PROMISE_BROKEN
    if is_late(record, active, now, grace):
        return JobState.LATE
    if active is not None and overruns(active, usual, now):
        return JobState.OVERRUNNING
    if record.parked_reason is not None:
        return JobState.PARKED
    if active is not None and active.status is _S.RUNNING:
        return JobState.RUNNING
    if not record.job.enabled:
        return JobState.DISABLED
    if record.pause is not None:
        return JobState.PAUSED
    return JobState.NEVER_RAN if record.last_end is None else JobState.FINE


def has_failed(record: JobRecord) -> bool:
    """Whether its last run that counts failed. An attempt that failed before the last success is past."""
    failed, success = record.last_failure_at, record.last_success
    ended = record.last_end
    if failed is None or ended is None or failed > ended.ended_at:
        return False
    return success is None or failed > success.ended_at


def is_late(record: JobRecord, active: Occurrence | None, now: datetime, grace: timedelta) -> bool:
    """Whether a run waits longer than the job's grace, began late, or is due and no node has planned it."""
    if active is not None:
        waits = active.status in (_S.PENDING, _S.QUEUED)
        due = active.line_at or active.scheduled_for
        began_late = active.started_at is not None and active.started_at - due >= LATE_AFTER
        return began_late or (waits and now - due > grace)
    coming = record.next_run
    is_held = record.pause is not None or not record.job.enabled
    return coming is not None and not is_held and now - coming > grace
