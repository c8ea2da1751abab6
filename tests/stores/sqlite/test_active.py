"""Who is active, in a crowd and among few: both ways of asking see the same."""

import pytest

from everytick.domain.facts import Pause, Trigger
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import JobSnapshot
from everytick.stores.base import NodeScope
from everytick.stores.sqlite import active
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import job, plan_once, put
from tests.stores.clock import ManualClock

MANY = 150


async def _seen(opened: SqliteStore, monkeypatch: pytest.MonkeyPatch, few: int, crowd: int) -> dict[str, JobSnapshot]:
    monkeypatch.setattr(active, "FEW_ACTIVE", few)
    monkeypatch.setattr(active, "CROWD", crowd)
    ids = [record.job.id for record in await opened.list()]
    return await opened.look(ids)


async def test_a_crowd_is_seen_as_few_are(
    opened: SqliteStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Busy and waiting beyond what is shown, a line that a pause hides and whom people asked for in it, and nobody."""
    await put(opened, job("nobody"))
    await put(opened, job("busy", "* * * * *", overlap="allow", recovery="execute_all"))
    await put(opened, job("waiting", "* * * * *", overlap="queue", recovery="execute_all"))
    paused = await put(opened, job("paused", "* * * * *", overlap="queue", recovery="execute_all"))
    clock.move(minutes=MANY)
    while await plan_once(opened):
        pass
    await opened.claim(NodeScope("node-1"), 20)
    for key in ("x", "y"):
        await opened.request(paused.job_id, Trigger(key))
    await plan_once(opened)
    await opened.request(paused.job_id, Pause())

    few = await _seen(opened, monkeypatch, 5_000, 250)
    for crowd in (0, 5, MANY, 5_000):
        assert few == await _seen(opened, monkeypatch, 0, crowd), f"a crowd is more than {crowd}"

    by_name = {seen.editions[-1].job.name: seen for seen in few.values()}
    counts = {name: (len(seen.busy), seen.busy_count, len(seen.waiting)) for name, seen in by_name.items()}
    assert counts["busy"] == (100, MANY, 0)
    assert counts["waiting"] == (1, 1, 101)
    assert by_name["waiting"].waiting_count == MANY - 1
    assert [each.cause for each in by_name["paused"].waiting] == [Cause.TRIGGER] * 2
    assert by_name["paused"].waiting_count > MANY
