"""What is decided before an instant comes is written when it has, and not if anything changed."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from everytick.domain.decisions import Plan
from everytick.domain.facts import Pause
from everytick.domain.job import Job
from everytick.node.foresight import Foresight
from everytick.schedules.interval import every
from everytick.stores.base import Batch, Commit, Committed, Offer
from everytick.stores.memory import MemoryStore
from tests.unit.node.worlds import NOON, World, living, pause

SOON = NOON + timedelta(seconds=10)
LITTLE = timedelta(milliseconds=300)


async def nothing() -> None:
    return


async def ten(world: World) -> list[Job]:
    """Ten jobs that are due together, planned up to now."""
    jobs = [await world.define(f"job-{number}", nothing, every("1h", start=SOON)) for number in range(10)]
    await world.node().engine.planner.round()
    return jobs


def test_plans_that_were_made_ahead_wait_for_their_instant() -> None:
    """C-20: nothing is decided in the store before its instant has come."""

    async def story(world: World) -> None:
        await ten(world)
        foresight = Foresight(world.store, world.node().scope)
        await foresight.plan_ahead(SOON, lambda: True)
        assert list(foresight.take_plans(SOON - timedelta(microseconds=1), 4)) == []
        parts = list(foresight.take_plans(SOON, 4))
        assert [len(plans) for _, plans in parts] == [4, 4, 2]
        assert [batch.more for batch, _ in parts] == [True, True, False]
        assert {plan.watermark for _, plans in parts for plan in plans} == {SOON}
        assert list(foresight.take_plans(SOON, 4)) == []

    living(story)


def test_a_plan_that_was_made_ahead_is_not_used_long_after_its_instant() -> None:
    """What was on time at the instant may be late by then."""

    async def story(world: World) -> None:
        await ten(world)
        foresight = Foresight(world.store, world.node().scope)
        await foresight.plan_ahead(SOON, lambda: True)
        assert list(foresight.take_plans(SOON + timedelta(seconds=1), 4)) == []

    living(story)


def test_a_busy_node_does_not_plan_ahead() -> None:
    async def story(world: World) -> None:
        await ten(world)
        foresight = Foresight(world.store, world.node().scope)
        await foresight.plan_ahead(SOON, lambda: False)
        assert list(foresight.take_plans(SOON, 4)) == []

    living(story)


class Counting(MemoryStore):
    """Counts what became of plans."""

    def __init__(self, clock) -> None:  # type: ignore[no-untyped-def]
        super().__init__(clock)
        self.stale = 0
        self.committed_at: list[object] = []
        self.along: list[int] = []

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        done = await super().commit_plans(batch, plans, offer)
        self.stale += list(done.answers).count(Commit.STALE)
        self.committed_at += [self._shared.now()] * len([plan for plan in plans if plan.creations])
        self.along += [len(done.claims)] if batch.is_ahead else []
        return done


@pytest.mark.parametrize("deed", ["pause", "edit", "none"])
def test_what_changes_in_the_last_moment_before_an_instant_counts(deed: str) -> None:
    """C-18: a pause or an edit between the decision and its instant makes the decision void."""

    async def story(world: World) -> None:
        job, *others = await ten(world)
        node = world.node()
        await node.start()
        await pause(f"{(SOON - NOON - LITTLE).total_seconds()}s")
        if deed == "pause":
            await world.store.request(job.id, Pause())
        elif deed == "edit":
            await world.define(job.name, nothing, every("1h", start=SOON), task_timeout="5s")
        await pause("1s")
        await node.stop("drain")
        found = await world.history(job)
        assert [each.version for each in found] == {"pause": [], "edit": [2], "none": [1]}[deed]
        for other in others:
            assert [each.scheduled_for for each in await world.history(other)] == [SOON]
        assert world.store.stale == (0 if deed == "none" else 1)
        assert set(world.store.committed_at) == {SOON}

    living(story, Counting)


def test_of_one_instant_the_first_in_line_starts_first_though_only_others_were_foreseen() -> None:
    """S0-104: one that overlaps with itself is decided at the instant, and comes first by its priority."""

    async def story(world: World) -> None:
        begun: list[str] = []

        async def plain() -> None:
            begun.append("plain")

        async def long() -> None:
            begun.append("long")
            await pause("3h")

        await world.define("plain", plain, every("1h", start=SOON))
        await world.define("long", long, every("1h", start=SOON), overlap="allow", priority=1, task_timeout=None)
        node = world.node(slots=2)
        await node.start()
        await pause("1h")
        assert begun == ["long", "plain"]
        await pause("1h")
        assert begun == ["long", "plain", "long"]
        await node.stop()

    living(story)


def test_a_plan_that_was_made_ahead_brings_claims_along_for_the_free_slots() -> None:
    """S4-003: what starts at an instant starts with the commit of its plan."""

    async def story(world: World) -> None:
        await ten(world)
        node = world.node(slots=6)
        await node.start()
        await pause("30s")
        assert world.store.along == [6]
        await node.stop("drain")

    living(story, Counting)


def test_no_claim_comes_along_where_a_job_that_was_not_foreseen_may_have_to_start_first() -> None:
    """S0-104: one that overlaps with itself is decided at the instant, and only then is it known who is first."""

    async def story(world: World) -> None:
        async def long() -> None:
            await pause("3h")

        await world.define("plain", nothing, every("1h", start=SOON))
        await world.define("long", long, every("1h", start=SOON), overlap="allow", priority=1, task_timeout=None)
        node = world.node(slots=2)
        await node.start()
        await pause("30m")
        assert world.store.along == [2]
        await pause("1h")
        assert world.store.along == [2, 0]
        await node.stop()

    living(story, Counting)
