"""Overviews through the public API: one story on every store, asked in every way."""

from datetime import UTC, datetime, timedelta

import pytest

from everytick.app import Everytick
from everytick.deciding.coverage import CoverageState
from everytick.domain.headlines import fingerprint
from everytick.domain.outcome import Failed
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import InvalidPolicies, NotFound
from everytick.stores.addresses import AnyStore
from tests.stores.acting import began, claim_one, ended, plan_once
from tests.stores.clock import START, ManualClock

_S = OccurrenceStatus


def work() -> None:
    """Do nothing."""


def at(hour: int, minute: int = 0) -> datetime:
    return START.replace(hour=hour, minute=minute)


async def run(store: AnyStore, clock: ManualClock, error: str = "", minutes: int = 1) -> str:
    """Claim what is ready and let it take its time."""
    claim = await claim_one(store)
    step = began(claim, await store.now())
    clock.move(minutes=minutes)
    done = ended(claim, step, await store.now(), Failed(error) if error else None)
    await store.commit_steps([(claim, done)])
    return claim.occurrence.id


async def story(tick: Everytick, store: AnyStore, clock: ManualClock) -> list[str]:
    """Let `report` run at 10, 11, 12 and 13 o'clock: well, failing twice, well. It runs at 14. `rest` never runs."""
    tick.job("0 * * * *", name="report", tags=["crm"])(work)
    tick.job("0 0 1 1 *", name="rest")(work)
    await tick.sync()
    ids = []
    for hour, error, minutes in ((10, "", 2), (11, "no row 7", 1), (12, "no row 12", 1), (13, "", 4)):
        clock.time = at(hour)
        await plan_once(store)
        ids.append(await run(store, clock, error, minutes))
        await plan_once(store)
    clock.time = at(14)
    await plan_once(store)
    ids.append((await claim_one(store)).occurrence.id)
    return ids


async def test_overviews_tell_one_story(tick: Everytick, store: AnyStore, clock: ManualClock) -> None:
    ids = await story(tick, store, clock)
    job_id = (await tick.job("report")).job.id

    seen = await tick.window(at(11), at(14), jobs=["report"])
    assert [each.id for each in seen.runs] == ids[:1:-1]
    assert [str(each.status) for each in seen.runs] == ["running", "completed", "failed"]
    assert (seen.runs[2].why, seen.runs[1].job_id, seen.is_cut) == ("no row 12", job_id, False)
    assert (await tick.window(at(10), at(14), limit=2)).is_cut
    held = await tick.window(at(14), at(15))
    assert [each.id for each in held.runs] == ids[-1:], "it began before and runs on"

    last = await tick.last_runs(["rest", job_id, "report"], 2)
    assert [each.id for each in last["report"]] == ids[:2:-1]
    assert last[job_id] == last["report"]
    assert last["rest"] == ()

    lengths = await tick.lengths(["report", "rest"])
    assert list(lengths) == ["report"]
    assert (lengths["report"].count, lengths["report"].p50) == (2, timedelta(minutes=3))
    assert await tick.lengths() == {job_id: lengths["report"]}

    tally = await tick.counts()
    assert tally.counts == ((_S.RUNNING, 1), (_S.COMPLETED, 2), (_S.FAILED, 2))
    assert (await tick.counts("report", after=at(11), through=at(13))).total == 2
    assert (await tick.counts(cause="trigger")).total == 0
    assert not tally.is_estimated

    [cause] = await tick.failures(at(9))
    assert (cause.count, cause.headline, cause.job_ids, cause.last_id) == (2, "no row 12", (job_id,), ids[2])
    assert await tick.alike(cause.fingerprint, at(9)) == cause
    assert await tick.alike(fingerprint("no row 7"), at(12)) is not None
    assert await tick.alike(cause.fingerprint, at(14)) is None

    [day] = await tick.days("report", START.year)
    assert (day.day, day.tally.total, day.took) == (START.date(), 4, timedelta(minutes=3))
    assert await tick.days("report", START.year - 1) == ()


async def test_steps_of_time_are_counted_for_all_by_band_and_by_job(
    tick: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    await story(tick, store, clock)
    [whole] = await tick.buckets(at(1), at(23), "1d")
    assert (whole.at, whole.group, whole.tally.total) == (START.replace(hour=0), "", 5)
    banded = await tick.buckets(at(11), at(14), "1h", by="band")
    assert [(each.at.hour, each.group, each.tally.of(_S.FAILED)) for each in banded] == [
        (11, "crm", 1),
        (12, "crm", 1),
        (13, "crm", 0),
        (14, "crm", 0),
    ]
    own = await tick.buckets(at(11), at(12), by="job", jobs=["report", "rest"])
    assert [(each.at.hour, each.group) for each in own] == [(11, "report"), (12, "report")]
    with pytest.raises(InvalidPolicies, match="by 'tag' is not known"):
        await tick.buckets(at(11), at(12), by="tag")
    with pytest.raises(NotFound, match="there is no job 'nobody'"):
        await tick.counts("nobody")


async def test_coverage_tells_what_is_done_and_a_backfill_repairs_it(
    tick: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    """B7: which data are done, missing or done twice."""
    await story(tick, store, clock)
    ledger = await tick.coverage("report", at(9, 30), at(23))
    assert [(each.through.hour, str(each.state), each.count, each.why) for each in ledger.spans] == [
        (10, "done", 1, ""),
        (12, "missing", 2, "failed"),
        (13, "done", 1, ""),
        (14, "under_way", 1, ""),
    ]
    assert (ledger.through, ledger.is_cut, ledger.is_whole) == (clock.time, False, False)
    [gap] = ledger.missing
    assert gap.after == at(10)
    assert ledger.count(CoverageState.MISSING) == 2
    before = await tick.coverage("report", datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 3, tzinfo=UTC))
    assert [(each.state, each.count) for each in before.spans] == [(CoverageState.UNKNOWN, 3)]
    assert before.is_whole
    assert (await tick.coverage("report", clock.time, at(23))).spans == ()
