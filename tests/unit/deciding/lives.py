"""Occurrences that live in a test: one event after another, and every step held to what all steps promise."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from everytick.deciding.advance import advance, advance_in_full
from everytick.domain.durations import duration
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.occurrence import occurrence_of
from everytick.domain.outcome import Failed, Lost, Outcome, Succeeded
from everytick.domain.report import Report
from everytick.domain.statuses import ENDED, RUN_ENDED, OccurrenceStatus, RunStatus, may_move
from everytick.domain.steps import (
    NOT_STARTED,
    AttemptEnded,
    CancelRequested,
    Claimed,
    LifeEvent,
    OccurrenceEnd,
    OccurrenceHeader,
    OccurrenceLife,
    RunState,
    Step,
    WaitOver,
    deadline_of,
    header_of,
    life_of,
    rules_of,
)
from everytick.schedules.interval import every

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
BOOM = Failed("boom", ("builtins.ValueError", "builtins.Exception"))
DONE = Succeeded()

Tasks = Mapping[str, Mapping[str, object]]


def job(tasks: Tasks | str = "a", **policies: object) -> Job:
    """A job of these tasks; `after` among a task's policies is its `after`."""
    written: Tasks = {name: {} for name in tasks.split()} if isinstance(tasks, str) else tasks
    definitions = []
    for name, own in written.items():
        rest = {key: setting for key, setting in own.items() if key != "after"}
        definitions.append(define_task("etl", name, after=own.get("after", ()), policies=rest))
    return define_job("etl", every("1h"), policies=policies, tasks=definitions)


class Life:
    """One occurrence: its header, its owner's state, and beside it what a store would know from the committed rows."""

    def __init__(self, definition: Job, **known: Any) -> None:
        ready = replace(occurrence_of(definition, NOON), ready_at=NOON)
        self.rules = rules_of(definition)
        headings = {name: known.pop(name) for name in ("is_recovery_run", "found") if name in known}
        self.header = replace(header_of(ready, self.rules), **headings)
        self.state = replace(life_of(ready, self.rules), **known)
        self.stored = self.state
        self.now = NOON
        self.steps: list[Step] = []

    @property
    def status(self) -> OccurrenceStatus:
        return self.state.status

    @property
    def open(self) -> dict[str, int]:
        """The attempts that are open, by task."""
        pairs = zip(self.rules.tasks, self.state.runs, strict=True)
        return {task.name: run.attempts for task, run in pairs if run.status is RunStatus.RUNNING}

    def run(self, task: str) -> RunState:
        """Return where the task stands for the owner."""
        return self.state.runs[self.rules.places[task]]

    def report(self, **known: Any) -> Report:
        """Return the report that the store could tell."""
        return OccurrenceEnd(self.header, self.stored).report(**known)

    def statuses(self) -> dict[str, str]:
        return {task.name: str(run.status) for task, run in zip(self.rules.tasks, self.state.runs, strict=True)}

    def pass_time(self, length: timedelta | str) -> None:
        self.now += duration(length)

    def take(self, event: LifeEvent) -> Step:
        """Advance by one event, hold the step to its promises and commit it."""
        before = self.state
        step = advance(self.header, before, event, self.now)
        assert step == advance(self.header, before, event, self.now), "the same question has one answer"
        assert step == advance_in_full(self.header, before, event, self.now), (
            "what is plain is said sooner, and no other thing"
        )
        if isinstance(event, Claimed) and before.status not in ENDED:
            self._claim()
        check(self.header, before, step, event, self.now)
        if isinstance(event, CancelRequested):
            # The store writes the request; the owner only hears of it.
            self.stored = replace(self.stored, cancel=step.after.cancel)
        self.steps.append(step)
        self.state = step.after
        self._commit(step)
        self._compare_what_is_open()
        return step

    def claim(self) -> Step:
        return self.take(Claimed())

    def end(self, task: str, outcome: Outcome = DONE) -> Step:
        """The open attempt of the task ends."""
        return self.take(AttemptEnded(task, self.open[task], outcome))

    def fail(self, task: str) -> Step:
        return self.end(task, BOOM)

    def wait_over(self, task: str) -> Step:
        """The wait of the task passes, and its owner says so."""
        until = self.run(task).resume_at
        assert until is not None
        self.now = max(self.now, until)
        return self.take(WaitOver(task))

    def claim_again(self) -> Step:
        """A node claims it as soon as it is ready."""
        assert not self.state.is_owned
        assert self.state.ready_at is not None
        self.now = max(self.now, self.state.ready_at)
        self.state = self.stored
        return self.claim()

    def _claim(self) -> None:
        known = self.stored
        self.stored = replace(
            known,
            status=OccurrenceStatus.RUNNING,
            is_owned=True,
            started_at=known.started_at or self.now,
            claimed_at=self.now,
        )

    def _commit(self, step: Step) -> None:
        """Write what a store writes: the rows, and the occurrence's own columns."""
        if not step.commits:
            return
        runs = list(self.stored.runs)
        for row in step.rows:
            runs[self.rules.places[row.task]] = row.run
        after = step.after
        self.stored = replace(after, runs=tuple(runs), expired=False, stop=None)

    def _compare_what_is_open(self) -> None:
        """A reaper that knows only the store ends exactly the attempts that the owner had open (Intent first)."""
        if self.state.status is not OccurrenceStatus.RUNNING:
            return
        owners = replace(self.state, expired=False, stop=None)
        reapers = replace(self.stored, cancel=self.state.cancel)
        assert lost(self.header, owners, self.now) == lost(self.header, reapers, self.now)
        assert {task: number for task, number, *_ in lost(self.header, owners, self.now)} == self.open


def lost(header: OccurrenceHeader, life: OccurrenceLife, now: datetime) -> list[tuple[str, int, str, str | None]]:
    rows = advance(header, life, Lost(), now).rows
    return [(row.task, row.number, str(row.run.status), row.run.because_of) for row in rows if row.attempt == "lost"]


def check(header: OccurrenceHeader, before: OccurrenceLife, step: Step, event: LifeEvent, now: datetime) -> None:
    """Hold one step to everything that every step promises."""
    after = step.after
    assert step.number == before.number + 1
    assert after.number == (step.number if step.commits else before.number)
    assert (step.end is not None) + (step.resume_at is not None) + step.release <= 1
    assert len({row.task for row in step.rows}) == len(step.rows), "one row a task"
    if step == Step(step.number, before):
        return
    assert before.status not in ENDED, "nothing happens after the end"
    check_occurrence(header, before, step, event)
    check_starts(header, before, step, now)
    written = {row.task: row.run for row in step.rows}
    for task, old, new in zip(header.rules.tasks, before.runs, after.runs, strict=True):
        check_run(old, written.get(task.name), new)
    for row in step.rows:
        assert row.number <= after.runs[header.rules.places[row.task]].attempts
        assert (row.number == 0) == (row.attempt is None)
        ended = row.attempt is not None and row.attempt != "running"
        assert (row.ended_at == now) == ended
        assert row.started_at is None or row.started_at <= now
        assert (row.started_at is None) == (row.attempt is None)
    told = {cancel.task: cancel.number for cancel in step.cancels}
    assert all(after.runs[header.rules.places[task]].status is RunStatus.RUNNING for task in told)
    assert all(after.runs[header.rules.places[task]].attempts == number for task, number in told.items())


def check_occurrence(header: OccurrenceHeader, before: OccurrenceLife, step: Step, event: LifeEvent) -> None:
    after = step.after
    claimed = OccurrenceStatus.RUNNING if isinstance(event, Claimed) else before.status
    assert claimed is before.status or may_move(before.status, claimed)
    assert after.status is claimed or may_move(claimed, after.status), f"{claimed} → {after.status}"
    assert (step.end is not None) == (after.status in ENDED)
    assert step.release == (after.status is OccurrenceStatus.PENDING)
    open_ = [run for run in after.runs if run.status is RunStatus.RUNNING]
    waiting = [run.resume_at for run in after.runs if run.resume_at is not None]
    assert bool(open_) == (after.status is OccurrenceStatus.RUNNING)
    assert after.is_owned == (after.status is OccurrenceStatus.RUNNING or (bool(waiting) and held_wait(step)))
    if after.status is OccurrenceStatus.AWAITING_RETRY:
        assert after.ready_at == min(waiting)
        assert step.resume_at in (None, after.ready_at)
    if step.end is not None:
        assert (step.end.status, step.end.error) == (after.status, after.error)
        report = step.end.report()
        assert [task.name for task in report.tasks] == [task.name for task in header.rules.tasks]
        assert all(run.status in RUN_ENDED for run in after.runs)
        assert all(run.ended_at is not None for run in after.runs)


def held_wait(step: Step) -> bool:
    return step.after.status is OccurrenceStatus.AWAITING_RETRY and step.resume_at is None


def check_starts(header: OccurrenceHeader, before: OccurrenceLife, step: Step, now: datetime) -> None:
    after = step.after
    if before.cancel is not None or before.expired or before.stop is not None or after.status in ENDED:
        assert step.starts == ()
    if step.starts and (until := deadline_of(header, after)) is not None:
        assert now < until, "nothing starts at or after the deadline"
    for start in step.starts:
        run, old = after.runs[header.rules.places[start.task]], before.runs[header.rules.places[start.task]]
        assert run.status is RunStatus.RUNNING
        assert (run.attempts, run.attempt_started_at) == (start.number, now)
        assert start.number == old.attempts + 1, "attempts have no holes"
    for wait in step.waits:
        run = after.runs[header.rules.places[wait.task]]
        assert (run.attempts + 1, run.resume_at) == (wait.number, wait.until)


def check_run(old: RunState, written: RunState | None, new: RunState) -> None:
    steps = [old.status, *([] if written is None else [written.status]), new.status]
    for from_, to in pairwise(steps):
        assert from_ is to or may_move(from_, to), f"{from_} → {to}"
    assert old.attempts <= new.attempts <= old.attempts + 1
    assert (new.ended_at is not None) == (new.status in RUN_ENDED)
    assert new.resume_at is None or new.status is RunStatus.PENDING
    assert (new.attempt_started_at is not None) == (new.status is RunStatus.RUNNING)
    assert new.attempts or new.status is RunStatus.SKIPPED or new == NOT_STARTED or new.resume_at is not None
