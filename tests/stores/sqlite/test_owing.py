"""Reports on SQLite: due where a job has a hook for them, and only there."""

from dataclasses import replace

import pytest

from everytick.domain.facts import Cancel
from everytick.stores.base import NodeScope
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import job, occurrences, plan_once, put, run_one
from tests.stores.clock import ManualClock

KEEP = {"success": "1h", "failure": "1h", "keep_last": 0}


@pytest.mark.parametrize("awaited", [True, False])
async def test_a_report_is_due_where_a_hook_waits_for_it(
    opened: SqliteStore, clock: ManualClock, awaited: bool
) -> None:
    """After the owner's end and after a cancel of an unclaimed one; a due report is not pruned."""
    await put(opened, replace(job(retention=KEEP), reports=awaited))
    clock.move(hours=1)
    await plan_once(opened)
    await run_one(opened)
    clock.move(hours=1)
    await plan_once(opened)
    [_, waiting] = await occurrences(opened)
    assert (await opened.request(waiting.id, Cancel())).changed

    ended = [each.id for each in await occurrences(opened)]
    assert [each.id for each in await opened.reports(NodeScope("node-1"), 10)] == (ended if awaited else [])
    clock.move(hours=2)
    assert await opened.prune() == (0 if awaited else 2)
    await opened.reported(ended)
    assert await opened.reports(NodeScope("node-1"), 10) == []
    assert await opened.prune() == (2 if awaited else 0)


async def test_what_a_version_says_of_reports_holds_for_its_own_occurrences(
    opened: SqliteStore, clock: ManualClock
) -> None:
    await put(opened, replace(job(overlap="queue", recovery="execute_all"), reports=True))
    clock.move(hours=1)
    await plan_once(opened)
    [claim] = await opened.claim(NodeScope("node-1"), 1)
    clock.move(hours=1)
    await plan_once(opened)
    await put(opened, job(reports=False, overlap="queue", recovery="execute_all"))
    first, second = await occurrences(opened)
    assert (first.id, first.version, second.version) == (claim.occurrence.id, 1, 2)
    assert (await opened.request(second.id, Cancel())).changed
    assert await opened.reports(NodeScope("node-1"), 10) == []
    assert claim.header.rules.reports
