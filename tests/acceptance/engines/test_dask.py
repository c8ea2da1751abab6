"""Engines: functions that a real Dask cluster calls, recorded as if they had been called here."""

import os
import signal
import socket
from typing import Any

import pytest

from everytick import Everytick, on_request
from everytick.app.handle import Handle
from tests.acceptance.engines.conftest import Yard, kill
from tests.acceptance.engines.test_celery import attempts, ended, heard


class Cluster:
    """One scheduler and one worker with two threads."""

    def __init__(self, yard: Yard, allowed_failures: int = 0) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        self._yard, self._allowed_failures = yard, allowed_failures
        self.scheduler = self.start()

    def start(self) -> Any:
        """Start a scheduler at the address."""
        where = ("--host", "127.0.0.1", "--port", self.address.rpartition(":")[2], "--no-dashboard")
        allowed = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(self._allowed_failures)}
        return self._yard.start("-m", "distributed.cli.dask_scheduler", *where, **allowed)

    def worker(self) -> Any:
        """Start a worker."""
        words = ("--nthreads", "2", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        return self._yard.start("-m", "distributed.cli.dask_worker", self.address, *words)


@pytest.fixture
def cluster(yard: Yard) -> Cluster:
    """A cluster without workers."""
    return Cluster(yard)


def application(yard: Yard, cluster: Cluster, target: str = "dask_tasks:add", **policies: Any) -> Everytick:
    known = {"name": "engine-node", "heartbeat": "200ms", "node_timeout": "1s", "reaper_interval": "200ms"}
    tick = Everytick(yard.store, dask=cluster.address, allow_calls=["dask_tasks"], **known)  # type: ignore[arg-type]
    tick.define("work", on_request(), runner="dask", **policies).target(target)
    return tick


async def test_results_and_errors_come_back_into_history(yard: Yard, cluster: Cluster) -> None:
    """The key of the task is the attempt's id, and `Retry.on` knows what was raised."""
    cluster.worker()
    async with application(yard, cluster) as tick:
        found = await ended(tick, {"first": 2, "second": 3})
        [attempt] = await attempts(tick, found.id)
    assert (found.status, found.result, attempt.handed_to) == ("completed", 5, f"dask:{attempt.id}"), yard.lines()
    policies: dict[str, Any] = {"retry": {"max": 1, "interval": "10ms", "on": ["builtins.ArithmeticError"]}}
    async with application(yard, cluster, "dask_tasks:fail", **policies) as tick:
        found = await ended(tick)
        tries = await attempts(tick, found.id)
    assert (found.status, [each.status for each in tries]) == ("failed", ["failed", "failed"])
    assert "by nothing at all" in (tries[0].error or "")
    assert yard.runs() == ["add", "fail", "fail"]


async def test_a_dead_worker_is_a_failure_and_nothing_runs_again(yard: Yard, cluster: Cluster) -> None:
    """Allowed failures are 0, and the retry policy decides."""
    worker = cluster.worker()
    async with application(yard, cluster, "dask_tasks:wait") as tick:
        handle = await tick.trigger("work")
        await heard(yard, "begun")
        cluster.worker()
        kill(worker)
        found = await handle.wait("60s")
    assert (found.status, "KilledWorker" in (found.error or "")) == ("failed", True), found.error
    assert yard.runs() == ["wait"]


@pytest.mark.slow
async def test_what_a_restarted_scheduler_has_forgotten_is_lost(
    yard: Yard, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client counts every task as canceled, though no person asked for it: `on_orphan` decides."""
    monkeypatch.setattr("everytick.runners.engine_losses.UNKNOWN_SECONDS", 1.0)
    worker = cluster.worker()
    async with application(yard, cluster, "dask_tasks:wait", on_orphan="restart") as tick:
        handle = await tick.trigger("work")
        await heard(yard, "begun")
        kill(cluster.scheduler)
        kill(worker)
        cluster.start()
        cluster.worker()
        await heard(yard, "begun")
        yard.told.rpush("go", "done")
        found = await handle.wait("60s")
        tries = await attempts(tick, found.id)
    assert (found.status, found.result) == ("completed", "done"), yard.lines()
    assert [each.status for each in tries] == ["lost", "success"]


async def test_another_node_goes_on_when_the_first_is_killed(yard: Yard, cluster: Cluster) -> None:
    cluster.worker()
    asking = application(yard, cluster)
    process = yard.start("-m", "engine_node", ENGINE_RUNNER="dask", ENGINE_DASK=cluster.address)
    other = Everytick(
        yard.store,
        name="engine-node",
        dask=cluster.address,
        allow_calls=["dask_tasks"],
        heartbeat="200ms",
        node_timeout="1s",
        reaper_interval="200ms",
    )
    other.define("wait", on_request(), runner="dask", task_timeout="2m").target("dask_tasks:wait")
    await other.sync()
    asked = await other.trigger("wait")
    await heard(yard, "begun")
    kill(process)
    async with other:
        yard.told.rpush("go", "done")
        found = await Handle(asked.id, other._opened).wait("60s")
    await asking.close()
    assert (found.status, found.result, yard.runs()) == ("completed", "done", ["wait"])


async def test_a_scheduler_that_would_try_again_is_refused(yard: Yard) -> None:
    cluster = Cluster(yard, allowed_failures=3)
    async with application(yard, cluster) as tick:
        found = await ended(tick, [1, 2])
    assert found.status == "failed"
    assert "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0" in (found.error or "")


async def test_a_function_that_the_node_does_not_allow_is_not_handed_over(yard: Yard, cluster: Cluster) -> None:
    """Threat model, S10: a definition cannot make a cluster call what it likes."""
    tick = application(yard, cluster, "os:getpid")
    async with tick:
        await tick.trigger("work")
        assert tick.node is not None
        why = tick.node.scope._catalogue.why(tick.definitions[0].job)
    assert "allow_calls" in why


async def test_a_cancel_takes_back_what_has_not_begun(yard: Yard, cluster: Cluster) -> None:
    async with application(yard, cluster) as tick:
        handle = await tick.trigger("work", [1, 2])
        assert await handle.cancel("no longer wanted")
        assert (await handle.wait("60s")).status == "canceled"
        worker = cluster.worker()
        assert (await ended(tick, [3, 4])).result == 7
    os.killpg(worker.pid, signal.SIGKILL)
    assert yard.runs() == ["add"]
