"""The tables of the store in memory, and the indexes that make what is due cheap to find.

What an index holds follows from the rows' own facts. Facts that an index looks at are
changed here and nowhere else, so that none of them can get out of step.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, TypedDict, Unpack

from everytick.domain.config import Overrides, Unset
from everytick.domain.decisions import Creation, Span
from everytick.domain.job import Job
from everytick.domain.nodes import NodeFacts
from everytick.domain.notes import Log, Progress
from everytick.domain.occurrence import Attempt, Cause, Occurrence
from everytick.domain.payload import Payload
from everytick.domain.snapshots import Adjustment, Edition, Ended, PausedSpan, Request, Rescheduled
from everytick.domain.statuses import BUSY, AttemptStatus, OccurrenceStatus
from everytick.domain.steps import Rules, RunState, deadline
from everytick.stores.memory.ordered import Ordered, Place

_S = OccurrenceStatus


# ---------------------------------------------------------------------------------------------------------- the rows


@dataclass(slots=True, eq=False)
class AttemptRow:
    """One try at a task; its ids are computed when somebody asks."""

    status: AttemptStatus = AttemptStatus.PENDING
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None
    progress: Progress | None = None
    log: Log | None = None
    node: str | None = None

    def record(self, run_id: str, number: int) -> Attempt:
        """Return the record that people see."""
        return Attempt(
            run_id,
            number,
            self.status,
            self.started_at,
            self.ended_at,
            self.error,
            progress=self.progress,
            log=self.log,
            node=self.node,
        )


@dataclass(slots=True, eq=False)
class JobRow:
    """One job: its definitions, where its planning stands, the facts that wait for a plan, and its occurrences.

    `busy` and `waiting` are those that are not over, as they stand in line; `history` are all.
    `planned_woken` is the `woken` that the last plan had seen: where they differ, `wake_at` is when a verb woke it.
    `keys` holds of each key that somebody named how often it was used, and the newest call.
    """

    id: str
    name: str
    editions: list[Edition]
    watermark: datetime
    created_at: datetime
    needs: str
    revision: int = 1
    woken: int = 1
    planned_woken: int = 0
    wake_at: datetime | None = None
    next_run: datetime | None = None
    removed_at: datetime | None = None
    removed_by: str = ""
    retire_at: datetime | None = None
    undefined_since: datetime | None = None
    pauses: list[PausedSpan] = field(default_factory=list)
    adjustments: dict[datetime, Adjustment] = field(default_factory=dict)
    reschedule: Rescheduled | None = None
    requests: dict[tuple[Cause, str], Request] = field(default_factory=dict)
    keys: dict[tuple[Cause, str], tuple[int, int | None]] = field(default_factory=dict)
    versions: dict[int, tuple[Job, Rules]] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    last_end: Ended | None = None
    last_success: Ended | None = None
    other_success: Ended | None = None
    run_count: int = 0
    last_error: str | None = None
    narrowed_at: datetime | None = None
    plan_token: int | None = None
    parked_reason: str | None = None
    last_failure_at: datetime | None = None
    busy: Ordered["OccurrenceRow"] = field(default_factory=Ordered)
    waiting: Ordered["OccurrenceRow"] = field(default_factory=Ordered)
    history: Ordered["OccurrenceRow"] = field(default_factory=Ordered)

    @property
    def job(self) -> Job:
        """The newest definition."""
        return self.editions[-1].job

    def edition(self, version: int) -> Edition:
        """Return a version and since when it is in force: the first was there from the beginning."""
        job, _ = self.versions[version]
        return Edition(job, None if version == 1 else job.updated_at)

    def pause_at(self, now: datetime) -> PausedSpan | None:
        """Return the pause that holds the schedule now."""
        return next((pause for pause in self.pauses if pause.holds(now)), None)

    def was_told_after(self, moment: datetime) -> bool:
        """Whether its newest version, a pause, a resume or a reschedule was written at a later time than this."""
        told = [self.editions[-1].in_force_after, *(pause.told_at for pause in self.pauses)]
        if self.reschedule is not None:
            told.append(self.reschedule.made_at)
        return any(at is not None and at > moment for at in told)

    def is_out_of_service(self, now: datetime) -> bool:
        """Whether it is disabled, or removed for good: nothing of it is retried."""
        return not self.job.enabled or (self.retire_at is not None and self.retire_at <= now)

    def holds_back(self, cause: Cause, now: datetime) -> bool:
        """Whether nothing of this cause may start now: a pause holds the schedule, a disable everything."""
        return not self.job.enabled or (cause is Cause.SCHEDULE and self.pause_at(now) is not None)


@dataclass(slots=True, eq=False)
class NodeRow:
    """One node: when it was last heard of, how often, and what it said of itself; no beats say that it has left."""

    beat_at: datetime
    beats: int = 0
    facts: NodeFacts | None = None


Stand: TypeAlias = tuple[Ordered["OccurrenceRow"], Place]
"""An order in which an occurrence stands, and its place there."""


@dataclass(slots=True, eq=False)
class OccurrenceRow:
    """One occurrence: what it is about, where it stands, and what its owner needs to go on.

    `awaited` says that somebody waits for its end, which then wakes the job. `found` is the status
    that the last claim found, `node` the last node that ran it. The last three are kept by
    `Tables`: where it stands in its job's line, for a claim and for its report.
    """

    handle: int
    id: str
    job: JobRow
    made: Creation
    overrides: Overrides
    reason: str
    created_at: datetime
    line_at: datetime
    version: int
    status: OccurrenceStatus
    priority: int
    needs: str
    ready_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    owner: str | None = None
    fence: int = 0
    token: int = 0
    node: str | None = None
    found: OccurrenceStatus = _S.PENDING
    started_at: datetime | None = None
    error: str | None = None
    number: int = 0
    claimed_at: datetime | None = None
    lost: int = 0
    cancel: str | None = None
    superseded_by_next: bool = False
    report_due: bool = False
    awaited: bool = False
    execution_timeout: timedelta | None = None
    runs: dict[str, RunState] = field(default_factory=dict)
    attempts: dict[tuple[str, int], AttemptRow] = field(default_factory=dict)
    line: Ordered["OccurrenceRow"] | None = None
    turn: Stand | None = None
    report: Stand | None = None

    @property
    def is_unclaimed(self) -> bool:
        """Whether it needs a node and nothing but time; what is left of a disabled job waits until it is enabled."""
        idle = self.status is _S.PENDING or (self.status is _S.AWAITING_RETRY and self.owner is None)
        return idle and self.job.job.enabled

    @property
    def deadline_at(self) -> datetime | None:
        """When it is out of time, whatever was edited since its first claim."""
        return deadline(self.started_at, self.execution_timeout)

    @property
    def own_payload(self) -> Payload | None:
        """The payload that it was given, where it is not its job's."""
        given = self.overrides.get("payload") if self.overrides.items else None
        return None if isinstance(given, Unset) else given

    def record(self) -> Occurrence:
        """Return the record that people see."""
        made = self.made
        return Occurrence(
            id=self.id,
            job_id=self.job.id,
            version=self.version,
            scheduled_for=made.scheduled_for,
            status=self.status,
            cause=made.cause,
            late=made.late,
            covers_after=made.covers_after,
            covers_through=made.covers_through,
            line_at=self.line_at,
            ready_at=self.ready_at,
            owner=self.owner,
            fence=self.fence,
            started_at=self.started_at,
            ended_at=self.ended_at,
            error=self.error,
            overrides=self.overrides,
            replay_of=made.replay_of,
            reason=self.reason,
            created_at=self.created_at,
            updated_at=self.updated_at,
            node=self.node,
        )


# -------------------------------------------------------------------------------------------------------- the tables


class OccurrenceChanges(TypedDict, total=False):
    """What may change of an occurrence and be looked at by an index, or change along with it."""

    version: int
    status: OccurrenceStatus
    priority: int
    needs: str
    execution_timeout: timedelta | None
    ready_at: datetime
    owner: str | None
    fence: int
    token: int
    node: str | None
    started_at: datetime | None
    ended_at: datetime | None
    error: str | None
    updated_at: datetime
    claimed_at: datetime
    report_due: bool


class Tables:
    """Every row, and every order that a verb asks for.

    All that a node asks for by its scope is kept apart by needs: `wakes` are the jobs to look
    at by when, `ready` is what a node may claim, in order of its turn, `unripe` what waits for
    its `ready_at`, and `owed` are the ends whose report is due. `held` is what each node owns
    by handle. `needs` are the texts of needs that any job or occurrence has had. `asked` finds
    open requests by the id of what they ask for.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, JobRow] = {}
        self.names: dict[str, JobRow] = {}
        self.wakes: dict[str, Ordered[JobRow]] = defaultdict(Ordered)
        self.needs: dict[str, None] = {}
        self.occurrences: dict[str, OccurrenceRow] = {}
        self.asked: dict[str, dict[tuple[Cause, str], JobRow]] = defaultdict(dict)
        self.handles: dict[int, OccurrenceRow] = {}
        self.ready: dict[str, Ordered[OccurrenceRow]] = defaultdict(Ordered)
        self.unripe: dict[str, Ordered[OccurrenceRow]] = defaultdict(Ordered)
        self.held: dict[str, dict[int, OccurrenceRow]] = defaultdict(dict)
        self.owed: dict[str, Ordered[OccurrenceRow]] = defaultdict(Ordered)
        self.time = datetime.min.replace(tzinfo=UTC)

    # -------------------------------------------------------------------------------------------------------- jobs

    def add_job(self, row: JobRow) -> None:
        """Keep the job."""
        self.jobs[row.id] = self.names[row.name] = row
        self.needs.setdefault(row.needs)
        if row.wake_at is not None:
            self.wakes[row.needs].add((row.wake_at, row.id, row))

    def remove_job(self, row: JobRow) -> None:
        """Forget the job, which has no occurrence any more."""
        self.wake(row, None)
        for cause, key in list(row.requests):
            self.answer(row, cause, key)
        del self.jobs[row.id], self.names[row.name]

    def rename(self, row: JobRow, name: str) -> None:
        """Let the job be found by this name and no longer by its old one."""
        del self.names[row.name]
        row.name = name
        self.names[name] = row

    def ask(self, row: JobRow, request: Request) -> None:
        """Keep the request, behind the others."""
        key = request.cause, request.key
        row.requests[key] = request
        self.asked[request.occurrence_id(row.id)][key] = row

    def answer(self, row: JobRow, cause: Cause, key: str) -> Request | None:
        """Forget the request, if there is one, and return it."""
        request = row.requests.pop((cause, key), None)
        if request is not None:
            id_ = request.occurrence_id(row.id)
            del self.asked[id_][cause, key]
            if not self.asked[id_]:
                del self.asked[id_]
        return request

    def asked_for(self, occurrence_id: str) -> list[tuple[JobRow, Request]]:
        """Return the open requests for what has this id, oldest first: several may ask for one past instant."""
        found = self.asked.get(occurrence_id, {})
        return [(row, row.requests[key]) for key, row in found.items()]

    def wake(self, row: JobRow, at: datetime | None) -> None:
        """Let the job be looked at then; None says that nothing is to come."""
        if row.wake_at == at:
            return
        if row.wake_at is not None:
            self.wakes[row.needs].remove((row.wake_at, row.id, row))
        row.wake_at = at
        if at is not None:
            self.wakes[row.needs].add((at, row.id, row))

    def need(self, row: JobRow, needs: str) -> None:
        """Let the job be planned by nodes that meet this."""
        at = row.wake_at
        self.wake(row, None)
        row.needs = needs
        self.needs.setdefault(needs)
        self.wake(row, at)

    # ------------------------------------------------------------------------------------------------- occurrences

    def add(self, row: OccurrenceRow) -> None:
        """Keep the occurrence, which nobody owns yet."""
        self.occurrences[row.id] = self.handles[row.handle] = row
        self.needs.setdefault(row.needs)
        row.job.history.add((row.made.scheduled_for, row.id, row))
        line, turn = row.line, row.turn = self._line(row), self._turn(row)
        if line is not None:
            line.add((row.line_at, row.id, row))
        if turn is not None:
            turn[0].add(turn[1])

    def change(self, row: OccurrenceRow, **facts: Unpack[OccurrenceChanges]) -> None:
        """Let these facts of the occurrence be so from now on."""
        owner = row.owner
        for name, fact in facts.items():
            setattr(row, name, fact)
        self.needs.setdefault(row.needs)
        self._stand(row, self._line(row), self._turn(row), self._report(row))
        if row.owner != owner:
            if owner is not None:
                del self.held[owner][row.handle]
            if row.owner is not None:
                self.held[row.owner][row.handle] = row

    def own(self, row: OccurrenceRow, node: str, token: int, now: datetime) -> None:
        """Let the node own the occurrence, which was unclaimed, from now on."""
        row.found, row.status, row.owner, row.node = row.status, _S.RUNNING, node, node
        row.fence, row.token = row.fence + 1, token
        row.started_at, row.claimed_at, row.updated_at = row.started_at or now, now, now
        if row.turn is not None:
            _move(row.turn, None)
            row.turn = None
        self.held[node][row.handle] = row

    def end(
        self,
        row: OccurrenceRow,
        status: OccurrenceStatus,
        at: datetime,
        error: str | None,
        now: datetime,
        *,
        report_due: bool,
    ) -> None:
        """Let the occurrence be over: nobody owns it, and it stands in no line but that of the reports."""
        row.status, row.fence, row.ended_at, row.error, row.updated_at = status, row.fence + 1, at, error, now
        if row.owner is not None:
            del self.held[row.owner][row.handle]
            row.owner = None
        row.report_due = report_due
        self._stand(row, None, None, self._report(row) if report_due else None)

    def remove(self, row: OccurrenceRow) -> None:
        """Forget the occurrence, which nobody owns any more."""
        self._stand(row, None, None, None)
        row.job.history.remove((row.made.scheduled_for, row.id, row))
        del self.occurrences[row.id], self.handles[row.handle]

    def pass_time(self, now: datetime) -> None:
        """Let it be so late: what had to wait until now is ready, and stays so if the clock is set back."""
        self.time = now
        for row in [row for rows in self.unripe.values() for row in rows.through(now)]:
            self._stand(row, row.line, self._turn(row), row.report)

    def _line(self, row: OccurrenceRow) -> Ordered[OccurrenceRow] | None:
        """Return the part of its job's line that it belongs to."""
        if row.status in BUSY:
            return row.job.busy
        return row.job.waiting if row.status is _S.QUEUED else None

    def _turn(self, row: OccurrenceRow) -> Stand | None:
        """Return where it waits for a claim."""
        if not row.is_unclaimed:
            return None
        if row.ready_at > self.time:
            return self.unripe[row.needs], (row.ready_at, row.id, row)
        return self.ready[row.needs], (-row.priority, row.line_at, row.id, row)

    def _report(self, row: OccurrenceRow) -> Stand | None:
        """Return where it waits for its report to be delivered."""
        return (self.owed[row.needs], (row.ended_at, row.id, row)) if row.report_due else None

    def _stand(
        self, row: OccurrenceRow, line: Ordered[OccurrenceRow] | None, turn: Stand | None, report: Stand | None
    ) -> None:
        """Let the row stand there and nowhere else."""
        if row.line is not line:
            place = (row.line_at, row.id, row)
            _move(None if row.line is None else (row.line, place), None if line is None else (line, place))
            row.line = line
        if row.turn != turn:
            _move(row.turn, turn)
            row.turn = turn
        if row.report != report:
            _move(row.report, report)
            row.report = report


def _move(before: Stand | None, after: Stand | None) -> None:
    if before is not None:
        before[0].remove(before[1])
    if after is not None:
        after[0].add(after[1])
