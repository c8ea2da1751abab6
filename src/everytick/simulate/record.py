"""The results of a simulation: counts for each job, and how busy each quarter of an hour was.

Nothing grows with the number of runs but the quarters of an hour and the instants that jobs share.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everytick.domain.decisions import Why
    from everytick.domain.statuses import OccurrenceStatus
    from everytick.simulate.simulated_job import Run, SimulatedJob

QUARTER = timedelta(minutes=15)
"""Time zones differ by quarters of an hour: from quarters, the hours of any zone can be summed."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ON_TIME = timedelta(seconds=1)
"""A run that starts within a second counts as on time."""

_NOTHING = timedelta(0)


class JobTally:
    """The counts of one job's instants."""

    __slots__ = (
        "canceled", "created", "late", "lateness", "length", "name", "not_run", "runs", "timed_out", "worst",
        "worst_at",
    )  # fmt: skip

    def __init__(self, name: str, length: timedelta) -> None:
        self.name, self.length = name, length
        self.created = self.runs = self.late = self.canceled = self.timed_out = 0
        self.not_run: Counter[tuple[str, str]] = Counter()
        self.lateness, self.worst = _NOTHING, _NOTHING
        self.worst_at: datetime | None = None

    @property
    def overlaps(self) -> int:
        """How many instants were skipped because the job was busy."""
        return sum(number for (_, why), number in self.not_run.items() if why in ("overlap", "queue full"))

    @property
    def others(self) -> int:
        """How many instants were skipped or missed for any other reason."""
        return sum(self.not_run.values()) - self.overlaps


class SimulationRecord:
    """The counts of a simulation."""

    def __init__(self) -> None:
        self.tallies: dict[str, JobTally] = {}
        self.starts: Counter[int] = Counter()
        self.busy: defaultdict[int, timedelta] = defaultdict(timedelta)
        self.sharing: dict[datetime, list[str]] = {}
        self._alone: dict[datetime, str] = {}
        self.peak = self.longest_line = 0
        self.peak_at: datetime | None = None
        self.longest_line_at: datetime | None = None

    def know(self, simulated: SimulatedJob) -> None:
        """Begin to count for a job."""
        self.tallies[simulated.job.id] = simulated.tally

    def created(self, simulated: SimulatedJob, instant: datetime) -> None:
        """Count an occurrence that is to run, and the jobs that share its instant."""
        tally = simulated.tally
        tally.created += 1
        name = tally.name
        if instant in self.sharing:
            self.sharing[instant].append(name)
        elif (first := self._alone.setdefault(instant, name)) is not name:
            self.sharing[instant] = [first, name]

    def not_run(self, simulated: SimulatedJob, status: OccurrenceStatus, why: Why, number: int | None) -> None:
        """Count instants that do not run. A span without a number counts as one."""
        simulated.tally.not_run[str(status), str(why)] += 1 if number is None else number

    def dropped(self, simulated: SimulatedJob, status: OccurrenceStatus, why: Why) -> None:
        """Count an occurrence that was created and then superseded."""
        simulated.tally.not_run[str(status), str(why)] += 1

    def started(self, run: Run, now: datetime, taken: int) -> None:
        """Count a start, and how late it is."""
        tally = run.simulated.tally
        tally.runs += 1
        run.begun_in = quarter = (now - EPOCH) // QUARTER
        self.starts[quarter] += 1
        if taken > self.peak:
            self.peak, self.peak_at = taken, now
        late = now - run.ready_at
        if late > ON_TIME:
            tally.late += 1
            tally.lateness += late
            if late > tally.worst:
                tally.worst, tally.worst_at = late, now

    def ended(self, run: Run, now: datetime) -> None:
        """Count the time that a run took."""
        self._lay(run, now)

    def put_back(self, run: Run, now: datetime) -> None:
        """Count the time that a run took until its node stopped. It begins again later."""
        self._lay(run, now)

    def _lay(self, run: Run, now: datetime) -> None:
        """Add the time of a run to the quarters that it overlaps."""
        begun = run.begun_at
        assert begun is not None, f"{run.id} has ended and never began"
        first, last = run.begun_in, (now - EPOCH) // QUARTER
        if first == last:
            self.busy[first] += now - begun
            return
        self.busy[first] += EPOCH + (first + 1) * QUARTER - begun
        for quarter in range(first + 1, last):
            self.busy[quarter] += QUARTER
        self.busy[last] += now - (EPOCH + last * QUARTER)

    def waits(self, number: int, now: datetime) -> None:
        """Record how many ready occurrences have no slot."""
        if number > self.longest_line:
            self.longest_line, self.longest_line_at = number, now

    def canceled(self, simulated: SimulatedJob) -> None:
        """Count an occurrence that was canceled."""
        simulated.tally.canceled += 1

    def timed_out(self, simulated: SimulatedJob) -> None:
        """Count an occurrence that exceeds its timeout."""
        simulated.tally.timed_out += 1
