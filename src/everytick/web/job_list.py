"""The list of jobs: the state of each, which of them a filter means, and the order in which they need a look.

It says the same as the page Now, since it is made from the same answers. Beside those it asks only for what is under
way, at most 1,000 occurrences: how long a retry waits stands there alone.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

from everytick.domain.statuses import ACTIVE, OccurrenceStatus
from everytick.domain.values import value
from everytick.web.job_troubles import late_runs, not_run, overrunning, unplanned

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from everytick.app import Everytick
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.promises import Breach
    from everytick.domain.questions import Glance
    from everytick.stores.base import JobRecord
    from everytick.web.known_jobs import MissedInstants
    from everytick.web.now_board import FleetState

_UNDER_WAY = 1_000
"""Most occurrences under way that are looked at. Those beyond are the oldest in line of jobs with many."""

_LONGEST_CHARACTERS = 200
"""How much of a typed filter is read."""

_FAR = float("inf")
_S = OccurrenceStatus


class JobState(StrEnum):
    """What stands out of a job, most urgent first. A job may be several of these: its state is the first of them."""

    FAILED = "failed"
    PROMISE_BROKEN = "promise_broken"
    LATE = "late"
    OVERRUNNING = "overrunning"
    PARKED = "parked"
    COMPLETED_WITH_ERRORS = "completed_with_errors"
    MISSED = "missed"
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
    JobState.COMPLETED_WITH_ERRORS,
    JobState.MISSED,
)
"""As on the page Now: a retry comes by itself, and needs no person yet."""
_HOLDS = (JobState.PAUSED, JobState.DISABLED)
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
    """A job of the list: its state, and all that it is beside that, most urgent first.

    `active` is its newest occurrence under way, `run` the one that is late or overruns. `breach` is the promise that it
    broke, `missed` what it missed, and `why` is why it is not run.
    """

    record: JobRecord
    facts: tuple[JobState, ...]
    active: Occurrence | None = None
    run: Glance | None = None
    breach: Breach | None = None
    missed: MissedInstants | None = None
    why: str = ""

    @property
    def state(self) -> JobState:
        """The most urgent fact."""
        return self.facts[0]

    @property
    def holds(self) -> tuple[JobState, ...]:
        """Whether it is paused or disabled, where that is not its state."""
        return tuple(fact for fact in self.facts[1:] if fact in _HOLDS)

    @property
    def name(self) -> str:
        """Its name."""
        return self.record.job.name


@value(frozen=True)
class JobList:
    """The jobs that a filter means, in order, each with its facts. `counts` are those of all states, as if the filter
    named none.

    A job counts in each of its facts. `need_look` is how many need a look, and `has_node` whether a node lives. What
    `standing_out` adds to a job is looked up when the job is shown: of ten thousand a page shows forty.
    """

    jobs: Sequence[tuple[JobRecord, tuple[JobState, ...]]]
    counts: Mapping[str, int]
    total: int
    need_look: int
    has_node: bool
    standing_out: StandingOut

    def page(self, after: str, size: int) -> tuple[Sequence[ListedJob], int, bool]:
        """Return the jobs behind the one of this name, the place of the first, and whether more follow.

        A name that is no longer listed begins at the front.
        """
        places = (place for place, (record, _) in enumerate(self.jobs, 1) if record.job.name == after)
        begin = next(places, 0) if after else 0
        shown = [self.standing_out.listed(record, facts) for record, facts in self.jobs[begin : begin + size]]
        return shown, begin, begin + size < len(self.jobs)


async def job_list(tick: Everytick, fleet: FleetState, wanted: JobFilter) -> JobList:
    """Return the jobs that the filter means."""
    under_way = await tick.history(status=[str(status) for status in ACTIVE], limit=_UNDER_WAY)
    newest: dict[str, Occurrence] = {}
    for occurrence in under_way:
        held = newest.get(occurrence.job_id)
        if held is None or _urgency(occurrence) > _urgency(held):
            newest[occurrence.job_id] = occurrence
    standing_out = StandingOut(fleet, newest)
    counts_of_facts: Counter[tuple[JobState, ...]] = Counter()
    places = []
    records: Iterable[JobRecord] = fleet.records.values()
    for record in records if wanted.is_of_all else filter(wanted.means, records):
        facts = standing_out.facts_of(record)
        counts_of_facts[facts] += 1
        if not wanted.state or wanted.state in facts:
            places.append((*_place(facts[0], record), record, facts))
    counts: Counter[str] = Counter()
    for facts, count in counts_of_facts.items():
        counts.update(dict.fromkeys(facts, count))
    needing = sum(count for facts, count in counts_of_facts.items() if facts[0] in _NEEDS_LOOK)
    # Names differ, so that no two jobs are compared.
    jobs = [(record, facts) for *_, record, facts in sorted(places)]
    return JobList(jobs, counts, counts_of_facts.total(), needing, bool(fleet.living), standing_out)


def _urgency(occurrence: Occurrence) -> int:
    return (_S.QUEUED, _S.PENDING, _S.RUNNING, _S.AWAITING_RETRY).index(occurrence.status)


def _place(state: JobState, record: JobRecord) -> tuple[int, float, str]:
    """Return where a job stands: by need, then by what comes next."""
    coming = record.next_run
    return min(_RANKS[state], _LAST), _FAR if coming is None else coming.timestamp(), record.job.name


class StandingOut:
    """What was found out about the jobs that stand out. Of ten thousand jobs nearly none does."""

    def __init__(self, fleet: FleetState, newest: Mapping[str, Occurrence]) -> None:
        self._newest, self._missed = newest, fleet.missed
        self._late, self._over = late_runs(fleet), overrunning(fleet)
        self._broken = {record.job_id: record.breach for record in fleet.breaches}
        self._why = {job.id: why for why, jobs in not_run(fleet).items() for job in jobs}
        by_status = {
            status: [id_ for id_, occurrence in newest.items() if occurrence.status is status]
            for status in (_S.AWAITING_RETRY, _S.RUNNING)
        }
        self._facts: dict[str, list[JobState]] = {}
        for state, ids in (
            (JobState.FAILED, fleet.bad),
            (JobState.PROMISE_BROKEN, self._broken),
            (JobState.LATE, {**self._late, **unplanned(fleet)}),
            (JobState.OVERRUNNING, self._over),
            (JobState.PARKED, self._why),
            (JobState.COMPLETED_WITH_ERRORS, fleet.with_errors),
            (JobState.MISSED, fleet.missed),
            (JobState.AWAITING_RETRY, by_status[_S.AWAITING_RETRY]),
            (JobState.RUNNING, by_status[_S.RUNNING]),
        ):
            for id_ in ids:
                self._facts.setdefault(id_, []).append(state)

    def facts_of(self, record: JobRecord) -> tuple[JobState, ...]:
        """Return what stands out of a job, most urgent first: at least one."""
        facts = list(self._facts.get(record.job.id, ()))
        if record.pause is not None:
            facts.append(JobState.PAUSED)
        if not record.job.enabled:
            facts.append(JobState.DISABLED)
        if facts:
            return tuple(facts)
        return _NEW if record.last_end is None else _FINE

    def listed(self, record: JobRecord, facts: tuple[JobState, ...]) -> ListedJob:
        """Return a job of the list."""
        id_ = record.job.id
        run = self._late[id_][0] if facts[0] is JobState.LATE and id_ in self._late else self._over.get(id_)
        return ListedJob(
            record,
            facts,
            self._newest.get(id_),
            run,
            self._broken.get(id_),
            self._missed.get(id_),
            self._why.get(id_, ""),
        )


_NEW, _FINE = (JobState.NEVER_RAN,), (JobState.FINE,)
