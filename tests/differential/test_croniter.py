"""croniter beside our engine: where they differ, a named rule says why."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from croniter import croniter
from croniter.croniter import CroniterBadDateError

from tests.differential import rules
from tests.differential.questions import EVERY_PLACE, Question, near_jumps, on_calm_days
from tests.oracle.cron import read

REWRITINGS = {
    "n-n is the whole cycle": rules.equal_range_is_the_whole_cycle,
    "*/s restricts a day field": rules.stepped_star_restricts_the_day,
    "stepped wildcards are moved too": rules.stepped_wildcards_are_moved_too,
    "wildcards are moved too": rules.wildcards_are_moved_too,
}
POLICIES: dict[str, dict[str, str]] = {
    "": {},
    "a repeated minute fires twice": {"dst_fold": "both"},
    "nothing is moved for what it reads as a wildcard": {"dst_gap": "skip"},
}
NEVER = "gives up: the day exists in none of the months"


def answer(question: Question) -> list[datetime] | None:
    """Return croniter's next instants, None where it gives up."""
    found = croniter(question.text, question.at.astimezone(ZoneInfo(question.zone)))
    try:
        return [found.get_next(datetime).astimezone(UTC) for _ in range(rules.COUNT)]
    except CroniterBadDateError:
        return None


def day_is_in_no_month(text: str) -> bool:
    """J9: croniter lets an impossible day veto its weekday."""
    rule = read(rules.equal_range_is_the_whole_cycle(text))
    leap_year = [date.fromordinal(date(2024, 1, 1).toordinal() + n) for n in range(366)]
    return not any(day.day in rule.named("day") and day.month in rule.named("month") for day in leap_year)


def verdict(question: Question) -> str | None:
    theirs = answer(question)
    if theirs is None:
        return NEVER if day_is_in_no_month(question.text) else None
    return rules.explanation(question, theirs, REWRITINGS, POLICIES, {"": rules.ours})


def verdicts(questions: Iterator[Question]) -> Counter[str]:
    """Return how often each explanation was needed; a difference without one is a failure."""
    counted: Counter[str] = Counter()
    for question in questions:
        why = verdict(question)
        assert why is not None, f"{question}: croniter says {answer(question)}, we say {rules.ours(*question)}"
        counted[why] += 1
    return counted


def test_on_calm_days_every_difference_from_croniter_has_a_name() -> None:
    """S3-009, C-02; A27, A28, J9."""
    counted = verdicts(on_calm_days(20253, 2000))

    assert counted[""] > 1400
    assert counted["n-n is the whole cycle"] > 0
    assert counted["*/s restricts a day field"] > 0


def test_near_jumps_every_difference_from_croniter_has_a_name() -> None:
    """C-03; A10 … A21, A26."""
    counted = verdicts(near_jumps(20254, 800, EVERY_PLACE))

    assert counted[""] > 650
    assert counted["a repeated minute fires twice"] > 0
