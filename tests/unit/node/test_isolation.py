"""One that goes wrong disturbs no other: an alarm, an orphan, an end that cannot be written, a cancel, old output."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from everytick import Context, Everytick, every
from everytick.domain.decisions import Plan
from everytick.domain.facts import Cancel
from everytick.domain.nodes import NodeFacts
from everytick.domain.retry import Retry
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import Step
from everytick.errors import Contended, StoreUnavailable
from everytick.node.alarms import Alarms
from everytick.node.events import Event, Happening
from everytick.node.inbox import Arrived, BeatWanted, StoreAway
from everytick.node.logs import Logs
from everytick.stores.base import Claim, ClaimKey, NodeScope, Orders
from everytick.stores.memory import MemoryStore
from everytick.testing.virtual import VirtualLoop, run_virtually
from tests.stores.acting import plan_once
from tests.unit.node.conftest import Live
from tests.unit.node.parts import inbox
from tests.unit.node.refusing import RefusingStore
from tests.unit.node.worlds import NOON, World, living, passing, pause


def test_an_alarm_that_fails_keeps_no_other_from_ringing(caplog: pytest.LogCaptureFixture) -> None:
    async def story(loop: VirtualLoop) -> list[str]:
        rung: list[str] = []
        alarms, heard = Alarms(loop.time), inbox(lambda away: rung.append(away.reason))
        # No other event has a reason.
        alarms.after(1, heard, BeatWanted())
        alarms.after(1, heard, StoreAway("same moment"))
        alarms.after(5, heard, StoreAway("later"))
        await passing(10)
        return rung

    assert run_virtually(story) == ["same moment", "later"]
    assert "internal error while BeatWanted() was handled" in caplog.text


class Picky(RefusingStore):
    """A store that takes nothing about one job, together with others or alone, but its loss."""

    refused = ""
    refuses_loss = False

    def look_at_step(self, job: str, step: Step) -> None:
        lost = any(row.attempt == "lost" for row in step.rows)
        if job == self.refused and (self.refuses_loss or not lost):
            raise ValueError("a text that no database takes")


def test_an_end_that_cannot_be_written_is_settled_as_a_loss_and_holds_up_no_drain() -> None:
    """D7: the job does not stay busy, and a stop that waits for what runs returns."""

    async def story(world: World) -> None:
        async def body() -> None:
            return

        job = await world.define("bad", body, overlap="skip")
        good = await world.define("good", body)
        world.store.refused = "bad"
        node = world.node(grace_period="1s")
        await node.start()
        first = await world.trigger(job)
        fine = await world.trigger(good)
        assert (await world.ended(fine)).status is OccurrenceStatus.COMPLETED
        ended = await world.ended(first)
        assert ended.status is OccurrenceStatus.FAILED_STALE
        await pause("20s")
        assert not node.engine.named
        world.store.refused = ""
        assert (await world.ended(await world.trigger(job, "again"))).status is OccurrenceStatus.COMPLETED
        await node.stop("drain")

    living(story, Picky)


class PickyAndAway(Picky):
    """A store that refuses an end, and does not answer when the node gives that occurrence up."""

    away = 0

    async def orphans(
        self, reaper: str, limit: int, silent: Mapping[str, int], keys: Collection[ClaimKey] = ()
    ) -> list[Claim]:
        if keys and self.away:
            self.away -= 1
            raise StoreUnavailable("the store", "does not answer")
        return await super().orphans(reaper, limit, silent, keys)


@pytest.mark.parametrize("away", [0, 2])
def test_an_end_that_cannot_be_written_is_settled_also_if_the_store_is_away_just_then(away: int) -> None:
    """G9, E2: the next round tries again. Its deadline is to come: what is lost before is not overdue."""

    async def story(world: World) -> None:
        calls: list[str] = []

        async def body() -> None:
            calls.append("called")
            world.store.refused = "bad" if len(calls) == 1 else ""

        job = await world.define("bad", body, on_orphan="resume", execution_timeout="10m")
        world.store.away = away
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        assert (await world.ended(asked)).status is OccurrenceStatus.COMPLETED
        assert len(calls) == 2
        await node.stop()

    living(story, PickyAndAway)


class InTheWay(RefusingStore):
    """A store in which another session holds everything of one job, plans or steps, for a while."""

    plans_of = steps_of = ""

    def look_at_plan(self, job: str, plan: Plan) -> None:
        if job == self.plans_of:
            raise Contended("the store", "canceling statement due to lock timeout")

    def look_at_step(self, job: str, step: Step) -> None:
        if job == self.steps_of:
            raise Contended("the store", "canceling statement due to lock timeout")


async def _free_one_ends(world: World, steps_of: str = "", plans_of: str = "") -> str:
    """Trigger a job that another session is in the way of, and one that is free; return the first after a minute."""

    async def body() -> None:
        return

    held, free = await world.define("held", body), await world.define("free", body)
    world.store.steps_of, world.store.plans_of = steps_of, plans_of
    first, second = await world.trigger(held), await world.trigger(free)
    assert (await world.ended(second, "5s")).status is OccurrenceStatus.COMPLETED
    await pause("1m")
    return first


def test_an_end_in_whose_way_another_session_is_waits_and_no_other_does() -> None:
    """55P03, 57014, 40: each is written alone, none is dropped, and the store does not count as away."""

    async def story(world: World) -> None:
        node = world.node()
        await node.start()
        first = await _free_one_ends(world, steps_of="held")
        assert await world.status(first) is OccurrenceStatus.RUNNING
        assert node.health.is_ready
        world.store.steps_of = ""
        assert (await world.ended(first, "5s")).status is OccurrenceStatus.COMPLETED
        await node.stop()

    living(story, InTheWay)


def test_a_plan_in_whose_way_another_session_is_is_made_soon_after_and_no_other_waits() -> None:
    """55P03, 57014, 40: not put off for a minute, as a plan is that cannot be written at all."""

    async def story(world: World) -> None:
        node = world.node()
        await node.start()
        first = await _free_one_ends(world, plans_of="held")
        assert node.health.is_ready
        world.store.plans_of = ""
        assert (await world.ended(first, "10s")).status is OccurrenceStatus.COMPLETED
        await node.stop()

    living(story, InTheWay)


def test_an_orphan_that_cannot_be_settled_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        async def body() -> None:
            return

        jobs = [await world.define(name, body) for name in ("bad", "good")]
        asked = [await world.trigger(job) for job in jobs]
        await plan_once(world.store)
        assert len(await world.store.claim(NodeScope("gone"), 10)) == 2
        world.store.refused, world.store.refuses_loss = "bad", True
        await pause("1m")
        node = world.node()
        await node.start()
        assert (await world.ended(asked[1])).status is OccurrenceStatus.FAILED_STALE
        assert await world.status(asked[0]) is OccurrenceStatus.RUNNING
        await node.stop()

    living(story, Picky)
    assert "the loss of occurrence" in caplog.text


def test_what_is_canceled_before_it_began_never_seems_to_have_begun(live: Live) -> None:
    async def story(world: World) -> None:
        told: list[Event] = []

        async def long() -> None:
            await passing(100)

        job, other = await world.define("line", long), await world.define("other", long)
        node = world.node(slots=1)
        node.listeners.listen(told.append)
        await node.start()
        first = await world.trigger(job, "first")
        await pause("1s")
        # As if it had been claimed ahead, and waits for the slot.
        second = await world.trigger(other)
        await pause("2s")
        ahead = await world.store.claim(NodeScope(node.name), 1)
        assert [each.occurrence.id for each in ahead] == [second]
        node.engine.inbox.put(Arrived(ahead))
        assert node.engine.slots.waiting == 1
        await world.store.request(second, Cancel("a mistake"))
        ended = await world.ended(second)
        assert (ended.status, ended.error) == (OccurrenceStatus.CANCELED, "a mistake")
        assert (await world.store.whole(second)).attempts == ()
        assert {event.occurrence_id for event in told if event.kind is Happening.STARTED} == {first}
        await node.stop()

    live(story)


class Deaf(MemoryStore):
    """A store that takes no beats for a while."""

    is_deaf = False

    async def beat(self, node: str, keys: Collection[ClaimKey], facts: NodeFacts | None = None) -> Orders:
        if self.is_deaf:
            await asyncio.Event().wait()
        return await super().beat(node, keys, facts)


def test_a_node_that_was_not_heard_of_for_too_long_begins_nothing_it_had_claimed_ahead() -> None:
    """What it holds may be another's by now; the beat that comes through tells, and then it goes on."""

    async def story(world: World) -> None:
        begun: list[float] = []

        async def body() -> None:
            begun.append(world.loop.time())
            await passing(60)

        job, other = await world.define("line", body), await world.define("other", body)
        node = world.node(slots=1, reaper_interval="1h")
        await node.start()
        await world.trigger(job, "first")
        await pause("1s")
        await world.trigger(other)
        await pause("2s")
        node.engine.inbox.put(Arrived(await world.store.claim(NodeScope(node.name), 1)))
        assert node.engine.slots.waiting == 1
        world.store.is_deaf = True
        await pause("90s")
        assert len(begun) == 1
        world.store.is_deaf = False
        await pause("2m")
        assert len(begun) == 2
        await node.stop()

    living(story, Deaf)


def test_alarms_of_many_short_retries_are_not_kept() -> None:
    """Retry(10_000, "1s") of one claim must not cost more with every try."""

    async def story(world: World) -> None:
        async def body() -> None:
            raise ValueError("boom")

        job = await world.define("stubborn", body, retry=Retry(200, "1s"))
        node = world.node()
        await node.start()
        await world.trigger(job)
        await pause("2m")
        [occurrence] = node._owned
        assert len(occurrence.alarms or ()) <= 2
        await node.stop()

    living(story)


def test_old_output_is_removed_beside_the_loop_and_strange_folders_harm_nothing(tmp_path: Path) -> None:
    for name in ("2023-01-01", "2023-99-99", "2024-01-01", "notes"):
        (tmp_path / name / "inside").mkdir(parents=True)
    logs = Logs(tmp_path, "node-1")
    logs.forget_before(NOON)
    logs._sweeper.join(60)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["2024-01-01", "notes"]


async def test_tasks_whose_names_look_alike_as_files_have_files_of_their_own(tmp_path: Path) -> None:
    tick = Everytick(f"sqlite:///{tmp_path}/e.db", name="shop", log_folder=tmp_path / "logs")
    etl = tick.define("etl", every("P1Y"))
    for name in ("a b", "a_b"):

        def say(ctx: Context, name: str = name) -> None:
            ctx.log.warning("from %s", name)

        etl.task(name=name)(say)
    async with tick:
        await (await tick.trigger("etl")).wait(timeout="60s")
    kept = sorted((tmp_path / "logs").rglob("*.log"))
    assert [each.name for each in kept] == ["a_b.1.log", "a_b~1.1.log"]
    assert ["from a_b" in kept[0].read_text(), "from a b" in kept[1].read_text()] == [True, True]


async def test_captured_output_holds_no_secret(tmp_path: Path) -> None:
    """S12: what a task prints and logs, before it is kept."""
    tick = Everytick(f"sqlite:///{tmp_path}/e.db", name="shop", log_folder=tmp_path / "logs")

    @tick.job(every("P1Y"), runner="thread")
    def etl(ctx: Context) -> None:
        ctx.log.warning("dsn=postgres://ann:c4n4ry@db/x")
        print("api_key=", end="")  # noqa: T201
        print("c4n4ry")  # noqa: T201
        print("done")  # noqa: T201

    async with tick:
        await (await tick.trigger("etl")).wait(timeout="60s")
    [kept] = (tmp_path / "logs").rglob("*.log")
    text = kept.read_text()
    assert ("c4n4ry" in text, "api_key=***" in text, "done" in text) == (False, True, True)
