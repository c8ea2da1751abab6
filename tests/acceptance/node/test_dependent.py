"""A job that depends on one of another service, each in processes of its own."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from everytick import Everytick
from tests.acceptance.node.fleet import Fleet
from tests.acceptance.node.records import all_records, query


def statuses(address: str, job: str) -> list[str]:
    return [
        status
        for (status,) in query(address, f"select status from everytick.occurrences where job = '{job}' order by id")
    ]


def trigger(address: str, job: str) -> None:
    async def ask() -> None:
        tick = Everytick(address, name="asking")
        try:
            await tick.trigger(job)
        finally:
            await tick.close()

    asyncio.run(ask())


@pytest.mark.parametrize("address", ["postgres"], indirect=True)
def test_a_success_in_one_process_lets_a_job_of_another_run_once(fleet: Fleet, address: str) -> None:
    """S1-042: also after the node that had put it in line was killed."""
    up = fleet.start("dependent", address, "up")
    fleet.hear("ran hello", by=up)
    at = (datetime.now(UTC) - timedelta(minutes=1)).isoformat()
    down = fleet.start("dependent", address, "down", at)
    fleet.wait_until(lambda: statuses(address, "load") == ["queued"], "load waits in line")
    down.kill()
    again = fleet.start("dependent", address, "down", at)

    trigger(address, "extract")
    fleet.hear("ran extract", by=up)
    fleet.hear("ran load", by=again)
    fleet.wait_until(lambda: statuses(address, "load") == ["completed"], "load has run once")

    runs = {whole.occurrence.id: whole.occurrence for whole in all_records(address)}
    [loaded] = [each for each in runs.values() if each.cause == "schedule"]
    [extracted] = [each for each in runs.values() if each.cause == "trigger"]
    assert loaded.started_at is not None
    assert extracted.ended_at is not None
    assert loaded.started_at >= extracted.ended_at
