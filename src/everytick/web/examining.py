"""What a schedule means, for the lab: words, fields, instants around now, clock changes, other dialects.

Nothing is stored and no store is asked. Everything is bounded: no text costs more than some milliseconds.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from everytick.domain.durations import Period
from everytick.domain.values import value
from everytick.errors import EverytickError, InvalidSchedule, UnboundSchedule
from everytick.schedules.cron import Cron
from everytick.schedules.cron_words import field_words
from everytick.schedules.interval import Interval
from everytick.web.dialects import Elsewhere, elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everytick.domain.schedule import Schedule
    from everytick.schedules.timezones import Stretch, Zone

MOST_CHARACTERS = 500
MOST_INSTANTS = 12_000
NEXT, BEFORE = 7, 4
_FARTHEST = timedelta(days=366 * 40)
"""Instants further away from now than this are not shown, but for the first one."""

_YEAR = timedelta(days=365.2425)
_WEEK = timedelta(days=7)
_HOUR, _MICROSECOND = timedelta(hours=1), timedelta(microseconds=1)
_MOST_MARKS = 24
_EXAMPLE_JOB = "example"


@value(frozen=True)
class SchedulePart:
    """A part of a schedule: its text, what it is called, and what it says."""

    text: str
    name: str
    said: str


@value(frozen=True)
class ChangeMark:
    """An instant near a clock change, as a share of the picture, and whether the schedule names it."""

    at: float
    wall: datetime
    runs: bool


@value(frozen=True)
class ClockPicture:
    """The hours around a change of the clock. `hours` are the wall times at which the hours of the picture begin.

    `is_fold` says that the clock goes back, and `changed` where in the picture it does.
    """

    on: datetime
    is_fold: bool
    first: datetime
    last: datetime
    hours: tuple[datetime, ...]
    changed: float
    marks: tuple[ChangeMark, ...]
    said: str


@value(frozen=True)
class Examined:
    """A schedule as the lab shows it."""

    schedule: Schedule
    text: str
    words: str
    zone: str
    info: object
    parts: tuple[SchedulePart, ...]
    following: tuple[datetime, ...]
    former: tuple[datetime, ...]
    a_year: int
    is_estimate: bool
    week: tuple[tuple[int, ...], ...]
    is_week_cut: bool
    changes: tuple[ClockPicture, ...]
    change_note: str
    dialects: tuple[Elsewhere, ...]
    note: str = ""
    is_cron: bool = False
    dst_fold: str = ""
    dst_gap: str = ""


def read_expression(text: str, *, dialect: str = "cron", zone: str = "UTC", fold: str = "", gap: str = "") -> Schedule:
    """Return the schedule that was typed. Raise `InvalidSchedule` with what is wrong, and why."""
    from everytick.app.text_reading import in_zone
    from everytick.schedules.codec import schedule

    typed = text.strip()
    if not typed:
        raise InvalidSchedule(text, "text", "is empty: type a schedule, like 30 2 * * 1-5 or every 90m")
    if len(typed) > MOST_CHARACTERS:
        raise InvalidSchedule(text[:40], "text", f"must have at most {MOST_CHARACTERS} characters here")
    is_bare = not typed.startswith(("(", "R", "every ", "on request")) and ":" not in typed.partition(";")[0]
    if dialect in ("posix", "quartz") and is_bare:
        typed = f"{dialect}: {typed}"
    found: Schedule = schedule(typed)
    if isinstance(found, Cron) and fold in ("first", "second", "both"):
        found = replace(found, dst_fold=fold)
    if isinstance(found, Cron) and gap in ("fire_after", "skip"):
        found = replace(found, dst_gap=gap)
    return in_zone(found, zone)


def examine(given: Schedule, now: datetime, zone: Zone) -> Examined:
    """Return what the lab shows of a schedule. `zone` is that of its instants, where it has none of its own."""
    from everytick.domain.schedule import is_on_request, waits_for_end

    own = getattr(given, "tz", None) or zone
    rule, note = _bound(given)
    crons = list(_crons(given))
    main = crons[0] if crons else None
    is_open = waits_for_end(given) or is_on_request(given)
    parts_in = max(len(list(_leaves(given))), 1)
    most = max(MOST_INSTANTS // parts_in, 200)
    following = () if is_open else tuple(_following(rule, now))
    former = () if is_open else tuple(_former(rule, now))
    a_year, is_estimate = (0, False) if is_open else _a_year(rule, now, most)
    week, is_cut = ((((0,) * 24,) * 7), False) if is_open else _week(rule, now, own, most)
    changes = () if is_open else tuple(_changes(rule, crons, own, now))
    bound_cron = _bound(main)[0] if main is not None else None
    return Examined(
        schedule=given,
        text=str(given),
        words=given.describe(),
        zone=own.name,
        info=own.info,
        parts=tuple(_parts(given)),
        following=following,
        former=former,
        a_year=a_year,
        is_estimate=is_estimate,
        week=week,
        is_week_cut=is_cut,
        changes=changes,
        change_note=_change_note(changes, own),
        dialects=tuple(elsewhere(bound_cron, now)) if isinstance(bound_cron, Cron) and main is given else (),
        note=note,
        is_cron=main is given,
        dst_fold="" if main is None else main.dst_fold,
        dst_gap="" if main is None else main.dst_gap,
    )


def _crons(schedule: object) -> Iterator[Cron]:
    return (leaf for leaf in _leaves(schedule) if isinstance(leaf, Cron))


def _leaves(schedule: object) -> Iterator[object]:
    """Give the schedules inside others, at any depth."""
    inner = getattr(schedule, "schedule", None)
    parts = (*getattr(schedule, "parts", ()), *([] if inner is None else [inner]))
    if not parts:
        yield schedule
    for part in parts:
        yield from _leaves(part)


def _bound(schedule: Schedule) -> tuple[Schedule, str]:
    """Return the schedule as a job would have it, and a word about that where the job matters."""
    from everytick.domain.ids import job_id
    from everytick.domain.schedule import bound, is_on_request, waits_for_end

    if is_on_request(schedule):
        return schedule, "It names no instant: the job runs when it is asked for."
    if waits_for_end(schedule):
        return schedule, "Its next instant follows from the end of the last run."
    try:
        schedule.next_after(datetime(2026, 1, 1).astimezone())
    except UnboundSchedule:
        return bound(schedule, job_id(_EXAMPLE_JOB), None), f"These are the instants of a job called '{_EXAMPLE_JOB}'."
    return schedule, ""


def _following(rule: Schedule, now: datetime) -> list[datetime]:
    """Return the next instants. The first may be centuries away; the others are within some decades."""
    found: list[datetime] = []
    at = rule.next_after(now)
    while at is not None and len(found) < NEXT and (not found or at - now < _FARTHEST):
        found.append(at)
        at = rule.next_after(at)
    return found


def _former(rule: Schedule, now: datetime) -> list[datetime]:
    found: list[datetime] = []
    at = rule.last_at(now)
    while at is not None and len(found) < BEFORE and (not found or now - at < _FARTHEST):
        found.append(at)
        at = rule.last_at(at - _MICROSECOND)
    return found


def _a_year(rule: Schedule, now: datetime, most: int) -> tuple[int, bool]:
    """Return how many instants the year to come has, and whether that is an estimate."""
    found = rule.instants(now, now + _YEAR, most)
    if len(found) < most:
        return len(found), False
    return round(_YEAR / (found[-1] - found[0]) * (len(found) - 1)), True


def _week(rule: Schedule, now: datetime, zone: Zone, most: int) -> tuple[tuple[tuple[int, ...], ...], bool]:
    """Return the instants of the seven days from tomorrow on, by weekday and hour; and whether there are more."""
    midnight = (now.astimezone(zone.info) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    begin = midnight.astimezone(now.tzinfo) - _MICROSECOND
    counts = [[0] * 24 for _ in range(7)]
    if isinstance(rule, Interval) and rule.count is None and Period(elapsed=rule.period.elapsed) == rule.period:
        an_hour = _HOUR // rule.period.elapsed
        if an_hour * 168 > most:
            return ((an_hour,) * 24,) * 7, False
    found = rule.instants(begin, begin + _WEEK, most)
    for at in found:
        local = at.astimezone(zone.info)
        counts[local.weekday()][local.hour] += 1
    return tuple(map(tuple, counts)), len(found) >= most


# --------------------------------------------------------------------------------------------------- field by field


def _parts(schedule: object) -> Iterator[SchedulePart]:
    """Give the parts of a schedule: the fields of a cron expression, the parts of an interval or a union."""
    if isinstance(schedule, Cron):
        for name, text, said in field_words(schedule.expression, schedule.dialect):
            yield SchedulePart(text, name, said)
    elif isinstance(schedule, Interval):
        yield SchedulePart(str(schedule.period), "period", f"every {schedule.period.describe()}")
        start = str(schedule.start)
        yield SchedulePart(start, "start", "counted from here" if start[:4] != "1970" else "counted from 1970")
        if schedule.count is not None:
            yield SchedulePart(str(schedule.count), "count", f"{schedule.count} times in all")
    elif getattr(schedule, "parts", ()):
        for number, part in enumerate(schedule.parts[:8], 1):  # type: ignore[attr-defined]
            yield SchedulePart(str(part), f"part {number}", part.describe())
    elif getattr(schedule, "schedule", None) is not None:
        yield from _parts(schedule.schedule)  # type: ignore[attr-defined]
        options = str(schedule).removeprefix(str(schedule.schedule)).strip("; ")  # type: ignore[attr-defined]
        if options:
            name, _, given = options.partition("=")
            yield SchedulePart(given or options, name.strip(), "an option of the whole")
    else:
        described: Schedule = schedule  # type: ignore[assignment]
        yield SchedulePart(str(schedule), "schedule", described.describe())


# --------------------------------------------------------------------------------------------------- clock changes


def _changes(rule: Schedule, crons: Sequence[Cron], zone: Zone, now: datetime) -> Iterator[ClockPicture]:
    """Give the next change of the clock in each direction."""
    stretch: Stretch | None = zone.stretch(now)
    seen: set[bool] = set()
    for _ in range(6):
        following = None if stretch is None else zone.after(stretch)
        if stretch is None or following is None or len(seen) == 2 or stretch.end > now + 2 * _YEAR:
            return
        is_fold = following.wall_start < stretch.wall_end
        if following.offset != stretch.offset and is_fold not in seen:
            seen.add(is_fold)
            yield _picture(rule, crons, stretch, following, is_fold)
        stretch = following


def _picture(rule: Schedule, crons: Sequence[Cron], before: Stretch, after: Stretch, is_fold: bool) -> ClockPicture:
    changed = before.end
    begin, end = changed - 2 * _HOUR, changed + 3 * _HOUR
    cells = [begin + number * _HOUR for number in range(5)]
    hours = tuple((at + (after.offset if at >= changed else before.offset)).replace(tzinfo=None) for at in cells)
    named = rule.instants(begin - _MICROSECOND, end - _MICROSECOND, _MOST_MARKS)
    silent = _silent(rule, named, begin, end)
    marks = tuple(
        ChangeMark(
            (at - begin) / (end - begin),
            (at + (after.offset if at >= changed else before.offset)).replace(tzinfo=None),
            runs,
        )
        for at, runs in sorted([*((at, True) for at in named), *((at, False) for at in silent)])
    )
    low, high = sorted((before.wall_end.replace(tzinfo=None), after.wall_start.replace(tzinfo=None)))
    said = _said(crons, before, is_fold)
    return ClockPicture(changed, is_fold, low, high, hours, (changed - begin) / (end - begin), marks, said)


def _silent(rule: Schedule, named: Sequence[datetime], begin: datetime, end: datetime) -> list[datetime]:
    """Return the repeated instants that a rule about repeated hours leaves out."""
    if not isinstance(rule, Cron) or rule.dst_fold == "both":
        return []
    both = replace(rule, dst_fold="both").instants(begin - _MICROSECOND, end - _MICROSECOND, _MOST_MARKS)
    return [at for at in both if at not in named]


def _said(crons: Sequence[Cron], before: Stretch, is_fold: bool) -> str:
    """Say what the change does to the schedule; nothing if it does not touch it."""
    for part in crons:
        try:
            touched = list(_bound_cron(part).clock_changes(before.end - _HOUR, before.end))
        except EverytickError:
            continue
        for change in touched:
            wall = change.wall.strftime("%H:%M")
            words = {
                "moved": f"{wall} does not exist: it runs once, right after the gap",
                "skipped": f"{wall} does not exist: it is left out",
                "doubled": f"{wall} comes twice and runs twice",
                "silenced": f"{wall} comes twice and runs once",
            }
            return f"{words.get(change.what, change.what)} ({change.rule})"
    return ""


def _bound_cron(part: Cron) -> Cron:
    found, _ = _bound(part)
    assert isinstance(found, Cron), "a cron stays one"
    return found


def _change_note(changes: Sequence[ClockPicture], zone: Zone) -> str:
    if not changes:
        return f"the clocks of {zone.name} do not change"
    return "" if any(change.said for change in changes) else "this schedule is not touched"
