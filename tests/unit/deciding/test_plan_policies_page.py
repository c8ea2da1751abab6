"""docs/policies.md cannot lie: every cell of its table is computed by `plan` and compared."""

import re
from pathlib import Path

import pytest

from everytick.deciding.plan import plan
from everytick.domain.decisions import Plan, Why
from everytick.domain.policies import LateOverlap, Overlap, bounded_window
from tests.unit.deciding.planning import active, at, job, snapshot_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "policies.md"
OVERLAPS = [str(each) for each in Overlap]
LATE_OVERLAPS = [str(each) for each in LateOverlap]
RECOVERIES = {
    "execute_last": "execute_last",
    "execute_all": "execute_all",
    "mark_as_missed": "mark_as_missed",
    "bounded_window(1)": bounded_window(max_occurrences=1),
    "compressed": "compressed",
}
RUNNING = "the 09:00 one"


def outcome(recovery: object, late_overlap: str, overlap: str) -> str:
    """Say what becomes of 10:00 and 11:00, which are late, and of 12:00, while the 09:00 one still runs."""
    hourly = job(recovery=recovery, late_overlap=late_overlap, overlap=overlap)
    seen = snapshot_of(hourly, at("09:30"), active=(active(RUNNING, at("09:00")),))
    decided = plan(seen, at("12:00:05"))
    words: dict[str, list[str]] = {}
    for hour in ("10", "11", "12"):
        words.setdefault(_word(decided, hour), []).append(hour)
    told = [f"{' '.join(hours)} {word}" for word, hours in words.items()]
    return ", ".join([*told, *(["09 is stopped"] if RUNNING in decided.cancels else [])])


def _word(decided: Plan, hour: str) -> str:
    instant = at(f"{hour}:00")
    for each in decided.creations:
        if each.scheduled_for == instant:
            return str(each.status)
    [span] = [each for each in decided.spans if each.after < instant <= each.through]
    return "in 12" if span.why is Why.COMPRESSED else str(span.status)


def cells() -> dict[tuple[str, str, str], str]:
    """Return the cells of the page's table by recovery, late_overlap and overlap."""
    rows = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in PAGE.read_text().splitlines()
        if re.match(r"\| `(execute|mark|bounded|compressed)[^|]*\| `(queue|skip|allow)` \|", line)
    ]
    return {(row[0], row[1], overlap): cell for row in rows for overlap, cell in zip(OVERLAPS, row[2:], strict=True)}


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("late_overlap", LATE_OVERLAPS)
def test_every_cell_of_the_table_is_what_plan_decides(recovery: str, late_overlap: str) -> None:
    """C-06, C-11, C-12, D8, F1."""
    told = cells()

    for overlap in OVERLAPS:
        assert told[recovery, late_overlap, overlap] == outcome(RECOVERIES[recovery], late_overlap, overlap), overlap


def test_the_table_is_whole_and_its_head_names_the_columns() -> None:
    head = "| recovery | late_overlap | " + " | ".join(f"overlap `{each}`" for each in OVERLAPS) + " |"

    assert len(cells()) == len(RECOVERIES) * len(LATE_OVERLAPS) * len(OVERLAPS)
    assert head in PAGE.read_text()


DOWN_FIVE_HOURS = {
    "`execute_last` (default)": "execute_last",
    "`execute_all`": "execute_all",
    "`mark_as_missed`": "mark_as_missed",
    '`bounded_window(max_duration="3h")`': bounded_window(max_duration="3h"),
    "`bounded_window(max_occurrences=2)`": bounded_window(max_occurrences=2),
    "`compressed`": "compressed",
}


@pytest.mark.parametrize("row", DOWN_FIVE_HOURS)
def test_every_row_about_the_outage_is_what_plan_decides(row: str) -> None:
    """S0-092 to S0-096."""
    lines = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith(f"| {row} |")]
    [(runs, others)] = [(line[2].strip(), line[3].strip()) for line in lines if len(line) == 5]

    decided = plan(snapshot_of(job(recovery=DOWN_FIVE_HOURS[row]), at("09:00")), at("14:30"))

    told = [at(clock) for clock in re.findall(r"\d\d:\d\d", runs.partition(", told")[0])]
    assert [each.scheduled_for for each in decided.creations] == told
    reasons = {f"{each.status}: {each.why}".replace("missed: missed", "missed") for each in decided.spans}
    assert reasons == ({others.removesuffix(" into 14:00")} if others else set())
