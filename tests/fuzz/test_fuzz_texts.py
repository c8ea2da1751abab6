"""The other readers of text: intervals, text forms, moments and zone names under the same law."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from everytick import after_completion, cron, every, once, repeat, schedule
from everytick.schedules.calendars import Calendar
from tests.fuzz.judge import judge, judge_memory
from tests.fuzz.strings import giants, strings
from tests.oracle import dice as dice_of

CALENDARS = {"off": Calendar("off", weekdays=frozenset({6, 7}))}
PERIODS = ("90s", "1h30m", "P1M", "PT0.5S", "P1Y2M10DT2H30M", "PT24H", "P3W")
MOMENTS = ("2025-01-31T09:00:00Z", "2025-01-31T09:00:00", "2025-01-31T09:00:00+02:00", "2025-10-26T02:30:00.5Z")
ZONES = ("Europe/Berlin", "America/Argentina/Buenos_Aires", "UTC", "Etc/GMT+5", "Asia/Kolkata")


def period(dice: Random) -> str:
    return dice.choice(PERIODS)


def moment(dice: Random) -> str:
    return dice.choice(MOMENTS)


def interval(dice: Random) -> str:
    zone = dice.choice(["", "", f"[{dice.choice(ZONES)}]"])
    return f"R{dice.choice(['', '-1', '0', '5'])}/{moment(dice)}{zone}/{dice.choice([period(dice), moment(dice)])}"


def text_form(dice: Random) -> str:
    """Return a text form, now and then one made of others."""
    kind = dice.random()
    if kind < 0.1:
        return f"({text_form(dice)}) | ({text_form(dice)})"
    if kind < 0.2:
        return f"({text_form(dice)}) - off; roll={dice.choice(['skip', 'next', 'previous'])}"
    body = dice.choice(
        [
            f"cron: {dice_of.five_fields(dice)}",
            f"posix: {dice_of.five_fields(dice, 'posix')}",
            f"quartz: {dice_of.quartz(dice)}",
            f"every: {period(dice)}",
            f"once: {moment(dice)}",
            f"after: {dice.choice(['10m', '1h'])}",
            interval(dice),
        ]
    )
    return body + dice.choice(["", "", f"; tz={dice.choice(ZONES)}", "; dst_gap=skip", f"; start={moment(dice)}"])


def named(zone: str) -> Any:
    return cron("0 0 * * *", tz=zone)


def from_text(text: str) -> Any:
    return schedule(text, calendars=CALENDARS)


READERS: list[tuple[Callable[[str], Any], Callable[[Random], str]]] = [
    (repeat, interval),
    (every, period),
    (once, moment),
    (after_completion, period),
    (from_text, text_form),
    (named, lambda dice: dice.choice(ZONES)),
]
EVERY_READER = pytest.mark.parametrize(
    ("read", "valid"), READERS, ids=["repeat", "every", "once", "after", "text", "tz"]
)


@EVERY_READER
def test_no_reader_lets_another_error_escape(read: Callable[[str], Any], valid: Callable[[Random], str]) -> None:
    """S0-050; J2 … J7."""
    # A zone that does not exist is looked for on the disk, which is slow.
    judge(read, strings(seed=3, count=1_500 if read is named else 12_000, valid=valid))


@EVERY_READER
def test_no_reader_is_slow_or_greedy_with_a_hundred_kilobytes(
    read: Callable[[str], Any], valid: Callable[[Random], str]
) -> None:
    """J2, J3."""
    judge(read, giants(valid(Random(4))))
    judge_memory(read, giants(valid(Random(5))))
