"""Limits and brakes: a claim gives no more than may start, and everything that may (S1-040)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everytick import schedule
from everytick.domain.facts import DropLimit, PutBrake, ReleaseBrake, SetLimit, Trigger
from everytick.domain.limits import SORTED_AT_ONCE, Rate
from everytick.domain.lookups import LimitsAndBrakes
from everytick.errors import InvalidLimit
from everytick.stores.base import Claim, NodeScope
from tests.stores.acting import FAILED, AnyStore, began, ended, everything, job, plan_once, put, put_all, reap
from tests.stores.clock import ManualClock


async def asked(store: AnyStore, name: str, count: int, **policies: Any) -> str:
    """Put a job and ask for so many runs of it, all of which may run at once."""
    job_id = (await put(store, job(name, "0 0 1 1 *", overlap="allow", **policies))).job_id
    for number in range(count):
        await store.request(job_id, Trigger(f"{name}-{number}"))
    await plan_once(store)
    return job_id


async def claimed(store: AnyStore, limit: int = 100, node: str = "node-1") -> list[Claim]:
    return await store.claim(await everything(store, node), limit)


def names(claims: list[Claim]) -> list[str]:
    return sorted(claim.job.name for claim in claims)


async def end(store: AnyStore, *claims: Claim, outcome: Any = None) -> None:
    now = await store.now()
    for claim in claims:
        await store.commit_steps([(claim, ended(claim, began(claim, now), now, outcome))])


async def test_no_more_of_a_tag_run_at_once_than_its_limit(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: an end makes room for one."""
    await asked(store, "sync", 4, tags=["crm"])
    await asked(store, "report", 2)
    await store.request("tag:crm", SetLimit(most=2))

    first = await claimed(store)
    assert names(first) == ["report", "report", "sync", "sync"]
    assert await claimed(store, node="node-2") == []

    await end(store, next(claim for claim in first if claim.job.name == "sync"))
    assert names(await claimed(store, node="node-2")) == ["sync"]
    [record] = (await store.ask(LimitsAndBrakes())).reaches
    assert (record.running, record.waiting, record.closed) == (2, 1, "limit of tag crm (2 of 2)")


async def test_what_runs_when_a_limit_is_set_counts(store: AnyStore, clock: ManualClock) -> None:
    """S1-040."""
    await asked(store, "sync", 3, tags=["crm"])
    running = await claimed(store, 2)
    await store.request("tag:crm", SetLimit(most=2))
    assert await claimed(store) == []
    await end(store, running[0])
    assert len(await claimed(store)) == 1


async def test_a_queue_a_job_and_everything_can_be_limited(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: an occurrence starts if every reach that it belongs to has room."""
    await asked(store, "slow", 3, queue="slow")
    await asked(store, "sync", 3, tags=["crm"])
    await store.request("queue:slow", SetLimit(most=2))
    await store.request("job:sync", SetLimit(most=1))
    await store.request("all", SetLimit(most=2))

    first = await claimed(store)
    assert len(first) == 2
    await store.request("all", SetLimit(most=10))
    assert names(first + await claimed(store)) == ["slow", "slow", "sync"]


async def test_a_limit_of_the_default_queue_holds(store: AnyStore, clock: ManualClock) -> None:
    """S1-040."""
    await asked(store, "plain", 3)
    await asked(store, "slow", 1, queue="slow")
    await store.request("queue:default", SetLimit(most=1))
    assert names(await claimed(store)) == ["plain", "slow"]


async def test_thousands_that_must_wait_are_in_nobodys_way(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: they are sorted into their lane once, and a claim never walks past them again."""
    crm = await put(store, job("sync", "* * * * *", tags=["crm"], overlap="allow", recovery="execute_all"))
    clock.move(minutes=SORTED_AT_ONCE + 300)
    for _ in range(14):
        await plan_once(store)
    await asked(store, "report", 1, priority=-1)
    await store.request("tag:crm", SetLimit(most=1))

    got = await claimed(store, 2)
    assert names(got) == ["report", "sync"]
    assert crm.job_id in {claim.job.id for claim in got}
    await asked(store, "later", 1, priority=-1)
    assert names(await claimed(store, 2)) == ["later"]


async def test_the_order_is_that_of_priority_and_age(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: a limit changes who may start, not the order of those who may."""
    await asked(store, "low", 2, priority=-5, tags=["crm"])
    await asked(store, "high", 2, priority=5, tags=["crm"])
    await asked(store, "middle", 1)
    await store.request("tag:crm", SetLimit(most=1))
    assert [claim.job.name for claim in await claimed(store, 1)] == ["high"]
    assert [claim.job.name for claim in await claimed(store, 1)] == ["middle"]


async def test_a_retry_holds_no_place_while_it_waits(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: however short the wait is, another one may start meanwhile; the retry takes its turn again."""
    await asked(store, "sync", 2, tags=["crm"], retry={"max": 3, "interval": "1s"})
    await store.request("tag:crm", SetLimit(most=1))
    [first] = await claimed(store)
    await end(store, first, outcome=FAILED)

    [second] = await claimed(store)
    assert second.handle != first.handle
    clock.move(seconds=2)
    assert await claimed(store) == []
    await end(store, second)
    assert [claim.handle for claim in await claimed(store)] == [first.handle]


async def test_the_place_of_a_dead_nodes_claim_is_kept_until_its_loss_is_decided(
    store: AnyStore, clock: ManualClock
) -> None:
    """S1-040: what was taken over still runs for a limit; what is given back does not."""
    await asked(store, "sync", 2, tags=["crm"], on_orphan="restart")
    await store.request("tag:crm", SetLimit(most=1))
    [lost] = await claimed(store)
    clock.move(minutes=5)
    assert await claimed(store, node="node-2") == []
    await store.leave("node-1")

    await reap(store)

    assert len(await claimed(store, node="node-2")) == 1
    assert await claimed(store, node="node-2") == []
    assert lost.header.holds_place


async def test_a_rate_spreads_starts_unless_bursts_are_allowed(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: burst_allowed is false unless people say so."""
    await asked(store, "spread", 5, tags=["a"])
    await asked(store, "burst", 5, tags=["b"])
    await store.request("tag:a", SetLimit(rate=Rate(4, timedelta(minutes=1))))
    await store.request("tag:b", SetLimit(rate=Rate(4, timedelta(minutes=1), burst=True)))

    assert names(await claimed(store)) == ["burst"] * 4 + ["spread"]
    clock.move(seconds=14)
    assert await claimed(store) == []
    assert (await store.ahead(await everything(store))).ready_at == clock.time + timedelta(seconds=1)
    clock.move(seconds=1)
    assert names(await claimed(store)) == ["spread"]
    clock.move(seconds=46)
    assert names(await claimed(store)) == ["burst", "spread"]


async def test_no_window_has_more_starts_than_the_rate(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: looked at in every window, not only in whole minutes."""
    await asked(store, "sync", 12, tags=["crm"])
    await store.request("tag:crm", SetLimit(rate=Rate(3, timedelta(seconds=10), burst=True)))
    started = []
    for _ in range(40):
        started += [clock.time] * len(await claimed(store))
        clock.move(seconds=1)
    assert len(started) == 12
    for at in started:
        assert sum(1 for other in started if at - timedelta(seconds=10) < other <= at) <= 3


async def test_an_occurrence_that_starts_anew_counts_twice_for_a_rate(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: a retry is a start."""
    await asked(store, "sync", 1, tags=["crm"], retry={"max": 3, "interval": "1s"})
    await store.request("tag:crm", SetLimit(rate=Rate(2, timedelta(minutes=1), burst=True)))
    for _ in range(2):
        [claim] = await claimed(store)
        await end(store, claim, outcome=FAILED)
        clock.move(seconds=3)
    assert await claimed(store) == []


async def test_a_limit_can_be_changed_and_taken_away(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: who changed what, and why, is kept."""
    await asked(store, "sync", 4, tags=["crm"])
    await store.request("tag:crm", SetLimit(most=1, reason="fragile", by="ann"))
    assert len(await claimed(store)) == 1
    await store.request("tag:crm", SetLimit(most=2, by="ben"))
    assert len(await claimed(store)) == 1
    gone = await store.request("tag:crm", DropLimit(reason="mended", by="cid"))
    again = await store.request("tag:crm", DropLimit())
    assert (gone.changed, again.changed) == (True, False)
    assert len(await claimed(store)) == 2
    told = await store.ask(LimitsAndBrakes())
    assert told.reaches == ()
    assert [(each.what, each.reason, each.by) for each in told.changes] == [
        ("limit removed", "mended", "cid"),
        ("limit 2 at once", "", "ben"),
        ("limit 1 at once", "fragile", "ann"),
    ]


async def test_a_tag_that_an_edit_gives_or_takes_decides_from_then_on(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: what waits takes the tags of its newest version."""
    await asked(store, "sync", 3)
    await store.request("tag:crm", SetLimit(most=1))
    await put(store, job("sync", "0 0 1 1 *", overlap="allow", tags=["crm"]))
    await plan_once(store)
    assert len(await claimed(store)) == 1
    await put(store, job("sync", "0 0 1 1 *", overlap="allow", tags=["other"]))
    await plan_once(store)
    assert len(await claimed(store)) == 2


async def test_a_braked_tag_starts_nothing_and_instants_are_still_decided(store: AnyStore, clock: ManualClock) -> None:
    """A brake holds claims back and nothing else: what runs goes on, and what waits follows the job's policies."""
    await put_all(store, [job("sync", tags=["crm"]), job("report")])
    await store.request("tag:crm", PutBrake(reason="crm is down", by="ann"))
    clock.move(hours=1)
    await plan_once(store)
    assert names(await claimed(store)) == ["report"]
    [record] = (await store.ask(LimitsAndBrakes())).reaches
    assert record.closed == "brake of tag crm (crm is down)"
    assert record.waiting == 1

    await store.request("tag:crm", ReleaseBrake(by="ann"))
    assert names(await claimed(store)) == ["sync"]
    assert (await store.ask(LimitsAndBrakes())).reaches == ()


async def test_the_master_brake_holds_everything(store: AnyStore, clock: ManualClock) -> None:
    """So do plans that would claim at once."""
    await put_all(store, [job("sync", tags=["crm"]), job("report", queue="slow")])
    await store.request("all", PutBrake())
    clock.move(hours=1)
    await plan_once(store)
    assert await claimed(store) == []
    await store.request("all", ReleaseBrake(at_once=True))
    assert names(await claimed(store)) == ["report", "sync"]


async def test_a_release_lets_go_at_once_while_another_limit_holds(store: AnyStore, clock: ManualClock) -> None:
    """What waited in the lane of the brake comes back to the others, and the same claim gives it."""
    await put_all(store, [job("sync"), job("report")])
    await store.request("job:sync", PutBrake())
    await store.request("all", SetLimit(most=9))
    clock.move(hours=1)
    await plan_once(store)
    assert names(await claimed(store)) == ["report"]
    await store.request("job:sync", ReleaseBrake(at_once=True))
    assert names(await claimed(store)) == ["sync"]


async def test_a_plan_that_claims_at_once_obeys_limits(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: the offer of a node brings no more than a claim would."""
    from everytick.stores.base import Offer
    from tests.stores.acting import plans_of

    await put(store, job("sync", "* * * * *", tags=["crm"]))
    await store.request("tag:crm", PutBrake())
    clock.move(minutes=1)
    scope = await everything(store)
    async with store.due(scope, 10) as batch:
        done = await store.commit_plans(batch, plans_of(batch), Offer(scope, 10))
    assert list(done.claims) == []


async def test_a_release_is_soft_and_in_order(store: AnyStore, clock: ManualClock) -> None:
    """What had waited starts by priority, then age, at the rate that people give; the rest starts as usual."""
    await asked(store, "low", 2, tags=["crm"])
    await asked(store, "high", 2, tags=["crm"], priority=5)
    await store.request("tag:crm", PutBrake())
    assert await claimed(store) == []
    await store.request("tag:crm", ReleaseBrake(rate=Rate(6, timedelta(minutes=1))))

    order = []
    for _ in range(5):
        order += [claim.job.name for claim in await claimed(store)]
        clock.move(seconds=5)
    assert order == ["high", "high", "low"]
    await asked(store, "new", 2, tags=["crm"], priority=9)
    clock.move(seconds=5)
    assert names(await claimed(store)) == ["new"]
    assert names(await claimed(store)) == ["low", "new"]
    assert (await store.ask(LimitsAndBrakes())).reaches == ()


async def test_a_freeze_window_begins_and_ends_by_itself(store: AnyStore, clock: ManualClock) -> None:
    """A brake with a beginning and an end: what it held back is released softly."""
    await asked(store, "sync", 3, tags=["crm"])
    since, until = clock.time + timedelta(hours=1), clock.time + timedelta(hours=2)
    await store.request("tag:crm", PutBrake(since, until, "stocktaking", "ann"))
    assert len(await claimed(store, 1)) == 1
    clock.move(hours=1)
    assert await claimed(store) == []
    assert (await store.ahead(await everything(store))).ready_at == until
    clock.move(hours=1)
    assert len(await claimed(store)) == 1
    assert await claimed(store) == []
    clock.move(seconds=1)
    assert len(await claimed(store)) == 1


async def test_brakes_to_come_can_be_taken_away(store: AnyStore, clock: ManualClock) -> None:
    """A release ends what holds now; where nothing holds, it takes away what is to come."""
    later = clock.time + timedelta(hours=1)
    await store.request("all", PutBrake(later))
    assert (await store.request("all", ReleaseBrake())).changed
    assert not (await store.request("all", ReleaseBrake())).changed
    assert (await store.ask(LimitsAndBrakes())).reaches == ()


@pytest.mark.parametrize(
    ("reach", "fact", "said"),
    [
        ("crm", SetLimit(most=1), "write all, queue:NAME, tag:NAME or job:NAME"),
        ("tags:crm", SetLimit(most=1), "did you mean 'tag'"),
        ("tag:crm", SetLimit(), "neither a number nor a rate"),
    ],
)
async def test_what_makes_no_sense_is_refused(
    store: AnyStore, clock: ManualClock, reach: str, fact: SetLimit, said: str
) -> None:
    with pytest.raises(InvalidLimit, match=said):
        await store.request(reach, fact)


async def test_a_brake_must_end_after_it_begins(store: AnyStore, clock: ManualClock) -> None:
    with pytest.raises(InvalidLimit, match="not after the beginning"):
        await store.request("all", PutBrake(until=clock.time - timedelta(hours=1)))


async def test_the_end_of_one_that_held_a_place_rings(store: AnyStore, clock: ManualClock) -> None:
    """S1-040: no node idles while one of those that wait may start."""
    await asked(store, "sync", 2, tags=["crm"])
    await store.request("tag:crm", SetLimit(most=1))
    [claim] = await claimed(store)
    while await store.bell(0.01):
        pass
    await end(store, claim)
    assert await store.bell(5)


async def test_a_node_that_cannot_run_a_job_is_not_given_it(store: AnyStore, clock: ManualClock) -> None:
    """C-41: lanes are parts of what a node meets."""
    await asked(store, "sync", 2, tags=["crm"], code="shop")
    await asked(store, "report", 1)
    await store.request("tag:crm", SetLimit(most=1))
    assert names(await store.claim(NodeScope("node-1"), 10)) == ["report"]
    assert names(await store.claim(NodeScope("node-2", ("code:shop",)), 10)) == ["sync"]
    assert names(await store.claim(NodeScope("node-2", ("code:shop",)), 10)) == []


def weekend(**more: Any) -> PutBrake:
    """From Friday 16:00 to Monday 06:00, in Berlin."""
    begins, ends = (schedule(f"{when}; tz=Europe/Berlin") for when in ("cron: 0 16 * * fri", "cron: 0 6 * * mon"))
    return PutBrake(reason="no changes", by="ann", begins=begins, ends=ends, **more)


async def test_a_freeze_window_comes_again_and_ends_softly_each_time(store: AnyStore, clock: ManualClock) -> None:
    """The clocks go forward in the night of the second window, which is an hour shorter."""
    clock.time = datetime(2026, 3, 18, 12, tzinfo=UTC)
    await asked(store, "deploy", 1)
    await store.request("all", weekend())
    windows = []
    for _ in range(2):
        assert len(await claimed(store)) == 1, "nothing holds between two windows"
        [record] = (await store.ask(LimitsAndBrakes())).reaches
        [known] = record.reach.brakes
        assert known.until is not None
        windows.append((known.since, known.until))
        clock.time = known.since
        await asked(store, "deploy", 1)
        await store.request((await store.list())[0].job.id, Trigger(f"at {clock.time}"))
        await plan_once(store)
        assert await claimed(store) == []
        assert (await store.ask(LimitsAndBrakes())).reaches[0].closed.startswith("brake of all until ")
        assert (await store.ahead(await everything(store))).ready_at == known.until
        clock.time = known.until
    assert windows == [
        (datetime(2026, 3, 20, 15, tzinfo=UTC), datetime(2026, 3, 23, 5, tzinfo=UTC)),
        (datetime(2026, 3, 27, 15, tzinfo=UTC), datetime(2026, 3, 30, 4, tzinfo=UTC)),
    ]
    assert len(await claimed(store)) == 1
    changes = (await store.ask(LimitsAndBrakes())).changes
    assert [each.what for each in changes[:2]] == ["release: the end of the brake has come"] * 2


async def test_a_release_ends_the_window_that_is_open_and_the_next_ones_when_none_is(
    store: AnyStore, clock: ManualClock
) -> None:
    clock.time = datetime(2026, 3, 21, 12, tzinfo=UTC)
    await asked(store, "deploy", 2)
    await store.request("all", weekend())
    assert await claimed(store) == [], "the window that is open holds at once"
    await store.request("all", ReleaseBrake(at_once=True))
    assert len(await claimed(store)) == 2
    [record] = (await store.ask(LimitsAndBrakes())).reaches
    assert [each.since for each in record.reach.brakes] == [datetime(2026, 3, 27, 15, tzinfo=UTC)]
    assert (await store.request("all", ReleaseBrake())).changed
    assert (await store.ask(LimitsAndBrakes())).reaches == ()


async def test_windows_that_no_claim_has_seen_are_passed_by(store: AnyStore, clock: ManualClock) -> None:
    clock.time = datetime(2026, 3, 18, 12, tzinfo=UTC)
    await store.request("all", weekend())
    clock.time = datetime(2026, 4, 11, 12, tzinfo=UTC)
    await asked(store, "deploy", 1)
    assert await claimed(store) == [], "it is a Saturday"
    clock.time = datetime(2026, 4, 15, 12, tzinfo=UTC)
    assert len(await claimed(store)) == 1
