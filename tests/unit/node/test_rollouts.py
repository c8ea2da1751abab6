"""A node tries a new version with a share of the runs, and rolls it back or puts it into force by itself."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from everytick.deciding.notices import notice_job
from everytick.domain.changes import Edit, Put
from everytick.domain.job import Job
from everytick.domain.notices import NoticeKind
from everytick.domain.policies import update_policy
from everytick.domain.upcoming import in_force
from everytick.runners.context import Context
from everytick.schedules.interval import every
from everytick.sources.drafting import edited
from everytick.stores.base import Stored
from everytick.stores.memory import MemoryStore
from tests.unit.node.test_notices import HOOK, Receivers
from tests.unit.node.worlds import NOON, World, living, pause


async def _tried(world: World, policy: str, *, fails: bool, notices_off: bool = False) -> tuple[Job, Receivers]:
    """Let two nodes run a job each minute whose second version is tried, and fails if so said."""

    async def body(context: Context) -> None:
        if fails and context.payload == {"new": True}:
            raise ValueError("boom")

    settings: dict[str, Any] = {"on_failure": HOOK, "on_recovery": HOOK, "payload": {}}
    job = await world.define("nightly", body, every("1m", start=NOON), **settings)
    receivers = Receivers(world, job)
    if notices_off and (sender := notice_job(job, NoticeKind.ON_BREACH)) is not None:
        await world.store.apply([Put(edited(sender, None, {"enabled": False}))], "anna")
    for node in [world.node(), world.node()]:
        await node.start()
    await pause("90s")
    await _edit(world, job, {"payload": {"new": True}}, policy)
    await pause("40m")
    return job, receivers


class SlowToStore(MemoryStore):
    """A store that stores no edit of a rollout until it `goes_on`."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.goes_on = asyncio.Event()
        self.asked: list[Sequence[Edit]] = []

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Wait before the edit of a rollout."""
        if by == "rollout":
            self.asked.append(changes)
            await self.goes_on.wait()
        return await super().apply(changes, by)


class NeverAnswers(MemoryStore):
    """A store that stores each edit of a rollout, and never answers."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.asked: list[Sequence[Edit]] = []

    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]:
        """Wait for ever after the edit of a rollout."""
        stored = await super().apply(changes, by)
        if by == "rollout":
            self.asked.append(changes)
            await asyncio.Event().wait()
        return stored


async def _edit(world: World, job: Job, changed: dict[str, Any], policy: str) -> None:
    """Store an edit of a person, whose version is tried."""
    await world.store.apply([Put(edited(job, None, changed), None, update_policy(policy))], "anna")


async def _in_force(world: World, job: Job) -> tuple[int, object]:
    found = in_force((await world.store.look([job.id]))[job.id].editions, world.now())
    payload = found.settings.payload
    return found.version, None if payload is None else payload.read()


def test_a_version_whose_runs_fail_is_rolled_back_and_told_once() -> None:
    async def story(world: World) -> None:
        job, receivers = await _tried(world, "rollout 50% after 20 failures 2", fails=True)
        assert await _in_force(world, job) == (3, {})
        failed = [each for each in await world.history(job) if each.version == 2]
        assert [str(each.status) for each in failed] == ["failed"] * 3
        [event] = [each for each in receivers.events if "rollout" in each["type"]]
        assert (event["type"], event["data"]["version"]) == ("io.everytick.rollout.rolled_back.v1", 2)
        assert "3 of 3 occurrences failed" in event["data"]["error"]

    living(story)


@pytest.mark.parametrize("fails", [True, False])
def test_the_notice_is_sent_by_others_if_a_node_does_nothing_more_after_the_edit(fails: bool) -> None:
    """The edit that ends a rollout asks for its notice in the same transaction: no node has to live on for it."""

    async def story(world: World) -> None:
        job, receivers = await _tried(world, "rollout 50% after 4", fails=fails)
        assert await _in_force(world, job) == (3, {} if fails else {"new": True})
        assert len(world.store.asked) == 1, "one of the nodes has stored it, and stands still since"
        [event] = [each for each in receivers.events if "rollout" in each["type"]]
        assert event["data"]["version_in_force"] == 3

    living(story, NeverAnswers)


def test_a_verdict_that_is_slow_to_store_holds_up_no_plan() -> None:
    """The edit waits for ever here, and the planner of the only node goes on with every instant."""

    async def story(world: World) -> None:
        async def body() -> None:
            return

        job = await world.define("nightly", body, every("1m", start=NOON))
        await world.node().start()
        await pause("90s")
        await _edit(world, job, {"priority": 1}, "rollout 50% after 4")
        await pause("40m")
        assert len(world.store.asked) == 1, "the verdict is decided again and again, and is asked for once"
        assert [each.scheduled_for for each in await world.history(job)][-1] == NOON + timedelta(minutes=41)

    living(story, SlowToStore)


def test_a_verdict_that_turns_while_it_waits_is_the_one_that_is_stored() -> None:
    """The edit of the first job keeps the other one waiting, whose version fails only after it was found good."""

    async def story(world: World) -> None:
        async def body(context: Context) -> None:
            if context.payload == {"new": True} and context.scheduled_for > NOON + timedelta(hours=1):
                raise ValueError("boom")

        first = await world.define("first", body, every("1m", start=NOON), payload={})
        other = await world.define("other", body, every("1m", start=NOON), payload={})
        await world.node().start()
        await pause("90s")
        for job, policy in ((first, "rollout 50% after 2"), (other, "rollout 50% after 20")):
            await _edit(world, job, {"payload": {"new": True}}, policy)
        await pause("80m")
        assert [await _in_force(world, job) for job in (first, other)] == [(1, {}), (1, {})]
        world.store.goes_on.set()
        await pause("1m")
        assert [await _in_force(world, job) for job in (first, other)] == [(3, {"new": True}), (3, {})]

    living(story, SlowToStore)


def test_no_notice_is_sent_by_a_job_that_people_have_disabled() -> None:
    async def story(world: World) -> None:
        job, receivers = await _tried(world, "rollout 50% after 20 failures 0", fails=True, notices_off=True)
        assert await _in_force(world, job) == (3, {}), "the rollout ends all the same"
        assert [each for each in receivers.events if "rollout" in each["type"]] == []

    living(story)


def test_a_version_whose_runs_end_well_comes_into_force_stage_by_stage() -> None:
    async def story(world: World) -> None:
        job, receivers = await _tried(world, "rollout dry 2 30% 60% after 4", fails=False)
        assert await _in_force(world, job) == (5, {"new": True})
        runs = await world.history(job)
        assert [sum(1 for each in runs if each.version == stage) for stage in (2, 3, 4)] == [0, 4, 4]
        assert {str(each.status) for each in runs[:-1]} == {"completed"}
        assert len(runs) == len({each.scheduled_for for each in runs}), "no instant runs twice"
        [event] = receivers.events
        assert (event["type"], event["data"]["status"]) == ("io.everytick.rollout.finished.v1", "in_force")

    living(story)
