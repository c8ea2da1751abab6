"""orphans, leave and nodes: what may be taken from whom, as the one who asks has seen it, and what is out of time."""

from datetime import timedelta
from typing import Any

from everytick.deciding.advance import advance
from everytick.domain.config import Level, Overrides
from everytick.domain.facts import Amend, Replay
from everytick.domain.outcome import Lost
from everytick.stores.base import Claim, ClaimKey, Commit, Nodes, NodeScope
from tests.stores.acting import (
    FAILED,
    AnyStore,
    began,
    claim_one,
    ended,
    job,
    occurrences,
    plan_once,
    put,
    run_one,
    statuses,
)
from tests.stores.clock import ManualClock


async def _held(store: AnyStore, clock: ManualClock, **policies: Any) -> Claim:
    """Return what node-1 holds of a new job, claimed an hour from now."""
    await put(store, job(**policies))
    clock.move(hours=1)
    await plan_once(store)
    return await claim_one(store)


async def _overdue(store: AnyStore) -> dict[str, tuple[ClaimKey, ...]]:
    return {each.id: each.overdue for each in await store.ask(Nodes())}


async def test_every_sign_of_life_is_counted_and_keeps_what_the_node_holds(store: AnyStore, clock: ManualClock) -> None:
    """A claim, a beat and what a node says of itself make older numbers of it worthless."""
    await store.beat("node-1", [])
    assert [each.beats for each in await store.ask(Nodes())] == [1]
    claim = await _held(store, clock)
    assert [each.beats for each in await store.ask(Nodes())] == [2]
    for beats in (0, 1, 3):
        assert await store.orphans("reaper", 10, {"node-1": beats, "nobody": 0}) == []
    [taken] = await store.orphans("reaper", 10, {"node-1": 2})
    assert (taken.handle, taken.fence) == (claim.handle, claim.fence + 1)


async def test_who_left_has_no_beats(store: AnyStore, clock: ManualClock) -> None:
    """A clean stop need not be waited for; what it left behind is an orphan at once."""
    await store.leave("never heard of")
    claim = await _held(store, clock)
    await store.leave("node-1")
    [left] = await store.ask(Nodes())
    assert (left.id, left.beats, left.holds, left.is_alive(clock.time, timedelta(hours=1))) == ("node-1", 0, 1, False)
    [taken] = await store.orphans("reaper", 10, {"node-1": 0})
    assert taken.handle == claim.handle


async def test_an_owner_that_never_beat_is_known_by_what_it_holds(store: AnyStore, clock: ManualClock) -> None:
    """A reaper that died before it had settled what it took over: the next one takes it at once."""
    await _held(store, clock)
    [seen] = await store.ask(Nodes())
    clock.move(minutes=1)
    await store.orphans("reaper", 10, {"node-1": seen.beats})
    assert [(each.id, each.beats, each.holds, each.beat_at) for each in await store.ask(Nodes())] == [
        ("node-1", seen.beats, 0, clock.time - timedelta(minutes=1)),
        ("reaper", 0, 1, clock.time),
    ]
    [taken] = await store.orphans("another reaper", 10, {"reaper": 0})
    assert taken.fence == 3
    assert await store.commit_steps([(taken, ended(taken, began(taken, clock.time), clock.time))]) == [Commit.COMMITTED]


async def test_a_claim_is_taken_by_its_key_from_a_living_node(store: AnyStore, clock: ManualClock) -> None:
    claim = await _held(store, clock)
    others = [claim.key._replace(fence=claim.fence + 1), claim.key._replace(token=1), ClaimKey(999, 1, 1)]
    assert await store.orphans("reaper", 10, {}, others) == []
    [taken] = await store.orphans("reaper", 10, {}, [claim.key, claim.key])
    assert (taken.handle, taken.fence) == (claim.handle, claim.fence + 1)
    assert await store.orphans("reaper", 10, {}, [claim.key]) == []
    assert await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time))]) == [Commit.STALE]


async def test_ended_and_unowned_occurrences_are_not_taken_over(store: AnyStore, clock: ManualClock) -> None:
    """S0-075: whatever a reaper saw before."""
    claim = await _held(store, clock, retry={"max": 1, "interval": "1h"})
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time, FAILED))])
    [seen] = await store.ask(Nodes())
    assert await store.orphans("reaper", 10, {"node-1": seen.beats}, [claim.key]) == []
    [made] = await occurrences(store)
    assert (made.status, made.fence) == ("awaiting_retry", claim.fence)


async def test_waits_are_freed_however_many_and_of_the_rest_the_oldest_are_given(
    store: AnyStore, clock: ManualClock
) -> None:
    await put(store, job(overlap="allow", recovery="execute_all", retry={"max": 1, "interval": "3s"}))
    clock.move(hours=5)
    await plan_once(store)
    claims = await store.claim(NodeScope("node-1"), 10)
    waits = claims[3:]
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time, FAILED)) for claim in waits])
    [seen] = await store.ask(Nodes())
    taken = await store.orphans("reaper", 2, {"node-1": seen.beats}, [claims[0].key])
    assert [each.handle for each in taken] == sorted(claim.handle for claim in claims[:3])[:2]
    found = await occurrences(store)
    assert sorted((str(each.status), each.owner or "") for each in found) == [
        *[("awaiting_retry", "")] * 2,
        ("running", "node-1"),
        *[("running", "reaper")] * 2,
    ]


# --------------------------------------------------------------------------------------------------------- deadlines


async def test_overdue_is_what_is_held_past_its_deadline_by_the_version_it_was_claimed_under(
    store: AnyStore, clock: ManualClock
) -> None:
    """F6, S0-068: whatever was edited since."""
    claim = await _held(store, clock, execution_timeout="1m")
    clock.move(seconds=59)
    assert await _overdue(store) == {"node-1": ()}
    await put(store, job(execution_timeout="2h", priority=7))
    clock.move(seconds=1)
    assert await _overdue(store) == {"node-1": (claim.key,)}
    [taken] = await store.orphans("reaper", 10, {}, [claim.key])
    assert await _overdue(store) == {"node-1": (), "reaper": (taken.key,)}
    await store.commit_steps([(taken, advance(taken.header, taken.life, Lost(), clock.time))])
    assert await _overdue(store) == {"node-1": ()}


async def test_each_job_has_its_own_limit_in_the_eyes_of_a_reaper(store: AnyStore, clock: ManualClock) -> None:
    """S0-074: an hour is too long for one job, short for another, and nothing to one without a timeout."""
    for name, limit in (("short", "1m"), ("long", "2h"), ("none", None)):
        await put(store, job(name, execution_timeout=limit))
    clock.move(hours=1)
    await plan_once(store)
    keys = {claim.job.name: claim.key for claim in await store.claim(NodeScope("node-1"), 10)}
    clock.move(hours=1)
    assert await _overdue(store) == {"node-1": (keys["short"],)}
    clock.move(hours=1)
    assert set((await _overdue(store))["node-1"]) == {keys["short"], keys["long"]}


async def test_a_claim_after_a_wait_does_not_move_the_deadline(store: AnyStore, clock: ManualClock) -> None:
    """S0-067: the deadline counts from the first start, however long the occurrence was parked."""
    claim = await _held(store, clock, execution_timeout="1m", retry={"max": 1, "interval": "30s"})
    await store.commit_steps([(claim, ended(claim, began(claim, clock.time), clock.time, FAILED))])
    assert await statuses(store) == ["awaiting_retry"]
    clock.move(seconds=70)
    assert await _overdue(store) == {"node-1": ()}, "what nobody holds hangs nowhere"
    again = await claim_one(store)
    assert await _overdue(store) == {"node-1": (again.key,)}


async def test_an_edit_renews_the_deadline_of_what_was_not_claimed_and_leaves_what_it_sets_itself(
    store: AnyStore, clock: ManualClock
) -> None:
    """F6: an occurrence runs under the version that it was first claimed with."""
    stored = await put(store, job(overlap="allow", recovery="execute_all", execution_timeout="1h"))
    amended = Overrides(Level.OCCURRENCE, (("execution_timeout", timedelta(minutes=5)),))
    freed = Overrides(Level.OCCURRENCE, (("execution_timeout", None),))
    for hours, given in ((2, amended), (3, freed)):
        at = clock.time + timedelta(hours=hours)
        await store.request(stored.job_id, Amend(at, given))
    clock.move(hours=3)
    await plan_once(store)
    await put(store, job(overlap="allow", recovery="execute_all", execution_timeout="1m"))
    plain, own, _ = await store.claim(NodeScope("node-1"), 10)
    clock.move(minutes=1)
    assert await _overdue(store) == {"node-1": (plain.key,)}
    clock.move(minutes=4)
    assert await _overdue(store) == {"node-1": (plain.key, own.key)}
    clock.move(days=400)
    assert await _overdue(store) == {"node-1": (plain.key, own.key)}


async def test_a_timeout_that_is_longer_than_anything_is_none(store: AnyStore, clock: ManualClock) -> None:
    await _held(store, clock, execution_timeout=timedelta(days=2_000_000))
    clock.move(days=100_000)
    assert await _overdue(store) == {"node-1": ()}


async def test_the_reaper_ends_only_what_still_runs_and_the_job_goes_on(store: AnyStore, clock: ManualClock) -> None:
    """S0-075: failed_stale with its sentence and its end; then a replay and the next instant may run."""
    claim = await _held(store, clock, execution_timeout="10m")
    by_itself = ended(claim, began(claim, clock.time), clock.time)
    clock.move(minutes=30)
    [taken] = await store.orphans("reaper", 10, {}, [claim.key])
    step = advance(taken.header, taken.life, Lost(), clock.time)
    assert await store.commit_steps([(taken, step)]) == [Commit.COMMITTED]
    assert await store.commit_steps([(claim, by_itself)]) == [Commit.STALE], "its node comes too late"
    assert await store.orphans("reaper", 10, {}, [claim.key, taken.key]) == []

    [made] = await occurrences(store)
    assert (made.status, made.error) == ("failed_stale", "Execution exceeded timeout")
    assert made.ended_at == clock.time
    await store.request(made.job_id, Replay("again", made.id, clock.time, reason="it hung"))
    await plan_once(store)
    await run_one(store)
    clock.move(minutes=30)
    await plan_once(store)
    await run_one(store)
    assert sorted(await statuses(store)) == ["completed", "completed", "failed_stale"]


async def test_of_two_takers_both_get_it_in_turn_and_only_the_last_may_write(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-43: each names the claim as it was; the first is fenced out by the second."""
    await put(store, job())
    clock.move(hours=1)
    await plan_once(store)
    claim = await claim_one(store)
    [first] = await store.orphans("node-2", 1, {}, [claim.key])
    assert await store.orphans("node-3", 1, {}, [claim.key]) == []
    [last] = await store.orphans("node-3", 1, {}, [first.key])
    lost = [(each, advance(each.header, each.life, Lost(), clock.time)) for each in (first, last)]
    assert await store.commit_steps(lost) == [Commit.STALE, Commit.COMMITTED]
