"""Cron: the wall times of an expression, carried into a zone under its daylight-saving policies.

A schedule is *wildcard* when its minute or hour begins with `*`; it then follows elapsed
time and fires exactly when the wall clock matches. Any other is *fixed-time*: under
`fire_after` what a gap skipped fires once right after it, and under `first` or `second` a
wall time that comes twice fires once.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from everytick.domain.durations import FIRST, LAST, MICROSECOND
from everytick.domain.values import value
from everytick.errors import CronExpressionInvalidError, InvalidSchedule, shown
from everytick.schedules.combine import Combinable, NeedsJob, chain, checked_limit, in_window, with_options
from everytick.schedules.cron_fields import hashed, is_hashed, normal
from everytick.schedules.cron_words import cron_words
from everytick.schedules.timezones import ALWAYS_UTC, DAY, Stretch, Zone, utc, zone_of
from everytick.schedules.wall_times import WallTimes, wall_times

FIRE_AFTER, SKIP = "fire_after", "skip"
FIRST_PASS, SECOND_PASS, BOTH = "first", "second", "both"
KINDS = {"vixie": "cron", "posix": "posix", "quartz": "quartz"}


def default_gap(dialect: str) -> str:
    """Return what a dialect does with wall times that a clock change skips."""
    return SKIP if dialect == "posix" else FIRE_AFTER


def default_fold(dialect: str) -> str:
    """Return what a dialect does with wall times that a clock change repeats."""
    return BOTH if dialect == "posix" else FIRST_PASS


class ClockChange(NamedTuple):
    """What a change of the clock did to a schedule, for people.

    `what` is moved, skipped, doubled or silenced; `wall` is the first wall time concerned,
    `instant` when it fired instead (moved) or when the clock changed.
    """

    what: str
    wall: datetime
    instant: datetime
    rule: str


def cron(
    expression: object,
    *,
    tz: object = None,
    dialect: str = "vixie",
    dst_gap: str | None = None,
    dst_fold: str | None = None,
    day_match: str = "or",
    start: object = None,
    end: object = None,
) -> Combinable:
    """Return the schedule of a cron expression.

    `dialect` is vixie (also called standard), posix or quartz; `tz` an IANA name; `start` and
    `end` bound when it is active. `dst_gap` and `dst_fold` say what happens when the clocks
    change, `day_match="and"` that day and weekday must both match.
    """
    dialect = {"standard": "vixie"}.get(dialect, dialect)
    for name, given, known in (
        ("dialect", dialect, tuple(KINDS)),
        ("dst_gap", dst_gap, (None, FIRE_AFTER, SKIP)),
        ("dst_fold", dst_fold, (None, FIRST_PASS, SECOND_PASS, BOTH)),
        ("day_match", day_match, ("or",) if dialect == "quartz" else ("or", "and")),
    ):
        if given not in known:
            choices = ", ".join(filter(None, known))
            raise InvalidSchedule(expression, name, f"must be {choices}, got {shown(given)}")
    text = normal(expression)
    kind = HashedCron if is_hashed(text, dialect) else Cron
    gap, fold = dst_gap or default_gap(dialect), dst_fold or default_fold(dialect)
    try:
        rule = kind(text, dialect, zone_of(tz), gap, fold, day_match)
    except CronExpressionInvalidError as error:
        # The message quotes what was written, not the form that is kept.
        raise CronExpressionInvalidError(expression, error.field, error.reason) from error.__cause__
    return in_window(rule, start, end)


@value
class Cron(Combinable):
    """The instants of a cron expression in a zone."""

    expression: str
    dialect: str
    tz: Zone | None
    dst_gap: str
    dst_fold: str
    day_match: str
    _wall_times: WallTimes = field(init=False, compare=False, repr=False)
    _zone: Zone | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_wall_times", wall_times(self.expression, self.dialect, self.day_match))
        object.__setattr__(self, "_zone", None if self.tz is None or self.tz.name == "UTC" else self.tz)

    def __str__(self) -> str:
        return with_options(
            f"{KINDS[self.dialect]}: {self.expression}",
            tz=self.tz,
            dst_gap=None if self.dst_gap == default_gap(self.dialect) else self.dst_gap,
            dst_fold=None if self.dst_fold == default_fold(self.dialect) else self.dst_fold,
            day_match=None if self.day_match == "or" else self.day_match,
        )

    def describe(self) -> str:
        """Say the rule in plain English."""
        return cron_words(self.expression, self.dialect, self.day_match) + self._zone_words()

    @property
    def never(self) -> bool:
        """Whether no date has ever matched or ever will."""
        return self._wall_times.never

    def in_zone(self, tz: Zone) -> "Cron":
        """Return the schedule in this zone, unless it has one of its own."""
        return self if self.tz is not None else replace(self, tz=tz)

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first instant later than `instant`, or None if there is none."""
        if instant.tzinfo is not UTC:
            instant = utc(instant)
        zone = self._zone
        if zone is None:
            return self._wall_times.after(instant)
        stretch = zone.latest
        if not stretch.start <= instant < stretch.end:
            if instant > LAST:
                return None
            instant = max(instant, FIRST)
            stretch = zone.stretch(instant)
        wall = instant + stretch.offset
        match = self._wall_times.after(wall)
        if match is not None and match < stretch.calm_until and wall >= stretch.calm_from:
            return match - stretch.offset
        return self._next_among_changes(zone, stretch, instant)

    def last_at(self, instant: datetime) -> datetime | None:
        """Return the last instant not later than `instant`, or None if there is none."""
        instant = utc(instant)
        zone = self._zone
        if zone is None:
            return self._wall_times.through(instant)
        if instant < FIRST:
            return None
        instant = min(instant, LAST)
        stretch = zone.stretch(instant)
        match = self._wall_times.through(instant + stretch.offset)
        if match is not None and stretch.calm_from <= match < stretch.calm_until:
            return match - stretch.offset
        return self._last_among_changes(zone, stretch, instant)

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
        """Return the instants in `(after, through]` in order, at most `limit` of them.

        Days without a clock change are listed at once: one midnight plus the day's times.
        """
        after, through = utc(after), utc(through)
        times = self._wall_times.times() if through - after > DAY and checked_limit(limit) > 100 else []
        if len(times) < 2:
            return chain(self, after, through, limit)
        instants: list[datetime] = []
        while limit is None or len(instants) < limit:
            instant = self.next_after(after)
            if instant is None or instant > through:
                break
            if instant > LAST - DAY:
                instants.append(instant)
                after = instant
                continue
            stretch = self._zone.stretch(instant) if self._zone else ALWAYS_UTC
            wall = instant + stretch.offset
            midnight = wall.replace(hour=0, minute=0, second=0)
            evening = midnight - stretch.offset + DAY - MICROSECOND
            if wall >= stretch.calm_from and midnight + DAY <= stretch.calm_until and evening <= through:
                base = midnight - stretch.offset
                instants += [base + time for time in times[bisect_left(times, wall - midnight) :]]
                after = evening
            else:
                instants.append(instant)
                after = instant
        return instants[:limit]

    def clock_changes(self, after: datetime, through: datetime) -> Iterator[ClockChange]:
        """Give what the clock changes in `(after, through]` do to this schedule, in order."""
        zone = self._zone
        stretch = zone.stretch(min(max(utc(after), FIRST), LAST)) if zone else None
        while zone and stretch and stretch.end <= utc(through):
            before, stretch = stretch, zone.after(stretch)
            if stretch is not None and before.wall_end != stretch.wall_start:
                change = self._change(before, stretch)
                if change is not None:
                    yield change

    def _next_among_changes(self, zone: Zone, stretch: Stretch, instant: datetime) -> datetime | None:
        """Return the next instant where a clock change is near: go from stretch to stretch."""
        moved = self._moved_to(zone.before(stretch), stretch)
        if moved is not None and moved > instant:
            return moved
        match = self._wall_times.after(instant + stretch.offset)
        while match is not None:
            if match < stretch.wall_end:
                resume = self._silent_until(zone, stretch, match)
                if resume is None:
                    return match - stretch.offset
                match = self._wall_times.after(resume - MICROSECOND)
                continue
            before, following = stretch, zone.after(stretch)
            if following is None:
                return None
            stretch = following
            if match < stretch.wall_start:
                if self._moves:
                    return self._first_whole(stretch)
                match = self._wall_times.after(stretch.wall_start - MICROSECOND)
            elif stretch.wall_start < before.wall_end:
                match = self._wall_times.after(stretch.wall_start - MICROSECOND)
        return None

    def _last_among_changes(self, zone: Zone, stretch: Stretch, instant: datetime) -> datetime | None:
        wall = instant + stretch.offset
        while True:
            match = self._wall_times.through(wall)
            if match is not None and match >= stretch.wall_start:
                resume = self._silent_from(zone, stretch, match)
                if resume is None:
                    return match - stretch.offset
                wall = resume - MICROSECOND
                continue
            before = zone.before(stretch)
            moved = self._moved_to(before, stretch)
            if moved is not None and moved <= instant:
                return moved
            if before is None or (match is None and before.wall_end <= stretch.wall_start):
                return None
            stretch, wall = before, before.wall_end - MICROSECOND

    @property
    def _moves(self) -> bool:
        return self.dst_gap == FIRE_AFTER and not self._wall_times.wildcard

    @property
    def _silences(self) -> bool:
        return self.dst_fold != BOTH and not self._wall_times.wildcard

    def _moved_to(self, before: Stretch | None, stretch: Stretch) -> datetime | None:
        """Return when wall times that the gap before this stretch skipped fire, or None if none does."""
        if before is None or before.wall_end >= stretch.wall_start or not self._moves:
            return None
        skipped = self._wall_times.after(before.wall_end - MICROSECOND)
        return self._first_whole(stretch) if skipped is not None and skipped < stretch.wall_start else None

    def _first_whole(self, stretch: Stretch) -> datetime:
        """The first whole minute (quartz: second) that the wall clock shows in a stretch."""
        return stretch.start + (FIRST - stretch.wall_start) % self._wall_times.unit

    def _silent_until(self, zone: Zone, stretch: Stretch, wall: datetime) -> datetime | None:
        """The wall time until which this pass of a repeated hour stays silent, or None if it does not."""
        if not self._silences:
            return None
        if self.dst_fold == FIRST_PASS:
            before = zone.before(stretch)
            return before.wall_end if before is not None and wall < before.wall_end else None
        following = zone.after(stretch)
        return stretch.wall_end if following is not None and wall >= following.wall_start else None

    def _silent_from(self, zone: Zone, stretch: Stretch, wall: datetime) -> datetime | None:
        """The wall time from which this pass of a repeated hour is silent, or None if it is not."""
        if self._silent_until(zone, stretch, wall) is None:
            return None
        if self.dst_fold == FIRST_PASS:
            return stretch.wall_start
        following = zone.after(stretch)
        assert following is not None, "a second pass is in a later stretch"
        return following.wall_start

    def _change(self, before: Stretch, stretch: Stretch) -> ClockChange | None:
        low, high = sorted((before.wall_end, stretch.wall_start))
        wall = self._wall_times.after(low - MICROSECOND)
        if wall is None or wall >= high:
            return None
        naive = wall.replace(tzinfo=None)
        if before.wall_end < stretch.wall_start:
            if self._moves:
                return ClockChange("moved", naive, self._first_whole(stretch), "dst_gap=fire_after")
            rule = "follows elapsed time" if self._wall_times.wildcard else "dst_gap=skip"
            return ClockChange("skipped", naive, stretch.start, rule)
        if self._silences:
            return ClockChange("silenced", naive, stretch.start, f"dst_fold={self.dst_fold}")
        rule = "follows elapsed time" if self._wall_times.wildcard else "dst_fold=both"
        return ClockChange("doubled", naive, stretch.start, rule)


@value
class HashedCron(NeedsJob, Cron):
    """A cron expression with `H`: it has instants once it knows its job."""

    def bound(self, job_id: str, last_end: datetime | None = None) -> Cron:
        """Return the schedule with this job's numbers in place of `H`."""
        return _numbered(self, job_id)

    @property
    def _needs(self) -> str:
        return "H takes its number from the job's id; ask bound(job_id)"


@lru_cache(maxsize=4096)
def _numbered(schedule: HashedCron, job_id: str) -> Cron:
    return Cron(
        hashed(schedule.expression, job_id),
        schedule.dialect,
        schedule.tz,
        schedule.dst_gap,
        schedule.dst_fold,
        schedule.day_match,
    )
