"""The agenda: which starts are planned in the coming days, which instants many jobs share, and what waits then.

It counts what schedules name. What overlap, recovery and limits make of an instant is decided when it comes.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heapreplace, nlargest
from itertools import chain

from everytick.domain.agenda import EPOCH, QUARTER, AgendaGroup, AgendaJob, Crowd, FleetAgenda, ZoneChange, alike
from everytick.domain.durations import MICROSECOND
from everytick.domain.job import Job
from everytick.domain.schedule import bound
from everytick.schedules.clock_changes import clock_changes
from everytick.schedules.timezones import Zone, zone

DAY, WEEK = timedelta(days=1), timedelta(days=7)
CLOCKS_AHEAD = timedelta(days=14)
"""How far ahead changes of the clock are looked for: people want to know of them a week before."""

_MOST_OF_ONE = 20_000
"""Most instants of one schedule that are listed: every 30 seconds for a week."""

_LONGEST_FOLD = timedelta(hours=3)
"""The most by which a clock has gone back in this century: on a viewer's clock a week may be so much longer."""

_DAY_QUARTERS = DAY // QUARTER
_LEAST_SHARED = 2
"""Fewest jobs that share an instant for it to be listed as a crowd."""

_MOST_CROWDS = 200


def agenda_of(
    jobs: Sequence[AgendaJob],
    now: datetime,
    *,
    slots: int,
    length: timedelta = WEEK,
    is_over: Callable[[], bool] = lambda: False,
) -> FleetAgenda:
    """Return the agenda of these jobs. Once `is_over` says so, the jobs that are left are not counted."""
    through = now + length
    groups: list[AgendaGroup] = []
    counted = 0
    for same in alike((planned.job, planned.last_end, planned) for planned in jobs if planned.job.enabled):
        if is_over():
            break
        counted += len(same)
        groups += _group(tuple(same), now, through + _LONGEST_FOLD)
    quarters, shared = _counted(groups, now, through)
    return FleetAgenda(
        now,
        through,
        slots,
        tuple(groups),
        quarters,
        tuple(_crowds(groups, shared, slots)),
        tuple(_zone_changes(groups, now, now + CLOCKS_AHEAD)),
        sum(planned.job.enabled for planned in jobs) - counted,
    )


def _group(same: tuple[AgendaJob, ...], now: datetime, through: datetime) -> Iterator[AgendaGroup]:
    first = same[0]
    try:
        instants = first.job.bound(first.last_end).instants(now, through, _MOST_OF_ONE + 1)
    except Exception:  # noqa: BLE001, a schedule of a user's own may raise anything, and the other jobs still count
        return
    if instants:
        yield AgendaGroup(same, tuple(instants[:_MOST_OF_ONE]), len(instants) > _MOST_OF_ONE)


def _counted(groups: Iterable[AgendaGroup], now: datetime, through: datetime) -> tuple[Counter[int], Counter[datetime]]:
    """Return how many starts each quarter of an hour has, and each instant that could be shared."""
    quarters, shared = Counter[int](), Counter[datetime]()
    for group in groups:
        paused = [planned for planned in group.jobs if planned.pause is not None]
        number = len(group.jobs) - len(paused)
        for instant in group.between(now, through):
            shared[instant] += number + sum(not planned.pauses(instant) for planned in paused) if paused else number
        for quarter, count in _estimated(group, through):
            quarters[quarter] += count * number
    for instant, count in shared.items():
        quarters[(instant - EPOCH) // QUARTER] += count
    return quarters, shared


def _estimated(group: AgendaGroup, through: datetime) -> Iterator[tuple[int, int]]:
    """Estimate the instants of a busy schedule in each quarter of an hour after the last listed one.

    If a whole day is listed, a quarter has as many as a day before: a job may be busy by day and not at night.
    """
    if not group.is_cut or group.instants[-1] >= through:
        return
    first, last = ((instant - EPOCH) // QUARTER for instant in (group.instants[0], group.instants[-1]))
    is_day_known = last - first > _DAY_QUARTERS
    begin = EPOCH + (last - _DAY_QUARTERS * is_day_known) * QUARTER
    looked_at = group.instants[bisect_left(group.instants, begin) :]
    known = Counter((instant - EPOCH) // QUARTER for instant in looked_at)
    end, rest = divmod(through - EPOCH, QUARTER)
    listed = known[last]
    for quarter in range(last, end + 1):
        known[quarter] = known[quarter - _DAY_QUARTERS] if is_day_known else round(QUARTER / group.apart)
        count = known[quarter] if quarter < end else round(known[quarter] * (rest / QUARTER))
        # The quarter of the last listed instant is listed in part.
        yield quarter, max(count - listed, 0) if quarter == last else count


# --------------------------------------------------------------------------------------------------------- crowds


def _crowds(groups: Sequence[AgendaGroup], shared: Mapping[datetime, int], slots: int) -> Iterator[Crowd]:
    """Give the instants that most jobs share, the fullest first.

    The same jobs meet again every hour or day: who waits is found out once for each set of jobs.
    """
    many = ((count, EPOCH - at, at) for at, count in shared.items() if count >= _LEAST_SHARED)
    paused = [[job for job in group.jobs if job.pause is not None] for group in groups]
    starting: dict[tuple[int, tuple[str, ...]], tuple[list[str], list[timedelta]]] = {}
    known: dict[object, tuple[tuple[str, ...], int, timedelta]] = {}
    for count, _, at in nlargest(_MOST_CROWDS, many):
        places = [place for place, group in enumerate(groups) if _names(group.instants, at)]
        key = tuple((place, tuple(job.job.id for job in paused[place] if job.pauses(at))) for place in places)
        if key not in known:
            parts = [starting.get(own) or starting.setdefault(own, _starting(groups[own[0]], at)) for own in key]
            names, lengths = (list(chain.from_iterable(some)) for some in zip(*parts, strict=True))
            known[key] = tuple(names), *waits(lengths, slots)
        yield Crowd(at, count, *known[key])


def _starting(group: AgendaGroup, at: datetime) -> tuple[list[str], list[timedelta]]:
    """Return the names and the usual lengths of the jobs of a group that start at an instant."""
    jobs = [job for job in group.jobs if not job.pauses(at)]
    return [job.job.name for job in jobs], [_usual(job) for job in jobs]


def _names(instants: Sequence[datetime], at: datetime) -> bool:
    place = bisect_left(instants, at)
    return place < len(instants) and instants[place] == at


def _usual(planned: AgendaJob) -> timedelta:
    return timedelta(0) if planned.lengths is None else planned.lengths.p50


def waits(lengths: Sequence[timedelta], slots: int) -> tuple[int, timedelta]:
    """Return how many of these runs wait if all start at once on free slots, and how long the last one waits.

    A run takes the slot that becomes free first. A length that is not known counts as nothing.
    """
    begins = timedelta(0)
    if len(lengths) <= slots or slots < 1:
        return 0, begins
    ends = list(lengths[:slots])
    heapify(ends)
    for length in lengths[slots:]:
        # Never sooner than the run before it: the last of them waits longest.
        begins = ends[0]
        heapreplace(ends, begins + length)
    return len(lengths) - slots, begins


# -------------------------------------------------------------------------------------------------- clock changes


def _zone_changes(groups: Sequence[AgendaGroup], now: datetime, through: datetime) -> Iterator[ZoneChange]:
    """Give the changes of the clock to come in the zones of these jobs, soonest first."""
    by_zone: dict[str, list[AgendaGroup]] = {}
    for group in groups:
        by_zone.setdefault(_zone_name(group.jobs[0].job), []).append(group)
    changes = [change for name, some in by_zone.items() if (change := _zone_change(zone(name), some, now, through))]
    yield from sorted(changes, key=lambda change: (change.at, change.zone))


def _zone_name(job: Job) -> str:
    tz = getattr(job.schedule, "tz", None)
    return tz.name if isinstance(tz, Zone) else job.settings.timezone


def _zone_change(place: Zone, groups: Sequence[AgendaGroup], now: datetime, through: datetime) -> ZoneChange | None:
    before = place.stretch(now)
    after = place.after(before) if before.end <= through else None
    if after is None or before.wall_end == after.wall_start:
        return None
    first, last = sorted((before.wall_end, after.wall_start))
    jobs: dict[tuple[str, str], tuple[str, ...]] = {}
    for group in groups:
        for effect in _effects(group.jobs[0].job, before.end):
            jobs[effect] = (*jobs.get(effect, ()), *(planned.job.name for planned in group.jobs))
    return ZoneChange(place.name, before.end, first, last, before.wall_end > after.wall_start, jobs)


def _effects(job: Job, at: datetime) -> list[tuple[str, str]]:
    """Return what a change of the clock does to the job, each with its rule."""
    changes = clock_changes(bound(job.schedule, job.id, None), at - MICROSECOND, at)
    return list(dict.fromkeys((change.what, change.rule) for change in changes))
