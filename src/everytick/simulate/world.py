"""Virtual time: the moments at which something happens, one after another, and what happens then.

A second, faster way: `_tick` beside `_plan`, for an idle job at its instant.
Price: `bench/simulate.py`, processor time for four days, 0.51 s with it and 0.90 without: 43 %.

At one moment endings come first, and each gives its slot to a run that is ready. Then come plans, then
the runs that are ready by them, by priority and age, as long as there are slots. During an outage nothing
is planned or started. A run that was under way is canceled or begins anew afterwards, as its job's
`on_orphan` says.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from everytick.deciding.plain_plans import plain_plan
from everytick.deciding.plan import plan_in_full
from everytick.domain.policies import OnOrphan
from everytick.domain.snapshots import PLAN_LIMIT
from everytick.domain.statuses import OccurrenceStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everytick.domain.decisions import Creation
    from everytick.simulate.gates import Gate
    from everytick.simulate.record import SimulationRecord
    from everytick.simulate.simulated_job import Run, SimulatedJob

Downtime = tuple[datetime, datetime]
"""From when through when no node runs."""

_S = OccurrenceStatus


# What happens at a moment, in the order in which it happens.
_END, _DOWN, _UP, _PLAN, _READY, _TELL, _OPEN = range(7)

_TOLD_EVERY = timedelta(hours=6)


class World:
    """All jobs on one node with a number of slots."""

    def __init__(
        self,
        simulated_jobs: Sequence[SimulatedJob],
        start: datetime,
        record: SimulationRecord,
        *,
        slots: int,
        outages: Sequence[Downtime] = (),
        limit: int = PLAN_LIMIT,
        tell: Callable[[datetime], None] | None = None,
        gate: Gate | None = None,
    ) -> None:
        self._gate = gate if gate is not None and gate.is_needed else None
        self._opens_at: datetime | None = None
        self._simulated_jobs, self._record, self._slots, self._limit = simulated_jobs, record, slots, limit
        self._moments: list[tuple[datetime, int, int, Any]] = []
        self._number = count()
        self._ready: list[Run] = []
        self._in_order = False
        """Whether ready occurrences are sorted by priority and age: only while there are fewer slots than those."""
        self._taken = 0
        self._is_down = False
        self._tell = tell
        self._through = start
        if tell is not None:
            self._at(start, _TELL, None)
        for simulated in simulated_jobs:
            simulated.wake_at = start
            self._at(start, _PLAN, simulated)
            for run in list(simulated.busy):
                self._known(run, start)
        for down, up in outages:
            self._at(down, _DOWN, None)
            self._at(up, _UP, None)

    def _known(self, run: Run, start: datetime) -> None:
        """Start an occurrence that runs when the simulation begins. It takes its whole length from now."""
        if run.is_running:
            run.is_running = False
            self._begin(run, start)
        else:
            self._is_ready(run, start)

    def run(self, through: datetime) -> None:
        """Simulate up to and including this moment."""
        self._through = through
        moments, plan_job, tick, end_run = self._moments, self._plan, self._tick, self._end
        while moments and moments[0][0] <= through:
            now = moments[0][0]
            while moments and moments[0][0] == now:
                _, kind, _, about = heappop(moments)
                # The innermost loop of a month: the two commonest kinds are dealt with here.
                if kind == _END:
                    if about.is_running and about.ends_at == now:
                        end_run(about, now, well=True)
                        # The slot goes to a ready occurrence first; the plan releases waiting ones after that.
                        if self._ready:
                            self._start(now)
                elif kind == _PLAN:
                    if about.wake_at == now and not self._is_down:
                        if about.upcoming == now and not about.busy and not about.waiting:
                            tick(about, now)
                        else:
                            plan_job(about, now)
                else:
                    self._happen(kind, about, now)
            if self._ready and not self._is_down:
                self._start(now)

    def _at(self, moment: datetime, kind: int, about: Any) -> None:
        heappush(self._moments, (moment, kind, next(self._number), about))

    def _happen(self, kind: int, about: Any, now: datetime) -> None:
        if kind == _READY:
            self._add(about)
        elif kind == _DOWN:
            self._go_down(now)
        elif kind == _UP:
            self._come_up(now)
        elif kind == _OPEN:
            # What waits for the end of a brake is looked at after all that happens at this moment.
            self._opens_at = None
        elif self._tell is not None:
            self._tell(now)
            self._at(now + _TOLD_EVERY, _TELL, None)

    def _is_ready(self, run: Run, now: datetime) -> None:
        """Start the run at its `ready_at`, or as soon as a slot is free after it."""
        if run.ready_at > now:
            self._at(run.ready_at, _READY, run)
        else:
            self._add(run)

    def _add(self, run: Run) -> None:
        if self._in_order:
            heappush(self._ready, run)
        else:
            self._ready.append(run)

    # ----------------------------------------------------------------------------------------------------- planning

    def _tick(self, simulated: SimulatedJob, now: datetime) -> None:
        """Create the run of one instant of an idle job without making its plan.

        The plan of the instant before was plain, and in a simulation no request comes that could change this one.
        """
        self._add(simulated.tick(self._through))
        self._record.created(simulated, now)
        if simulated.wake_at is not None:
            heappush(self._moments, (simulated.wake_at, _PLAN, next(self._number), simulated))

    def _plan(self, simulated: SimulatedJob, now: datetime) -> None:
        snapshot = simulated.snapshot(now)
        plain = plain_plan(snapshot, now)
        plan = plain or plan_in_full(snapshot, now, self._limit)
        before = list(simulated.busy) if plan.cancels or plan.cancels_before is not None else []
        for creation in plan.creations:
            self._create(simulated, creation, now)
        for id_ in plan.releases:
            if (released := simulated.release(id_)) is not None:
                self._is_ready(released, now)
        for ending in plan.endings:
            if simulated.drop(ending.id) is not None:
                self._record.dropped(simulated, ending.status, ending.why)
        for span in plan.spans:
            self._record.not_run(simulated, span.status, span.why, span.count)
        simulated.settle(plan, now)
        if plan.lifts:
            simulated.lift()
        # A job that is plain once stays so: requests, pauses and edits exist from the start or never.
        if simulated.upcoming is not None or (plain is not None and simulated.job.settings.grace):
            simulated.look_ahead(self._through)
        if simulated.wake_at is not None:
            simulated.wake_at = max(simulated.wake_at, now)
            self._at(simulated.wake_at, _PLAN, simulated)
        if plan.tells:
            for dependent in simulated.dependents:
                if dependent.waiting:
                    self._look_again(dependent, now)
        for run in before:
            # Their ends wake the job, as the plan has just said.
            if run.id in plan.cancels or (plan.cancels_before is not None and run.line_at < plan.cancels_before):
                self._cancel(run, now)

    def _create(self, simulated: SimulatedJob, creation: Creation, now: datetime) -> None:
        if creation.status not in (_S.PENDING, _S.QUEUED):
            self._record.not_run(simulated, creation.status, creation.why, 1)
            return
        self._record.created(simulated, creation.scheduled_for)
        run = simulated.enter(creation, now)
        if creation.status is _S.PENDING:
            self._is_ready(run, now)

    def _look_again(self, simulated: SimulatedJob, now: datetime) -> None:
        if simulated.wake_at is None or simulated.wake_at > now:
            simulated.wake_at = now
            self._at(now, _PLAN, simulated)

    # ------------------------------------------------------------------------------------------------------ running

    def _start_through(self, gate: Gate, now: datetime) -> None:
        """Start what limits, brakes and the share of late runs let start, by priority and age; the others wait."""
        waiting, self._ready = sorted(self._ready), []
        for run in waiting:
            if run not in run.simulated.busy or run.is_running:
                continue
            if self._taken < self._slots and gate.may_start(run, now):
                self._begin(run, now)
            else:
                self._ready.append(run)
        if self._ready:
            self._record.waits(len(self._ready), now)
            opens_at = gate.opens_at(now)
            if opens_at is not None and opens_at != self._opens_at:
                self._opens_at = opens_at
                self._at(opens_at, _OPEN, None)

    def _start(self, now: datetime) -> None:
        if self._gate is not None:
            self._start_through(self._gate, now)
            return
        ready = self._ready
        if not self._in_order and len(ready) > self._slots - self._taken:
            heapify(ready)
            self._in_order = True
        while ready and self._taken < self._slots:
            run = heappop(ready) if self._in_order else ready.pop()
            if run in run.simulated.busy and not run.is_running:
                self._begin(run, now)
        if ready:
            self._record.waits(len(ready), now)
        else:
            self._in_order = False

    def _begin(self, run: Run, now: datetime) -> None:
        run.begun_at, run.is_running = now, True
        if run.started_at is None:
            run.started_at = now
        self._taken += 1
        if self._gate is not None:
            self._gate.began(run)
        self._record.started(run, now, self._taken)
        simulated = run.simulated
        if simulated.is_too_long:
            self._record.timed_out(simulated)
        run.ends_at = ends_at = now + simulated.allowed
        heappush(self._moments, (ends_at, _END, next(self._number), run))

    def _end(self, run: Run, now: datetime, *, well: bool) -> None:
        run.is_running = False
        self._taken -= 1
        if self._gate is not None:
            self._gate.ended(run)
        simulated = run.simulated
        simulated.end(run, now, well=well and not simulated.is_too_long)
        self._record.ended(run, now)
        if simulated.awaits_ends:
            self._look_again(simulated, now)

    def _cancel(self, run: Run, now: datetime) -> None:
        self._record.canceled(run.simulated)
        if run.is_running:
            self._end(run, now, well=False)
        else:
            run.simulated.end(run, now, well=False)
            if run.simulated.awaits_ends:
                self._look_again(run.simulated, now)

    # ------------------------------------------------------------------------------------------------------ outages

    def _go_down(self, now: datetime) -> None:
        self._is_down = True
        for simulated in self._simulated_jobs:
            for run in [run for run in simulated.busy if run.is_running]:
                if simulated.job.settings.on_orphan is OnOrphan.FAIL:
                    self._cancel(run, now)
                else:
                    self._put_back(run, now)

    def _put_back(self, run: Run, now: datetime) -> None:
        """Let the run begin again once a node runs."""
        run.is_running = False
        self._taken -= 1
        if self._gate is not None:
            self._gate.ended(run)
        self._record.put_back(run, now)
        self._add(run)

    def _come_up(self, now: datetime) -> None:
        self._is_down = False
        for simulated in self._simulated_jobs:
            if simulated.wake_at is not None and simulated.wake_at <= now:
                simulated.wake_at = now
                self._at(now, _PLAN, simulated)
