"""The kit is the node in real time too: what `simulate` says of the first seconds of jobs, nodes do on each store."""

import asyncio
from itertools import groupby
from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.testing import Chronicle, simulate
from everytick.testing.chronicle import chronicle_of
from tests.acceptance.node.conftest import new_database
from tests.unit.node.worlds import passing

SECONDS = 4
WITHIN = 60.0
"""Seconds: far more than it takes, against a node that hangs."""

TRIES = 5
"""How often a node may be held up: on a busy machine all of its process may wait for half a second and more."""


def application(address: str) -> tuple[Everytick, asyncio.Event]:
    """Return jobs of every second, and what is set once one of them has run often enough."""
    tick, enough, runs = Everytick(address, name="kit"), asyncio.Event(), list[int]()

    @tick.job(every("1s"), skip_if_successful=True)
    async def successful() -> None:
        runs.append(1)
        if len(runs) > SECONDS:
            enough.set()

    @tick.job(every("1s"), task_timeout=None)
    async def skips() -> None:
        await passing(2.5)

    @tick.job(every("1s"), overlap="queue_latest", task_timeout=None)
    async def keeps_the_latest() -> None:
        await passing(60.5)

    @tick.job(every("1s"), overlap="allow", skip_if_successful=True, task_timeout=None)
    async def overlaps() -> None:
        await passing(60.5)

    return tick, enough


def told(chronicle: Chronicle) -> dict[str, list[tuple[bool, str]]]:
    """Return of each job whether its first instants ran, and why not."""
    entries = sorted(chronicle, key=lambda each: (each.job, each.scheduled_for))
    return {
        job: [(each.did_run, _why(each.why)) for each in found][:SECONDS]
        for job, found in groupby(entries, key=lambda each: each.job)
    }


def _why(reason: str) -> str:
    """The reason, without whom it stands behind and since when."""
    return reason.partition(" started ")[0].partition(" behind ")[0].partition(",")[0]


async def lived(address: str) -> dict[str, list[tuple[bool, str]]]:
    """Return what a node did in real time."""
    tick, enough = application(address)
    async with tick:
        async with asyncio.timeout(WITHIN):
            await enough.wait()
        return told(await chronicle_of(await tick._opened()))


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
async def test_the_kit_is_the_node_in_real_time(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """F3, S4-022: on the real clock a run starts a moment after its instant, and decides nothing by that.

    A node that is held up for half a second finds late instants, or that what should have ended still runs. `simulate`
    knows nothing of that: then another node lives. What a node does otherwise by itself, each of them does.
    """
    virtual, _ = application("memory://")
    expected = told(simulate(virtual, "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:10.2Z"))
    for attempt in range(TRIES):
        address = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path / f'kit{attempt}.db'}"}.get(store)
        done = await lived(address or await new_database(request.getfixturevalue("postgres")))
        if done == expected:
            break
    else:
        assert done == expected, f"each of {TRIES} nodes decided otherwise"
