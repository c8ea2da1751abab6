"""cronsim beside our engine: where they differ, a named rule says why."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError

from tests.differential import rules
from tests.differential.questions import WHOLE_HOURS, Question, near_jumps, on_calm_days

REWRITINGS = {
    "n-n/s runs to the end": rules.stepped_equal_range_runs_to_the_end,
    "stepped wildcards are moved too": rules.stepped_wildcards_are_moved_too,
    "wildcards are moved too": rules.wildcards_are_moved_too,
}
POLICIES: dict[str, dict[str, str]] = {"": {}}
VIEWS = {
    "": rules.ours,
    "asked in the second pass, it begins with the first": rules.ours_from_the_first_pass,
    "the hour after a missing midnight is lost": rules.ours_without_the_first_hour_where_midnight_is_missing,
}


def cronsim(question: Question) -> list[datetime]:
    """Return cronsim's next instants; it refuses what never fires, which we answer with None."""
    try:
        found = CronSim(question.text, question.at.astimezone(ZoneInfo(question.zone)))
    except CronSimError:
        return []
    return [at.astimezone(UTC) for at in islice(found, rules.COUNT)]


def verdicts(questions: Iterator[Question]) -> Counter[str]:
    """Return how often each explanation was needed; a difference without one is a failure."""
    counted: Counter[str] = Counter()
    for question in questions:
        theirs = cronsim(question)
        why = rules.explanation(question, theirs, REWRITINGS, POLICIES, VIEWS)
        assert why is not None, f"{question}: cronsim says {theirs}, we say {rules.ours(*question)}"
        counted[why] += 1
    return counted


def test_on_calm_days_every_difference_from_cronsim_has_a_name() -> None:
    """S3-009, C-02; A27, A28: numbers, ranges, steps, lists and the day rule."""
    counted = verdicts(on_calm_days(20251, 5000))

    assert set(counted) <= {"", "n-n/s runs to the end"}
    assert counted[""] > 4800


def test_near_jumps_every_difference_from_cronsim_has_a_name() -> None:
    """C-03; A10 … A21.

    Jumps of half hours and off the full hour are left out (A26): cronsim steps whole hours of UTC
    there, and for St John's it repeats one instant for ever.
    """
    counted = verdicts(near_jumps(20252, 5000, WHOLE_HOURS))

    assert counted[""] > 4800


@pytest.mark.parametrize("zone", ["Australia/Lord_Howe"])
def test_cronsim_still_has_the_reason_for_which_half_hours_are_left_out(zone: str) -> None:
    """A26: when this fails, cronsim was mended and the half-hour places can be compared as well."""
    at = datetime(2025, 10, 4, 12, tzinfo=UTC)
    question = Question("0 */3 * * *", zone, at)

    assert cronsim(question) != rules.ours(*question)
