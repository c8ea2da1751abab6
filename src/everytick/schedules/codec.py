"""The text form of schedules: what `str()` writes, and people write in files and on the command line.

cron: 30 2 * * 1-5; tz=Europe/Berlin; dst_fold=both
every: 90s            every 10s          repeat: R5/2024-01-31T09:00:00Z/P1M
once: 2026-07-01T09:00:00Z               after: 10m         on request
(cron: 0 9 * * *) | (cron: 0 17 * * 5)   (cron: 0 9 * * *) - holidays; roll=next

A user's own kind begins with its word: `prime: minutes`. `schedule_kind` registers what reads the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from everytick.domain.job import is_schedule
from everytick.errors import EverytickError, InvalidSchedule, shown
from everytick.schedules.combine import MAX_CHARACTERS, MAX_PARTS, Combinable, any_of, in_window
from everytick.schedules.interval import every, repeat
from everytick.schedules.once import after_completion, on_request, once

if TYPE_CHECKING:
    from everytick.domain.schedule import Schedule
    from everytick.schedules.calendars import Calendar

Options = dict[str, str]
_DEEPEST = 20
"""Schedules within each other."""

_ON_REQUEST = "on request"
_CRON = ("tz", "dst_gap", "dst_fold", "day_match", "start", "end")


def schedule(text: str, *, calendars: Mapping[str, Calendar] | Iterable[Calendar] = ()) -> Combinable:
    """Return the schedule that a text describes; calendars it names must be given beside it."""
    if not isinstance(text, str):
        raise InvalidSchedule(text, "text", "must be text like cron: 30 2 * * *, or every 10s")
    if len(text) > MAX_CHARACTERS:
        raise InvalidSchedule(text, "text", f"must have at most {MAX_CHARACTERS:,} characters")
    known = calendars if isinstance(calendars, Mapping) else {calendar.name: calendar for calendar in calendars}
    return _read(text.strip(" \t"), known, 0)


def schedule_kind(word: str, read: Callable[[str], Schedule]) -> None:
    """Register a kind of schedule of your own: `read` gets what follows `word:` in a text.

    Every process that reads such a job must register it, nodes and the command line alike. A
    package does that for all of them with an entry point of the group `everytick.schedules`.
    """
    if not word.isalpha() or word in _KINDS:
        raise InvalidSchedule(word, "kind", f"must be letters, and none of {', '.join(_KINDS)}")
    if _registered.setdefault(word, read) is not read:
        raise InvalidSchedule(word, "kind", "is read by another function already: choose another word")


_registered: dict[str, Callable[[str], Schedule]] = {}
_ENTRY_POINTS = "everytick.schedules"


def _read(text: str, calendars: Mapping[str, Calendar], depth: int) -> Combinable:
    if depth > _DEEPEST:
        raise InvalidSchedule(text, "text", f"must not be nested deeper than {_DEEPEST} times")
    if text.startswith("("):
        return _combined(text, calendars, depth)
    word, colon, rest = text.partition(":")
    if colon and word not in _KINDS and word.isalpha():
        return _registered_schedule(text, word, rest.strip(" \t"))
    body, options = _options(text)
    kind, body = _kind(body)
    spread = _spread_of(text, options)
    read, allowed = _KINDS[kind]
    _only(text, options, allowed)
    schedule = read(body, options)
    return schedule if spread is None else schedule.spread_over(*spread)


def _combined(text: str, calendars: Mapping[str, Calendar], depth: int) -> Combinable:
    inside, rest = _parenthesis(text)
    parts = [_read(inside, calendars, depth + 1)]
    while rest.startswith("|") and len(parts) <= MAX_PARTS:
        inside, rest = _parenthesis(rest[1:].lstrip(" \t"))
        parts.append(_read(inside, calendars, depth + 1))
    tail, options = _options(rest)
    spread = _spread_of(text, options)
    schedule: Combinable = any_of(*parts) if len(parts) > 1 else parts[0]
    if tail.startswith("-"):
        name = tail[1:].strip(" \t")
        if name not in calendars:
            given = f"; given are {', '.join(calendars)}" if calendars else "; none is given"
            raise InvalidSchedule(text, "calendar", f"{shown(name)} must be given beside the text{given}")
        schedule = Combinable.excluding(schedule, calendars[name], options.pop("roll", "skip"))
    elif tail:
        raise InvalidSchedule(text, "text", f"must go on with | or - after a parenthesis, got {shown(tail, 40)}")
    _only(text, options, ("start", "end"))
    schedule = in_window(schedule, options.get("start"), options.get("end"))
    return schedule if spread is None else Combinable.spread_over(schedule, *spread)


def _parenthesis(text: str) -> tuple[str, str]:
    """Return the text inside the first parentheses, and the text after them."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            if position == 0:
                break
            return text[1:position].strip(" \t"), text[position + 1 :].strip(" \t")
    raise InvalidSchedule(text, "text", "must have its parentheses in pairs: (a) | (b), or (a) - calendar")


def _options(text: str) -> tuple[str, Options]:
    body, *pairs = text.split(";")
    options: Options = {}
    for pair in pairs:
        key, equals, given = (piece.strip(" \t") for piece in pair.partition("="))
        if not equals or not given:
            raise InvalidSchedule(text, "options", f"must be key=value, got {shown(pair.strip(), 40) or 'nothing'}")
        if key in options:
            raise InvalidSchedule(text, "options", f"must not give {shown(key, 40)} twice")
        options[key] = given
    return body.strip(" \t"), options


def _spread_of(text: str, options: Options) -> tuple[str, str | None] | None:
    """Take the length that a schedule is spread over out of its options, with the offset that was chosen in it."""
    length, offset = options.pop("spread", None), options.pop("offset", None)
    if length is not None:
        return length, offset
    if offset is not None:
        raise InvalidSchedule(text, "offset", f"must stand beside spread, like spread=15m; offset={shown(offset, 40)}")
    return None


def _registered_schedule(text: str, word: str, body: str) -> Combinable:
    """Return a schedule of a registered kind."""
    try:
        read = _registered.get(word) or _installed(word)
        if read is None:
            known = ", ".join((*_KINDS, *_registered))
            reason = f"must be one of {known}, got {shown(word, 40)}; call schedule_kind() first for a kind of your own"
            raise InvalidSchedule(text, "kind", reason)
        schedule = read(body)
    except EverytickError:
        raise
    except Exception as error:
        raise InvalidSchedule(text, word, f"cannot be read: {type(error).__name__}: {shown(str(error))}") from error
    if not is_schedule(schedule):
        raise InvalidSchedule(text, word, f"was read as a {type(schedule).__name__}, which is no schedule")
    # It lacks the methods by which our own are combined; any_of takes it as it is.
    return cast("Combinable", schedule)


def _installed(word: str) -> Callable[[str], Schedule] | None:
    """Return the reader that everytick or an installed package offers for this kind, or None."""
    if word == "notice":
        # Not among the kinds that people choose from: only jobs that send notices have it.
        from everytick.domain.notices import NoticeKind
        from everytick.schedules.notice import NoticeSchedule

        return lambda body: NoticeSchedule(NoticeKind(body))
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=_ENTRY_POINTS, name=word):
        read: Callable[[str], Schedule] = entry_point.load()
        return _registered.setdefault(word, read)
    return None


def _kind(body: str) -> tuple[str, str]:
    """The kind of schedule and its body; a bare text is cron, `R…` repeats, `every 10s` is every."""
    kind, colon, rest = body.partition(":")
    if colon and kind in _KINDS:
        return kind, rest.strip(" \t")
    if body.startswith("every ") or body.startswith("every\t"):
        return "every", body[6:].strip(" \t")
    if body.startswith("R"):
        return "repeat", body
    if body == _ON_REQUEST:
        return _ON_REQUEST, ""
    return "cron", body


def _only(text: str, options: Options, allowed: tuple[str, ...]) -> None:
    for key in options:
        if key not in allowed:
            choices = ", ".join(allowed) or "spread only"
            raise InvalidSchedule(text, "options", f"must be among {choices}, got {shown(key, 40)}")


def _cron(dialect: str) -> Callable[[str, Options], Combinable]:
    def read(body: str, options: Options) -> Combinable:
        # Loaded with the first cron text: a program without one starts sooner.
        from everytick.schedules.cron import cron

        given: dict[str, str] = dict(options)
        return cron(body, dialect=dialect, **given)

    return read


def _repeat(body: str, options: Options) -> Combinable:
    return repeat(body, tz=options.get("tz"), start=options.get("start"))


_KINDS: dict[str, tuple[Callable[[str, Options], Combinable], tuple[str, ...]]] = {
    "cron": (_cron("vixie"), _CRON),
    "posix": (_cron("posix"), _CRON),
    "quartz": (_cron("quartz"), _CRON),
    "every": (lambda body, options: every(body, **options), ("tz", "start", "end")),
    "repeat": (_repeat, ("tz", "start")),
    "once": (lambda body, options: once(body, **options), ("tz",)),
    "after": (lambda body, options: after_completion(body), ()),
    _ON_REQUEST: (lambda body, options: on_request(), ()),
}
