"""Zones as stretches of constant offset, read from `zoneinfo` and kept.

Inside this package a *wall* time is a datetime that says what the clock on the wall shows.
It carries `tzinfo=UTC` whatever its zone, because arithmetic and comparison of datetimes
that share one tzinfo are several times as fast as any other: a wall minus its stretch's
offset is the instant.
"""

import re
import zoneinfo
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from everytick.domain.durations import FIRST, LAST, Moment, moment
from everytick.errors import InvalidInstant, InvalidSchedule
from everytick.schedules.posix_zones import PREFIX, by_rule

if TYPE_CHECKING:
    from pathlib import Path

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)

_NAME = r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*"
# Files beside the zones that differ from machine to machine, or count leap seconds.
_NOT_ZONES = frozenset({"localtime", "posixrules", "Factory"})
_NOT_FOLDERS = ("posix/", "right/")


class Stretch:
    """A span of instants over which a zone keeps one offset.

    Wall times from `calm_from` until `calm_until` are far enough from both clock changes: from
    the first on, none was shown before and none was moved out of a gap; before the second,
    none is shown again.
    """

    __slots__ = ("calm_from", "calm_until", "end", "offset", "start", "wall_end", "wall_start")

    def __init__(self, start: datetime, end: datetime, offset: timedelta, before: timedelta, after: timedelta) -> None:
        self.start, self.end, self.offset = start, end, offset
        self.wall_start, self.wall_end = start + offset, end + offset
        self.calm_from = start + before if before > offset else self.wall_start
        if before < offset:
            # Wall times moved out of the gap fire at the first whole minute, up to a minute after the change.
            self.calm_from += timedelta(minutes=1)
        self.calm_until = min(self.wall_end, end + after)


ALWAYS_UTC = Stretch(FIRST, LAST, DAY * 0, DAY * 0, DAY * 0)


class Zone:
    """A time zone by its IANA name or its rule. Years are cut into stretches of constant offset when first needed."""

    __slots__ = ("_years", "info", "latest", "name")

    def __init__(self, name: str, info: tzinfo) -> None:
        self.name, self.info = name, info
        self._years: dict[int, tuple[datetime, tuple[Stretch, ...]]] = {}
        self.latest = self._find(datetime(2000, 1, 1, tzinfo=UTC))

    def take(self, info: tzinfo) -> None:
        """Use another edition of the same zone's table from now on."""
        self.info = info
        self._years.clear()
        self.latest = self._find(datetime(2000, 1, 1, tzinfo=UTC))

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Zone) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[object, ...]:
        if isinstance(self.info, timezone):
            return fixed, (self.info.utcoffset(None),)
        return zone, (self.name,)

    def stretch(self, instant: datetime) -> Stretch:
        """Return the stretch that holds this UTC instant."""
        # `Cron.next_after` reads `latest` too: most calls ask about the same season.
        latest = self.latest
        if latest.start <= instant < latest.end:
            return latest
        stretch = self.latest = self._find(instant)
        return stretch

    def before(self, stretch: Stretch) -> Stretch | None:
        """Return the stretch before this one, or None where the calendar begins."""
        return self._find(stretch.start - SECOND) if stretch.start > FIRST else None

    def after(self, stretch: Stretch) -> Stretch | None:
        """Return the stretch after this one, or None where the calendar ends."""
        return self._find(stretch.end) if stretch.end < LAST else None

    def wall(self, instant: datetime) -> datetime:
        """Return what the clock on the wall shows at a UTC instant."""
        return instant + self.stretch(instant).offset

    def resolve(self, wall: datetime) -> datetime:
        """Return the instant of a wall time: its first pass, or moved on by the gap it falls into."""
        return wall.replace(tzinfo=self.info, fold=0).astimezone(UTC)

    def _find(self, instant: datetime) -> Stretch:
        year = min(max(instant.year, FIRST.year), LAST.year)
        first, stretches = self._year(year)
        if instant < first and year > FIRST.year:
            first, stretches = self._year(year - 1)
        for stretch in stretches:
            if instant < stretch.end:
                return stretch
        return stretches[-1]

    def _year(self, year: int) -> tuple[datetime, tuple[Stretch, ...]]:
        changes = self._years.get(year)
        if changes is None:
            changes = self._years[year] = self._cut(year)
        return changes

    def _cut(self, year: int) -> tuple[datetime, tuple[Stretch, ...]]:
        """Cut a year into stretches by asking for its offset once a day.

        No zone has ever changed twice within three days; the sweep test says when that ends.
        """
        first, end = self._boundary(year), self._boundary(year + 1)
        cuts, offsets = [first], [self._offset(first)]
        at = first
        while at < end:
            following = min(at + DAY, end)
            if self._offset(following) != offsets[-1]:
                following = self._change(at, following)
                cuts.append(following)
                offsets.append(self._offset(following))
            at = following
        around = (offsets[0], *offsets, offsets[-1])
        return first, tuple(
            Stretch(start, stop, offset, before, after)
            for start, stop, offset, before, after in zip(
                cuts, (*cuts[1:], end), offsets, around, around[2:], strict=False
            )
        )

    def _boundary(self, year: int) -> datetime:
        """The year's first moment or a few days later: never near a change, so that none is cut apart."""
        at = datetime(min(year, LAST.year), 1, 1, tzinfo=UTC)
        if year > LAST.year:
            return LAST + SECOND
        while year > FIRST.year and self._offset(at - 2 * DAY) != self._offset(at + 2 * DAY):
            at += 5 * DAY
        return at

    def _change(self, low: datetime, high: datetime) -> datetime:
        """The first instant of the new offset, to the second."""
        old = self._offset(low)
        while high - low > SECOND:
            middle = low + (high - low) // (2 * SECOND) * SECOND
            low, high = (middle, high) if self._offset(middle) == old else (low, middle)
        return high

    def _offset(self, instant: datetime) -> timedelta:
        offset = instant.astimezone(self.info).utcoffset()
        assert offset is not None, f"{self.name} has no offset at {instant}"
        return offset


_known: dict[str, Zone] = {}
"""Every zone that was looked up, by its name. Schedules keep references to them."""


def use_packaged_zones() -> None:
    """Take every zone of this process from the tzdata package, also zones that schedules hold already."""
    zoneinfo.reset_tzpath(to=())
    ZoneInfo.clear_cache()
    for name, known in _known.items():
        if not name.startswith(PREFIX):
            known.take(ZoneInfo(name))


_LETTERS = {
    "ACDT": ("Australia/Adelaide",),
    "ACST": ("Australia/Adelaide", "Australia/Darwin"),
    "AEDT": ("Australia/Sydney",),
    "AEST": ("Australia/Sydney", "Australia/Brisbane"),
    "AKDT": ("America/Anchorage",),
    "AKST": ("America/Anchorage",),
    "AWST": ("Australia/Perth",),
    "BRT": ("America/Sao_Paulo",),
    "BST": ("Europe/London",),
    "CDT": ("America/Chicago",),
    "CEST": ("Europe/Berlin", "Europe/Paris"),
    "CST": ("America/Chicago", "Asia/Shanghai"),
    "EDT": ("America/New_York",),
    "EEST": ("Europe/Helsinki", "Europe/Athens"),
    "HKT": ("Asia/Hong_Kong",),
    "IST": ("Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"),
    "JST": ("Asia/Tokyo",),
    "KST": ("Asia/Seoul",),
    "MDT": ("America/Denver",),
    "MSK": ("Europe/Moscow",),
    "NZDT": ("Pacific/Auckland",),
    "NZST": ("Pacific/Auckland",),
    "PDT": ("America/Los_Angeles",),
    "PST": ("America/Los_Angeles",),
    "SAST": ("Africa/Johannesburg",),
    "SGT": ("Asia/Singapore",),
    "WEST": ("Europe/Lisbon",),
}
"""Letters that people take for a zone, with places whose clocks they name. MST, HST, EST, CET and so on are zones."""


@lru_cache(maxsize=1024)
def zone(name: str) -> Zone:
    """Return the zone of this IANA name; an unknown name is refused with the nearest known ones."""
    if name == "local":
        raise InvalidSchedule(name, "tz", "is this host's zone: give it as timezone to the job or the application")
    if name.startswith(PREFIX):
        return _by_rule(name)
    if len(name) > 100 or re.fullmatch(_NAME, name) is None or name in _NOT_ZONES or name.startswith(_NOT_FOLDERS):
        raise InvalidSchedule(name, "tz", "is not an IANA time zone name like Europe/Berlin")
    try:
        known_zone = _known[name] = Zone(name, ZoneInfo(name))
        return known_zone
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidSchedule(name, "tz", f"is not a known time zone{_place(name) or _near(name)}") from None


def _by_rule(name: str) -> Zone:
    try:
        known_zone = _known[name] = Zone(name, by_rule(name.removeprefix(PREFIX)))
    except (ValueError, OverflowError):
        raise InvalidSchedule(name, "tz", "is not a rule like posix:CET-1CEST,M3.5.0,M10.5.0/3") from None
    return known_zone


def zone_of(tz: object) -> Zone | None:
    """Return the zone that a user named: an IANA name, a `ZoneInfo` or `datetime.UTC`; None stays None."""
    if tz is None or isinstance(tz, Zone):
        return tz
    if isinstance(tz, ZoneInfo):
        tz = tz.key
    elif tz is UTC:
        tz = "UTC"
    if not isinstance(tz, str):
        raise InvalidSchedule(tz, "tz", "must be the IANA name of a time zone, like Europe/Berlin")
    return zone(tz)


def calendar_of(schedule: object, name: str) -> tzinfo:
    """Return the zone by whose calendar the days of a schedule begin and end: its own, or else that of this name."""
    tz = getattr(schedule, "tz", None)
    return (tz if isinstance(tz, Zone) else zone(name)).info


@lru_cache(maxsize=64)
def fixed(offset: timedelta) -> Zone:
    """Return a zone that keeps one offset for ever."""
    info = timezone(offset)
    return Zone(str(info), info)


def utc(instant: datetime) -> datetime:
    """Return an aware datetime in UTC; a naive one is refused, since it could be in any zone."""
    if instant.tzinfo is UTC:
        return instant
    if instant.utcoffset() is None:
        raise InvalidInstant(instant, "has no time zone: use datetime(..., tzinfo=UTC) or another zone")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if instant.year > 1 else datetime.min.replace(tzinfo=UTC)


class ZoneData(NamedTuple):
    """Which edition of the zone tables answers, and where it comes from: `system` or `package`."""

    version: str
    source: str


def zone_data() -> ZoneData:
    """Return the edition of the zone tables in use; nodes with different editions may disagree."""
    return _zone_data_in(tuple(zoneinfo.TZPATH))


@lru_cache(maxsize=8)
def _zone_data_in(folders: tuple[str, ...]) -> ZoneData:
    from pathlib import Path

    for folder in map(Path, folders):
        if (folder / "UTC").exists():
            return ZoneData(_system_version(folder), "system")
    from importlib.metadata import version

    import tzdata  # type: ignore[import-untyped,unused-ignore]

    return ZoneData(getattr(tzdata, "IANA_VERSION", version("tzdata")), "package")


def _system_version(folder: "Path") -> str:
    for name in ("tzdata.zi", "+VERSION"):
        try:
            with (folder / name).open(encoding="ascii") as file:
                return file.readline().removeprefix("# version ").strip()
        except (OSError, UnicodeDecodeError):
            continue
    return "unknown"


def _place(name: str) -> str:
    """Return the places whose clocks such letters name: they are no zone, and the nearest word is often another."""
    places = _LETTERS.get(name.upper())
    return "" if places is None else f" but the letters of one: name the place, like {' or '.join(places)}"


def _near(name: str) -> str:
    from difflib import get_close_matches
    from importlib import resources

    known = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    cities = {known_name.rsplit("/", 1)[-1].lower(): known_name for known_name in known}
    near = [*get_close_matches(name, known, n=2), *filter(None, [cities.get(name.rsplit("/", 1)[-1].lower())])]
    return f"; did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""


def read_moment(given: object, tz: Zone | None) -> tuple[Moment, Zone | None]:
    """Return a date and time as it stands in its zone, and that zone.

    A zone in brackets is the zone, and may not contradict `tz`. An offset is kept only
    where there is no zone, or where it names the second pass of a repeated wall time.
    """
    if isinstance(given, datetime):
        offset = given.utcoffset()
        if offset is None:
            raise InvalidInstant(given, "has no time zone: use datetime(..., tzinfo=UTC) or another zone")
        return placed(Moment(given.replace(tzinfo=None, fold=0), offset), tz), tz
    read = moment(given)
    if read.zone is not None:
        named = zone(read.zone)
        if tz is not None and tz != named:
            raise InvalidSchedule(given, "tz", f"is given twice: {named} in brackets and {tz}")
        tz = named
    return placed(Moment(read.wall, read.offset), tz), tz


def placed(moment: Moment, tz: Zone | None) -> Moment:
    """Return the same moment on the wall clock of the zone."""
    if tz is None or moment.offset is None:
        return moment
    instant = instant_of(moment, None)
    wall = tz.wall(instant)
    offset = None if tz.resolve(wall) == instant else wall - instant
    return Moment(wall.replace(tzinfo=None), offset)


def instant_of(moment: Moment, tz: Zone | None) -> datetime:
    """Return the instant of a moment; without offset or zone it is read as UTC."""
    wall = moment.wall.replace(tzinfo=UTC)
    try:
        if moment.offset is not None:
            instant = wall - moment.offset
        else:
            instant = wall if tz is None else tz.resolve(wall)
    except OverflowError:
        instant = datetime.min.replace(tzinfo=UTC)
    if not FIRST <= instant <= LAST:
        raise InvalidInstant(str(moment), "lies outside the years 2 to 9998")
    return instant
