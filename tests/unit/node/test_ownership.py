"""Who owns what: orphans, zombies, lost replies, and a store that falls silent."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import pytest

from everytick.domain.lookups import Spans
from everytick.domain.nodes import NodeFacts
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus
from everytick.domain.steps import Step
from everytick.errors import StoreUnavailable
from everytick.node.inbox import OrdersCame
from everytick.node.node import Node
from everytick.node.stopping import StopMode
from everytick.schedules.interval import every
from everytick.stores.base import Ahead, Claim, ClaimKey, CommitAnswer, NodeScope, Orders
from everytick.stores.memory import MemoryStore
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, World, has_run_short_bodies, living, passing, pause


class Unsteady(MemoryStore):
    """A store that can be cut off, and that can lose a reply after it did what was asked."""

    is_down = False
    reply_takes = 0.0
    loses_next_claim = False
    loses_next_commit = False
    loses_next_orphans = False

    def _answer(self) -> None:
        if self.is_down:
            raise StoreUnavailable("the store", "cut off")

    async def now(self) -> datetime:
        self._answer()
        return await super().now()

    async def ahead(self, scope: NodeScope) -> Ahead:
        self._answer()
        return await super().ahead(scope)

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        self._answer()
        found = await super().claim(scope, limit)
        await passing(self.reply_takes if found else 0)
        if self.loses_next_claim and found:
            self.loses_next_claim = False
            raise StoreUnavailable("the store", "the reply was lost")
        return found

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        self._answer()
        found = await super().commit_steps(steps)
        if self.loses_next_commit:
            self.loses_next_commit = False
            raise StoreUnavailable("the store", "the reply was lost")
        return found

    async def orphans(
        self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey] = ()
    ) -> list[Claim]:
        self._answer()
        found = await super().orphans(reaper, limit, silent, keys)
        if self.loses_next_orphans and found:
            self.loses_next_orphans = False
            raise StoreUnavailable("the store", "the reply was lost")
        return found

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        self._answer()
        return await super().beat(node, keys, facts)


async def _silence(node: Node) -> None:
    """Stop the beat and everything that would write, as if the process were frozen."""
    await node._beat.stop()
    await node._loops.end("bell", "planner", "reaper", "janitor", "reports", "unknown", "claims", "writer")


@pytest.mark.parametrize(
    ("on_orphan", "ends", "runs"),
    [
        ("fail", OccurrenceStatus.FAILED_STALE, 1),
        ("restart", OccurrenceStatus.COMPLETED, 2),
        ("resume", OccurrenceStatus.COMPLETED, 2),
    ],
)
def test_what_a_silent_node_ran_is_settled_within_thirty_seconds(
    on_orphan: str,
    ends: OccurrenceStatus,
    runs: int,
    live: Live,
) -> None:
    """E1, C-10: the open attempt is lost, and on_orphan says what becomes of the rest; the zombie records nothing."""

    async def story(world: World) -> None:
        begun: list[float] = []

        async def body() -> None:
            begun.append(world.loop.time())
            await passing(60 if len(begun) == 1 else 1)

        job = await world.define("work", body, on_orphan=on_orphan)
        dying, living_on = world.node(), world.node()
        await dying.start()
        asked = await world.trigger(job)
        await pause("2s")
        await living_on.start()
        await _silence(dying)
        fell_silent = world.loop.time()
        ended = await world.ended(asked, "40s")
        assert world.loop.time() - fell_silent < 31
        assert ended.status is ends
        assert len(begun) == runs
        await pause("100s")
        whole = await world.store.whole(asked)
        assert whole.occurrence == ended, "the zombie has ended meanwhile, and recorded nothing"
        assert whole.attempts[0][1].status is AttemptStatus.LOST
        await living_on.stop()

    live(story)


def test_a_node_that_wakes_again_stops_what_is_no_longer_its_own(live: Live) -> None:
    """E8: its beat tells it, the body is canceled, and nothing of it is written."""

    async def story(world: World) -> None:
        stopped: list[float] = []

        async def body() -> None:
            try:
                await passing(1000)
            except asyncio.CancelledError:
                stopped.append(world.loop.time())
                raise

        job = await world.define("work", body, task_timeout="1h")
        frozen, other = world.node(), world.node()
        await frozen.start()
        asked = await world.trigger(job)
        await pause("2s")
        await _silence(frozen)
        await other.start()
        await world.ended(asked, "40s")
        assert stopped == []
        frozen.inbox.put(OrdersCame(await world.store.beat(frozen.name, frozen.engine.named)))
        await pause("1s")
        assert len(stopped) == 1
        assert not frozen.engine.named
        await other.stop()

    live(story)


def test_a_claim_whose_reply_was_lost_is_adopted_and_run_once() -> None:
    """E2: without this it would stay RUNNING beside a healthy beat."""

    async def story(world: World) -> None:
        begun: list[float] = []

        async def body() -> None:
            begun.append(world.loop.time())

        store = world.store
        assert isinstance(store, Unsteady)
        job = await world.define("work", body)
        node = world.node()
        await node.start()
        store.loses_next_claim = True
        asked = await world.trigger(job)
        ended = await world.ended(asked, "30s")
        assert ended.status is OccurrenceStatus.COMPLETED
        assert len(begun) == 1
        await node.stop()

    living(story, Unsteady)


def test_a_commit_whose_reply_was_lost_is_not_a_lost_race() -> None:
    """G9, E11: the step is sent again and finds its own effect; the body ran once and the end stands."""

    async def story(world: World) -> None:
        begun: list[float] = []

        async def body() -> None:
            begun.append(world.loop.time())

        store = world.store
        assert isinstance(store, Unsteady)
        job = await world.define("work", {"a": body, "b": body})
        node = world.node()
        await node.start()
        store.loses_next_commit = True
        asked = await world.trigger(job)
        ended = await world.ended(asked, "30s")
        assert ended.status is OccurrenceStatus.COMPLETED
        assert len(begun) == 2
        await node.stop()

    living(story, Unsteady)


@pytest.mark.parametrize(("recovery", "made_up"), [("execute_all", 7), ("execute_last", 1), ("mark_as_missed", 0)])
def test_an_outage_of_the_store_stops_firing_and_is_recovered_by_the_strategy(recovery: str, made_up: int) -> None:
    """C-28, G1, G2: red meanwhile, firing again within ten seconds, the outage decided as the job says."""

    async def story(world: World) -> None:
        begun: list[float] = []
        store = world.store
        assert isinstance(store, Unsteady)

        async def body() -> None:
            begun.append(world.loop.time())

        job = await world.define("tick", body, every("10s", start=NOON), recovery=recovery, grace="1s")
        node = world.node()
        await node.start()
        await pause("35s")
        assert node.health.failing_for == 0
        store.is_down = True
        await pause("15s")
        assert node.health.failing_for > 0
        before = len(begun)
        await pause("52s")
        assert len(begun) == before, "nothing fires without the store"
        store.is_down = False
        await pause("10s")
        assert node.health.is_ready
        await pause("57s")
        # Instants at 40 … 100 fell into the outage; 110 … 170 are live again.
        late = [each for each in await world.history(job) if each.late]
        assert len(late) == made_up
        spans = await world.store.ask(Spans(job.id, NOON, world.now()))
        decided = len(await world.history(job)) + sum(span.count or 0 for span in spans)
        assert decided == int((world.now() - NOON) / timedelta(seconds=10))
        await node.stop()

    living(story, Unsteady)


def test_many_nodes_run_every_instant_once(live: Live) -> None:
    """C1, C6, V1: five nodes, one store, each occurrence claimed by one of them."""

    async def story(world: World) -> None:
        seen: list[str] = []

        from everytick.runners.context import Context

        async def body(ctx: Context) -> None:
            seen.append(ctx.occurrence_id)
            await passing(1)

        jobs = [await world.define(f"tick-{n}", body, every("7s", start=NOON)) for n in range(5)]
        nodes = [world.node(slots=3) for _ in range(5)]
        for node in nodes:
            await node.start()
        await pause("209s")
        for node in nodes:
            await node.stop("drain")
        made = [each.id for job in jobs for each in await world.history(job)]
        assert len(made) >= 5 * 29
        assert sorted(seen) == sorted(made)

    live(story)


def test_five_reapers_settle_an_orphan_once(live: Live) -> None:
    """C11: one outcome, one event."""

    async def story(world: World) -> None:
        told: list[str] = []

        async def body() -> None:
            await passing(1000)

        job = await world.define("work", body, task_timeout="1h")
        dying = world.node()
        await dying.start()
        asked = await world.trigger(job)
        await pause("2s")
        reapers = [world.node() for _ in range(5)]
        for node in reapers:
            node.listeners.listen(lambda event: told.append(event.kind) if event.kind == "lost" else None)
            await node.start()
        await _silence(dying)
        await world.ended(asked, "40s")
        await pause("30s")
        assert told == ["lost"]
        for node in reapers:
            await node.stop()

    live(story)


def test_an_owner_that_lives_but_lets_the_deadline_pass_loses_the_occurrence(live: Live) -> None:
    """S0-068, S0-074, E2: past its deadline and the grace period it is failed_stale, though its node still beats."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(10_000)

        job = await world.define("stuck", body, execution_timeout="1m", task_timeout="1d")
        held_up, other = world.node(grace_period="10s"), world.node(grace_period="10s")
        await held_up.start()
        asked = await world.trigger(job)
        await pause("5s")
        # A task that blocks the loop: neither alarms nor anything else happens on it, only the beat goes on.
        held_up._alarms.stop()
        await held_up._loops.end("writer", "claims", "planner", "bell", "reaper")
        await other.start()
        await pause("50s")
        assert await world.status(asked) is OccurrenceStatus.RUNNING
        ended = await world.ended(asked, "60s")
        assert (ended.status, ended.error) == (OccurrenceStatus.FAILED_STALE, "Execution exceeded timeout")
        await other.stop()

    live(story)


def test_a_reaper_never_runs_what_it_took_over() -> None:
    """The reply to its take-over is lost: the orphan is settled in the next round, not adopted and run again."""

    async def story(world: World) -> None:
        begun: list[float] = []
        store = world.store
        assert isinstance(store, Unsteady)

        async def body() -> None:
            begun.append(world.loop.time())
            await passing(1000)

        job = await world.define("work", body, task_timeout="1h")
        dying, other = world.node(), world.node()
        await dying.start()
        asked = await world.trigger(job)
        await pause("2s")
        await other.start()
        await _silence(dying)
        store.loses_next_orphans = True
        ended = await world.ended(asked, "60s")
        assert ended.status is OccurrenceStatus.FAILED_STALE
        await pause("60s")
        assert len(begun) == 1
        await other.stop()

    living(story, Unsteady)


@pytest.mark.parametrize("mode", ["cancel", "drain"])
def test_a_claim_that_is_under_way_when_its_node_stops_is_given_back(mode: StopMode) -> None:
    """H1: the store has given it already; nothing of it began, and no node calls it lost later."""

    async def story(world: World) -> None:
        store = world.store
        assert isinstance(store, Unsteady)

        async def body() -> None:
            raise AssertionError

        job = await world.define("work", body)
        node = world.node()
        await node.start()
        store.reply_takes = 3.0
        asked = await world.trigger(job)
        await pause("1s")
        assert await world.status(asked) is OccurrenceStatus.RUNNING
        await node.stop(mode)
        whole = await world.store.whole(asked)
        assert (whole.occurrence.status, whole.occurrence.owner) == (OccurrenceStatus.PENDING, None)
        assert whole.attempts == ()

    living(story, Unsteady)


def test_after_an_outage_no_living_node_is_taken_for_dead() -> None:
    """E6: all beats are old when the store returns; who runs and beats again keeps what it has."""

    async def story(world: World) -> None:
        store = world.store
        assert isinstance(store, Unsteady)
        begun: list[float] = []

        async def body() -> None:
            begun.append(world.loop.time())
            await passing(300)

        job = await world.define("long", body, task_timeout="1h")
        nodes = [world.node() for _ in range(3)]
        for node in nodes:
            await node.start()
        asked = await world.trigger(job)
        await pause("5s")
        store.is_down = True
        await pause("60s")
        store.is_down = False
        assert (await world.ended(asked)).status is OccurrenceStatus.COMPLETED
        assert len(begun) == 1
        for node in nodes:
            await node.stop()

    living(story, Unsteady)


def test_a_shorter_deadline_of_a_new_definition_harms_nothing_that_runs(live: Live) -> None:
    """A rolling deploy: what runs keeps the rules it began with."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(300)

        job = await world.define("long", body, execution_timeout="1h", task_timeout="1h")
        node, other = world.node(), world.node()
        await node.start()
        await other.start()
        asked = await world.trigger(job)
        await pause("5s")
        await world.define("long", body, execution_timeout="10s", task_timeout="1h")
        assert (await world.ended(asked)).status is OccurrenceStatus.COMPLETED
        await node.stop()
        await other.stop()

    live(story)


def test_orders_are_judged_by_what_their_own_beat_named(live: Live) -> None:
    """A later beat has named it anew: the order of the earlier one is about the claim before."""

    async def story(world: World) -> None:
        begun: list[float] = []

        async def body() -> None:
            begun.append(world.loop.time())
            await passing(60)

        job = await world.define("work", body)
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await pause("1s")
        [key] = node.engine.named
        node.inbox.put(OrdersCame(Orders(gone=(key._replace(fence=key.fence - 1),))))
        assert (await world.ended(asked)).status is OccurrenceStatus.COMPLETED
        assert len(begun) == 1
        await node.stop()

    live(story)


def test_a_store_that_hangs_turns_readiness_red_within_fifteen_seconds() -> None:
    """V5: silence is no answer, though nothing was raised."""

    class Hanging(MemoryStore):
        hangs = False

        async def ahead(self, scope: NodeScope) -> Ahead:
            if self.hangs:
                await passing(10_000)
            return await super().ahead(scope)

        async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
            if self.hangs:
                await passing(10_000)
            return await super().beat(node, keys, facts)

    async def story(world: World) -> None:
        store = world.store
        assert isinstance(store, Hanging)
        node = world.node()
        await node.start()
        await pause("20s")
        assert node.health.failing_for == 0
        store.hangs = True
        await pause("16s")
        assert not node.health.is_ready
        store.hangs = False
        await pause("15s")
        assert node.health.failing_for == 0
        await node.stop()

    living(story, Hanging)


def test_what_was_taken_away_before_it_began_takes_no_slot(live: Live) -> None:
    """Claimed ahead, then another node's: it is passed over, and the slot goes to the next."""

    async def story(world: World) -> None:
        async def long() -> None:
            await passing(60)

        node = world.node(slots=1)
        await node.start()
        await has_run_short_bodies(node)
        jobs = [await world.define(f"long-{number}", long) for number in range(4)]
        asked = [await world.trigger(job) for job in jobs]
        await pause("100ms")
        assert node.engine.slots.waiting > 0
        claim = node.engine.slots.backlog[0].claim
        taken = claim.occurrence
        await world.store.orphans("other", 1, {}, [claim.key])
        for id_ in set(asked) - {taken.id}:
            assert (await world.ended(id_, "10m")).status is OccurrenceStatus.COMPLETED
        assert node.engine.slots.busy == 0
        await node.stop()

    live(story)
