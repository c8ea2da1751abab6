"""Engines: functions that a real Ray cluster calls, recorded as if they had been called here."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from everytick import Everytick, on_request
from everytick.app.handle import Handle
from tests.acceptance.engines.conftest import PROGRAMS, ROOT, Yard, kill
from tests.acceptance.engines.test_celery import attempts, ended, heard
from tests.acceptance.engines.test_going_on import until
from tests.servers.launch import Server
from tests.servers.ray_cluster import LOOPBACK, Cluster, ray_cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shared_cluster(redis: Server) -> Iterator[Cluster]:
    """A cluster whose workers find the functions of these tests: a start takes ten seconds of a processor."""
    variables = {"ENGINE_TOLD": redis.address, "PYTHONPATH": os.pathsep.join([str(PROGRAMS), str(ROOT)])}
    with ray_cluster(variables) as made:
        yield made


@pytest.fixture
def cluster(shared_cluster: Cluster, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The cluster; the nodes of this process find it on loopback."""
    for name, text in LOOPBACK.items():
        monkeypatch.setenv(name, text)
    return shared_cluster


def application(yard: Yard, address: str, target: str = "ray_tasks:add", **policies: Any) -> Everytick:
    known = {"name": "engine-node", "heartbeat": "200ms", "node_timeout": "1s", "reaper_interval": "200ms"}
    options, name = policies.pop("options", None), policies.pop("name", "work")
    tick = Everytick(yard.store, ray=address, allow_calls=["ray_tasks"], **known)  # type: ignore[arg-type]
    tick.define(name, on_request(), runner="ray", **policies).target(target, options=options)
    return tick


def process_of(yard: Yard, cluster: Cluster) -> Any:
    """Start a node of its own, whose one job waits for a word."""
    return yard.start("-m", "engine_node", ENGINE_RUNNER="ray", ENGINE_RAY=cluster.inside, **LOOPBACK)


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.mark.parametrize("place", ["inside", "outside"])
async def test_results_and_errors_come_back_into_history(yard: Yard, cluster: Cluster, place: str) -> None:
    """Also from outside of the cluster; `Retry.on` knows what was raised, and everytick alone retries."""
    address = getattr(cluster, place)
    policies: dict[str, Any] = {"retry": {"max": 1, "interval": "10ms", "on": ["builtins.ArithmeticError"]}}
    tick = application(yard, address, task_timeout="2m")
    tick.define("fails", on_request(), runner="ray", task_timeout="2m", **policies).target("ray_tasks:fail")
    async with tick:
        handles = [await tick.trigger("work", [number, 1]) for number in range(20)]
        assert [(await handle.wait("120s")).result for handle in handles] == list(range(1, 21))
        [attempt] = await attempts(tick, handles[0].id)
        found = await (await tick.trigger("fails")).wait("60s")
        tries = await attempts(tick, found.id)
    assert attempt.handed_to == f"ray:{attempt.id}"
    assert (found.status, [each.status for each in tries]) == ("failed", ["failed", "failed"])
    assert "by nothing at all" in (tries[0].error or "")
    assert sorted(yard.runs()) == sorted(["add"] * 20 + ["fail"] * 2)


async def test_a_cancel_ends_what_runs_and_takes_back_what_waits(yard: Yard, cluster: Cluster) -> None:
    tick = application(yard, cluster.inside, "ray_tasks:wait", options={"num_cpus": 2}, task_timeout="2m")
    tick.define("next", on_request(), runner="ray").target("ray_tasks:add", options={"num_cpus": 2})
    async with tick:
        runs = await tick.trigger("work")
        pid = int(await heard(yard, "begun"))
        waits = await tick.trigger("next", [1, 2])
        for handle in (waits, runs):
            assert await handle.cancel("no longer wanted")
            assert (await handle.wait("60s")).status == "canceled"
        # Both processors are free again.
        last = await tick.trigger("next", [3, 4])
        assert (await last.wait("60s")).result == 7
    await until(lambda: is_gone(pid))
    assert yard.runs() == ["wait", "add"]


async def test_a_dead_worker_is_a_failure_at_once_and_nothing_runs_again(yard: Yard, cluster: Cluster) -> None:
    """Engine retries are always off, and the retry policy decides."""
    async with application(yard, cluster.inside, "ray_tasks:wait", task_timeout="2m") as tick:
        handle = await tick.trigger("work")
        os.kill(int(await heard(yard, "begun")), signal.SIGKILL)
        found = await handle.wait("60s")
    assert (found.status, "WorkerCrashedError" in (found.error or "")) == ("failed", True), found.error
    assert yard.runs() == ["wait"]


async def test_a_timeout_ends_what_a_worker_that_stands_still_has_begun(yard: Yard, cluster: Cluster) -> None:
    """A lost worker is found by our own deadline, and the retry policy decides what follows."""
    policies: dict[str, Any] = {"task_timeout": "12s", "retry": {"max": 1, "interval": "10ms"}}
    async with application(yard, cluster.inside, "ray_tasks:wait", **policies) as tick:
        handle = await tick.trigger("work")
        pid = int(await heard(yard, "begun"))
        os.kill(pid, signal.SIGSTOP)
        try:
            await heard(yard, "begun")
            # Twice: the connection of the one that stands still may take the first.
            yard.told.rpush("go", "done", "done")
            found = await handle.wait("60s")
            tries = await attempts(tick, found.id)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert (found.status, found.result) == ("completed", "done")
    assert [each.status for each in tries] == ["timeout", "success"]


async def test_another_node_goes_on_when_the_first_is_killed(yard: Yard, cluster: Cluster) -> None:
    """An occurrence handed to an engine survives the node that handed it over; the task runs once."""
    process = process_of(yard, cluster)
    other = application(yard, cluster.inside, "ray_tasks:wait", name="wait", task_timeout="2m")
    await other.sync()
    asked = await other.trigger("wait")
    await heard(yard, "begun")
    kill(process)
    async with other:
        yard.told.rpush("go", "done")
        found = await Handle(asked.id, other._opened).wait("60s")
        tries = await attempts(other, asked.id)
    assert (found.status, found.result, yard.runs()) == ("completed", "done", ["wait"]), yard.lines()
    assert [(each.number, each.status) for each in tries] == [(1, "success")]


async def test_a_node_that_drains_leaves_it_alone(yard: Yard, cluster: Cluster) -> None:
    """Running, stop: an attempt handed to an engine is neither canceled nor waited for; the next node records it."""
    policies: dict[str, Any] = {"task_timeout": "2m"}
    first = application(yard, cluster.inside, "ray_tasks:wait", **policies)
    await first.start()
    handle = await first.trigger("work")
    await heard(yard, "begun")
    async with asyncio.timeout(60):
        await first.stop("drain")
    yard.told.rpush("go", "while no node lived")
    async with application(yard, cluster.inside, "ray_tasks:wait", **policies) as second:
        found = await Handle(handle.id, second._opened).wait("60s")
    assert (found.status, found.result, yard.runs()) == ("completed", "while no node lived", ["wait"])


async def test_a_ledger_that_is_killed_takes_its_tasks_with_it_and_is_made_anew(yard: Yard, cluster: Cluster) -> None:
    """What the next ledger does not know is lost: it cannot run on unseen, and nothing runs twice."""
    tick = application(yard, cluster.inside, "ray_tasks:wait", task_timeout="4m")
    tick.define("next", on_request(), runner="ray", task_timeout="4m").target("ray_tasks:add")
    async with tick:
        handle = await tick.trigger("work")
        pid = int(await heard(yard, "begun"))
        [ledger] = await asyncio.to_thread(cluster.workers, "Ledger")
        os.kill(ledger, signal.SIGKILL)
        await until(lambda: is_gone(pid))
        assert (await (await tick.trigger("next", [1, 2])).wait("60s")).result == 3
        found = await handle.wait("100s")
        tries = await attempts(tick, handle.id)
    assert (found.status, [each.status for each in tries]) == ("failed", ["lost"])
    assert yard.runs() == ["wait", "add"]


async def test_workers_find_no_file_of_everytick_under_the_name_of_a_package(yard: Yard, cluster: Cluster) -> None:
    """Ray adds the folder of a driver's script to the path of its workers; `runners` has files celery.py and ray.py."""
    async with application(yard, cluster.inside, "ray_tasks:path", task_timeout="2m") as tick:
        found = (await ended(tick)).result
    assert [folder for folder in found if folder.endswith("runners")] == []


async def test_what_cannot_be_handed_over_is_told(yard: Yard, cluster: Cluster) -> None:
    """Threat model, S10: a definition cannot make a cluster call what it likes, and options are those of Ray."""
    async with application(yard, cluster.inside, "os:getpid") as tick:
        await tick.trigger("work")
        assert tick.node is not None
        assert "allow_calls" in tick.node.scope._catalogue.why(tick.definitions[0].job)
    async with application(yard, cluster.inside, name="other", options={"queue": "reports"}) as tick:
        found = await (await tick.trigger("other", [1, 2])).wait("60s")
    assert (found.status, "Ray knows no option queue" in (found.error or "")) == ("failed", True), found.error


async def test_a_cluster_that_is_away_harms_no_node_and_is_waited_for(
    yard: Yard, redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray ends a process whose cluster is gone: the node must not be that process. What was handed over is lost."""
    for name, text in LOOPBACK.items():
        monkeypatch.setenv(name, text)
    variables = {"ENGINE_TOLD": redis.address, "PYTHONPATH": os.pathsep.join([str(PROGRAMS), str(ROOT)])}
    with ray_cluster(variables) as own:
        tick = application(yard, own.inside, task_timeout="4m")
        tick.define("lost", on_request(), runner="ray", task_timeout="4m").target("ray_tasks:wait")

        @tick.job(on_request(), name="here")
        async def here() -> str:
            return "as ever"

        async with tick:
            lost = await tick.trigger("lost")
            pid = int(await heard(yard, "begun"))
            await asyncio.to_thread(own.kill)
            await until(lambda: is_gone(pid))
            waits = await tick.trigger("work", [1, 2])
            assert (await (await tick.trigger("here")).wait("60s")).result == "as ever"
            await asyncio.to_thread(own.start)
            assert (await waits.wait("120s")).result == 3
            found = await lost.wait("120s")
            tries = await attempts(tick, lost.id)
    assert (found.status, [each.status for each in tries]) == ("failed", ["lost"])
    assert yard.runs() == ["wait", "add"]
