"""Spreading: offsets within each job's own window that flatten the load of the fleet.

The load is how many runs are under way in each minute if every run takes as long as it usually does. A job is moved
only within its window, and every step keeps or lowers the load of the minutes that it touches: so the peak never rises.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from math import ceil

from everytick.domain.agenda import ProposedOffset, Spreading
from everytick.domain.job import Job
from everytick.domain.questions import JobLengths
from everytick.domain.schedule import Schedule, bound, is_on_request, waits_for_end
from everytick.domain.values import value
from everytick.schedules.combine import Combinable, Spread

MINUTE = timedelta(minutes=1)
_MOST_TRIED = 60
"""Most offsets that are tried for one job: every minute of an hour."""

_MOST_MINUTES = 24 * 60
"""A run counts for a day at most: a longer one is under way at every hour, wherever it begins."""

_MOST_OF_ONE = 2_016
"""Most instants of one job: every five minutes for a week. A job that starts more often loads all minutes alike."""

MOST_WORK = 1_000_000
"""Most runs that are placed on trial, about two seconds. Counted, not timed: the same jobs give the same answer."""


@value(frozen=True)
class Movable:
    """A job that may start up to `window` after each of its instants, and now starts `offset` after them.

    `instants` are without the offset. A job without a window has one of nothing, and stays.
    """

    name: str
    instants: Sequence[datetime]
    length: timedelta
    window: timedelta = timedelta(0)
    offset: timedelta = timedelta(0)


def spread(
    jobs: Iterable[Movable], start: datetime, through: datetime, *, enough: int = 1, work: int = MOST_WORK
) -> Spreading:
    """Propose an offset for each job that has a window, so that fewer runs are under way at once.

    The jobs that stand in the fullest minutes are moved first, and each to where its own minutes are least full;
    of equal places it takes the one nearest to where it is. A job is not moved out of minutes that have `enough`
    runs or fewer: each move is a change that a person has to read.
    """
    placed = [_Placed(job, start) for job in jobs]
    # The load ends later than the instants: what a job may move to the end of its window still counts.
    end = through + max((placed_job.job.window for placed_job in placed), default=timedelta(0))
    load = [0] * (max((end - start) // MINUTE, 0) + 1)
    for placed_job in placed:
        placed_job.lay(load, placed_job.job.offset, 1)
    before = tuple(load)
    movable = [placed_job for placed_job in placed if placed_job.job.window > MINUTE]
    movable.sort(
        key=lambda placed_job: (
            -placed_job.weight(load, placed_job.job.offset)[0],
            -placed_job.minutes,
            placed_job.job.name,
        )
    )
    moves, untried = [], 0
    for placed_job in movable:
        work -= placed_job.cost
        if work < 0:
            untried += 1
            continue
        placed_job.lay(load, placed_job.job.offset, -1)
        chosen = min(placed_job.choices(), key=partial(placed_job.weight, load, enough=enough))
        placed_job.lay(load, chosen, 1)
        if chosen != placed_job.job.offset:
            moves.append(ProposedOffset(placed_job.job.name, placed_job.job.offset, chosen))
    return Spreading(start, tuple(sorted(moves, key=lambda move: move.name)), before, tuple(load), untried)


class _Placed:
    """A job on the minutes of the load."""

    def __init__(self, job: Movable, start: datetime) -> None:
        self.job, self._start = job, start
        self.minutes = min(max(ceil(job.length / MINUTE), 1), _MOST_MINUTES)
        self._step = max(ceil(job.window / MINUTE / _MOST_TRIED), 1) * MINUTE
        # A minute more: at another offset a run may begin a minute earlier on the load.
        apart = (self.minutes + 1) * MINUTE
        self._overlaps_itself = any(after - before < apart for before, after in pairwise(job.instants))

    @property
    def cost(self) -> int:
        """How many runs are placed on trial to find its best offset."""
        return len(self.choices()) * len(self.job.instants)

    def choices(self) -> list[timedelta]:
        """Return the offsets to choose from: the present one, and steps of whole minutes within the window."""
        tried = (place * self._step for place in range(ceil(self.job.window / self._step)))
        return [self.job.offset, *(offset for offset in tried if offset != self.job.offset)]

    def lay(self, load: list[int], offset: timedelta, number: int) -> None:
        """Add the runs at this offset to the load, or take them away."""
        for first, last in self._spans(load, offset):
            for minute in range(first, last):
                load[minute] += number

    def weight(self, load: list[int], offset: timedelta, *, enough: int = 0) -> tuple[int, timedelta, timedelta]:
        """Return how full its fullest minute is with its runs at this offset, and how far that is from where it is."""
        if self._overlaps_itself:
            self.lay(load, offset, 1)
            fullest = self._fullest(load, offset)
            self.lay(load, offset, -1)
        else:
            fullest = self._fullest(load, offset) + 1
        return max(fullest, enough), abs(offset - self.job.offset), offset

    def _fullest(self, load: Sequence[int], offset: timedelta) -> int:
        return max((max(load[first:last]) for first, last in self._spans(load, offset)), default=0)

    def _spans(self, load: Sequence[int], offset: timedelta) -> Iterable[tuple[int, int]]:
        """Give the minutes of each run that lie within the load."""
        most = len(load)
        for instant in self.job.instants:
            first = (instant + offset - self._start) // MINUTE
            last = min(first + self.minutes, most)
            if 0 <= first < last:
                yield first, last


# ------------------------------------------------------------------------------------------------ jobs and schedules


def movable(
    job: Job,
    last_end: datetime | None,
    lengths: JobLengths | None,
    start: datetime,
    through: datetime,
    *,
    allow: timedelta | None = None,
) -> Movable | None:
    """Return the job with its instants in `(start, through]` and its window.

    The window is its `spread`. `allow` is the window of a job that names none, up to the time between two of its
    instants. Return None for a job without instants, one that follows an end, or one that starts so often that its
    load is even.
    """
    rule = job.schedule
    if is_on_request(rule) or waits_for_end(rule):
        return None
    inner = bound(rule.schedule if isinstance(rule, Spread) else rule, job.id, last_end)
    try:
        instants = inner.instants(start, through, _MOST_OF_ONE + 1)
    except Exception:  # noqa: BLE001, a schedule of a user's own may raise anything, and the other jobs still count
        return None
    if not instants or len(instants) > _MOST_OF_ONE:
        return None
    usual = timedelta(0) if lengths is None else lengths.p50
    window, offset = _window(rule, job.id, instants, allow)
    return Movable(job.name, tuple(instants), usual, window, offset)


def _window(
    rule: Schedule, job_id: str, instants: Sequence[datetime], allow: timedelta | None
) -> tuple[timedelta, timedelta]:
    """Return how far the instants may be moved, and how far they are."""
    if isinstance(rule, Spread):
        return rule.length, rule.offset_of(job_id)
    if allow is None or not isinstance(rule, Combinable):
        return timedelta(0), timedelta(0)
    apart = (after - before for before, after in pairwise(instants))
    return min([allow, *apart]) // MINUTE * MINUTE, timedelta(0)


def moved_schedule(job: Job, window: timedelta, offset: timedelta) -> Schedule:
    """Return the schedule of the job with this offset chosen in its window."""
    rule = job.schedule.schedule if isinstance(job.schedule, Spread) else job.schedule
    assert isinstance(rule, Combinable), f"{job.name} has a window, so its schedule can be moved"
    return rule.spread_over(window, offset)
