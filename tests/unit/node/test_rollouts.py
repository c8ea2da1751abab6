"""A node tries a new version with a share of the runs, and rolls it back or puts it into force by itself."""

from typing import Any

from everytick.domain.changes import Put
from everytick.domain.job import Job
from everytick.domain.policies import update_policy
from everytick.domain.upcoming import in_force
from everytick.runners.context import Context
from everytick.schedules.interval import every
from everytick.sources.drafting import edited
from tests.unit.node.test_notices import HOOK, Receivers
from tests.unit.node.worlds import NOON, World, living, pause


async def _tried(world: World, policy: str, *, fails: bool) -> tuple[Job, Receivers]:
    """Let two nodes run a job each minute whose second version is tried, and fails if so said."""

    async def body(context: Context) -> None:
        if fails and context.payload == {"new": True}:
            raise ValueError("boom")

    settings: dict[str, Any] = {"on_failure": HOOK, "on_recovery": HOOK, "payload": {}}
    job = await world.define("nightly", body, every("1m", start=NOON), **settings)
    receivers = Receivers(world, job)
    for node in [world.node(), world.node()]:
        await node.start()
    await pause("90s")
    await world.store.apply([Put(edited(job, None, {"payload": {"new": True}}), None, update_policy(policy))], "anna")
    await pause("40m")
    return job, receivers


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
