"""Why another library answers differently: each reason is a rewriting under which our engine gives its answer.

A difference counts as explained only if some of the named rewritings, applied to the expression,
the policy or the question, turn our answer into theirs, instant for instant.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from itertools import combinations, islice, product
from zoneinfo import ZoneInfo

from everytick import cron
from tests.differential.questions import Question
from tests.oracle.zones import MINUTE, gap_end, passes

Rewriting = Callable[[str], str]
View = Callable[..., list[datetime]]
FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
COUNT = 4


def _each(text: str, change: Callable[[int, str], str]) -> str:
    return " ".join(change(place, field) for place, field in enumerate(text.split(" ")))


def _equal_ranges(text: str, change: Callable[[int, str, str], str]) -> str:
    """Rewrite every `n-n` and `n-n/s`."""

    def item(place: int, part: str) -> str:
        found = re.fullmatch(r"(\d+)-(\d+)(/\d+)?", part)
        return change(place, found[1], found[3] or "") if found and int(found[1]) == int(found[2]) else part

    return _each(text, lambda place, field: ",".join(item(place, part) for part in field.split(",")))


def stepped_equal_range_runs_to_the_end(text: str) -> str:
    """cronsim reads `n-n/s` as n to the end of the field in steps of s."""
    return _equal_ranges(text, lambda place, n, step: f"{n}-{FIELDS[place][1]}{step}" if step else f"{n}-{n}")


def equal_range_is_the_whole_cycle(text: str) -> str:
    """A27: croniter reads `n-n` as the whole field."""
    return _equal_ranges(text, lambda place, n, step: f"{FIELDS[place][0]}-{FIELDS[place][1]}{step}")


def stepped_star_restricts_the_day(text: str) -> str:
    """croniter calls only a plain `*` unrestricted, so `*/2` in a day field is joined with *or*."""
    return _each(text, lambda place, field: _spelled_out(place, field) if place in (2, 4) and "/" in field else field)


def wildcards_are_moved_too(text: str) -> str:
    """Both libraries now and then move a wildcard schedule out of a gap as if it were fixed-time."""
    return _each(text, lambda place, field: _spelled_out(place, field) if place in (0, 1) else field)


def stepped_wildcards_are_moved_too(text: str) -> str:
    """The same for `*/s` alone, while a plain `*` is left in place."""
    return _each(text, lambda place, field: _spelled_out(place, field) if place in (0, 1) and "/" in field else field)


def _spelled_out(place: int, field: str) -> str:
    low, high = FIELDS[place]
    return f"{low}-{min(high, 6) if place == 4 else high}{field[1:]}" if field.startswith("*") else field


def following(text: str, zone: str, at: datetime, **policy: str) -> Iterator[datetime]:
    """Yield our next instants."""
    schedule = cron(text, tz=zone, **policy)
    found = schedule.next_after(at)
    while found is not None:
        yield found
        found = schedule.next_after(found)


def ours(text: str, zone: str, at: datetime, **policy: str) -> list[datetime]:
    """Return as many of our next instants as the libraries are asked for."""
    return list(islice(following(text, zone, at, **policy), COUNT))


def ours_from_the_first_pass(text: str, zone: str, at: datetime, **policy: str) -> list[datetime]:
    """Asked in the second pass of a fold, cronsim begins with the first."""
    return ours(text, zone, at.astimezone(ZoneInfo(zone)).replace(fold=0).astimezone(UTC), **policy)


def ours_without_the_first_hour_where_midnight_is_missing(
    text: str, zone: str, at: datetime, **policy: str
) -> list[datetime]:
    """A17, A20: of a day that begins at one o'clock, cronsim may lose that hour."""
    found = following(text, zone, at, **policy)
    return list(islice((instant for instant in found if not _begins_a_late_day(instant, ZoneInfo(zone))), COUNT))


def _begins_a_late_day(instant: datetime, zone: ZoneInfo) -> bool:
    midnight = datetime.combine(instant.astimezone(zone).date(), time())
    return not passes(midnight, zone) and instant - gap_end(midnight, zone, MINUTE) < timedelta(hours=1)


def explanation(
    question: Question,
    theirs: list[datetime],
    rewritings: Mapping[str, Rewriting],
    policies: Mapping[str, dict[str, str]],
    views: Mapping[str, View],
) -> str | None:
    """Return the names of the rules under which we answer as they do, the fewest first, or None."""
    text, zone, at = question
    for chosen in _subsets(rewritings):
        rewritten = text
        for name in chosen:
            rewritten = rewritings[name](rewritten)
        for (policy, options), (view, answer) in product(policies.items(), views.items()):
            if answer(rewritten, zone, at, **options) == theirs:
                return ", ".join(name for name in (*chosen, policy, view) if name)
    return None


def _subsets(rewritings: Mapping[str, Rewriting]) -> Iterator[tuple[str, ...]]:
    for size in range(len(rewritings) + 1):
        yield from combinations(rewritings, size)
