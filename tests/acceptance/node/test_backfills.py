"""Nodes that are killed while they fill the past of a job, beside a job that is due every second."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest

from everytick import Backfill, BackfillRecord, Everytick
from everytick.domain.backfills import WINDOW
from everytick.stores.base import Whole
from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import all_records

THROUGH = datetime(2026, 2, 1, tzinfo=UTC)
"""The filled minutes lie long before the nodes start, so that the schedule makes none of them."""
KEY = "january"
T = TypeVar("T")


def planned(address: str, count: int, rate: int) -> None:
    """Ask for the last minutes of January, so many of them, as an operator does."""

    async def plan(tick: Everytick) -> None:
        asked = await tick.backfill("nightly", THROUGH - count * timedelta(minutes=1), THROUGH, rate=rate, key=KEY)
        assert len(asked.instants) == count

    asyncio.run(_with_application(address, plan))


def progress(address: str) -> BackfillRecord:
    """Return where the backfill stands, as an operator is told."""

    async def look(tick: Everytick) -> BackfillRecord:
        [record] = await tick.backfills("nightly")
        found: Backfill = await tick.find_backfill(record.id)
        return await found.progress()

    return asyncio.run(_with_application(address, look))


async def _with_application(address: str, deed: Callable[[Everytick], Awaitable[T]]) -> T:
    tick = Everytick(address, name="asking")
    try:
        return await deed(tick)
    finally:
        await tick.close()


def require_told_right(record: BackfillRecord, count: int, rate: int) -> None:
    """What is told adds up, whatever was killed."""
    told = record.done + record.failed + record.canceled + record.running + record.waiting
    assert (told, record.left) == (record.created, 0 if record.is_filled else count - record.created), record
    assert (record.failed, record.canceled) == (0, 0), record
    assert 1 <= record.pace <= rate, record


def require_filled_once(wholes: list[Whole], count: int, rate: int) -> None:
    """Each minute has one occurrence of this backfill, which ended well once, and no minute saw too many starts."""
    filled = [whole for whole in wholes if whole.occurrence.cause == "backfill"]
    instants = sorted(whole.occurrence.scheduled_for for whole in filled)
    assert instants == [THROUGH - number * timedelta(minutes=1) for number in range(count)][::-1]
    for whole in filled:
        ends = Counter(str(attempt.status) for _, attempt in whole.attempts)
        assert (whole.occurrence.status, ends.pop("success")) == ("completed", 1), whole
        assert set(ends) <= {"lost"}, whole
    starts = sorted(whole.occurrence.started_at for whole in filled if whole.occurrence.started_at is not None)
    for first, last in zip(starts, starts[rate:], strict=False):
        assert last - first >= WINDOW, f"more than {rate} of them have begun between {first} and {last}"


def require_no_hole(wholes: list[Whole]) -> None:
    """The job beside it has an occurrence for each second, and one only."""
    seconds = [
        int(whole.occurrence.scheduled_for.timestamp())
        for whole in wholes
        if whole.occurrence.cause == "schedule" and [run.task for run in whole.runs] == ["live"]
    ]
    assert {later - earlier for earlier, later in pairwise(sorted(seconds))} == {1}


@pytest.mark.parametrize(
    ("count", "rate", "blows"),
    [(40, 6_000, 3), pytest.param(150, 100, 12, marks=[pytest.mark.slow, pytest.mark.timeout(600)])],
)
def test_a_backfill_goes_on_though_nodes_are_killed_in_the_middle_of_it(
    fleet: Fleet, address: str, tmp_path: Path, count: int, rate: int, blows: int
) -> None:
    """A23, S0-070: each instant once, nothing lost, the live job goes on, and the progress is told right."""
    go_on = tmp_path / "go_on"
    nodes = [fleet.start("filling", address, go_on) for _ in range(2)]
    for node in nodes:
        fleet.hear("live", by=node)
    planned(address, count, rate)
    created = 0
    for blow in range(blows):
        struck = nodes.pop(0)
        # It may have said so while another was waited for: two runs that last take its whole share of the slots.
        fleet.hear_also("fills", by=struck, within=90)
        struck.kill()
        record = progress(address)
        require_told_right(record, count, rate)
        assert record.created >= created, "what was made is not forgotten"
        created = record.created
        assert not record.is_over, f"blow {blow} falls in the middle of it"
        nodes.append(fleet.start("filling", address, go_on))
    go_on.touch()
    fleet.wait_until(lambda: progress(address).is_over, "the backfill is over", within=300)
    for node in nodes:
        node.tell_to_stop()
    assert [node.ended() for node in nodes] == [0, 0]

    record = progress(address)
    require_told_right(record, count, rate)
    assert (str(record.status), record.created, record.done) == ("completed", count, count)
    wholes = all_records(address)
    require_filled_once(wholes, count, rate)
    require_no_hole(wholes)
