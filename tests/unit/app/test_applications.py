"""Several applications on one store: names are the store's, owners are applications (C-42)."""

import logging
from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import Conflict


def application(path: Path, name: str, *jobs: str, **settings: str) -> Everytick:
    """Return an application that defines these jobs, each yearly."""
    made = Everytick(f"sqlite:///{path}/e.db", name=name, grace_period="1s", **settings)  # type: ignore[arg-type]
    for job in jobs:
        made.job(every("P1Y"), name=job)(lambda: None)
    return made


async def owners(tick: Everytick) -> dict[str, str]:
    return {record.job.name: record.job.owner for record in await tick.jobs()}


async def test_a_job_of_another_application_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A4, C-42: an ERROR names both owners, the rest is applied, and the node starts."""
    one, two = application(tmp_path, "one", "heartbeat"), application(tmp_path, "two", "heartbeat", "other")
    await one.sync()
    async with two:
        assert await owners(two) == {"heartbeat": "code:one", "other": "code:two"}
        assert (await two.job("heartbeat")).job.version == 1
        ended = await (await two.trigger("other")).wait(timeout="60s")
        assert ended.status is OccurrenceStatus.COMPLETED
    [told] = [each for each in caplog.records if "heartbeat" in each.getMessage() and each.levelno == logging.ERROR]
    assert "code:one" in told.getMessage()
    assert "code:two" in told.getMessage()
    await one.close()


async def test_a_removed_job_leaves_its_name_to_others(tmp_path: Path) -> None:
    """C-42."""
    one, two = application(tmp_path, "one", "heartbeat"), application(tmp_path, "two", "heartbeat")
    await one.sync()
    await one.remove("heartbeat")
    await two.sync()
    assert await owners(two) == {"heartbeat": "code:two"}
    await one.close()
    await two.close()


async def test_an_application_takes_over_what_it_had_under_its_former_name(tmp_path: Path) -> None:
    """C-42: with watermark and line."""
    one = application(tmp_path, "one", "heartbeat")
    await one.sync()
    before = await one.job("heartbeat")
    two = application(tmp_path, "two", "heartbeat", formerly="one")
    await two.sync()
    after = await two.job("heartbeat")
    assert (after.job.id, after.job.owner, after.watermark) == (before.job.id, "code:two", before.watermark)
    async with two:
        ended = await (await two.trigger("heartbeat")).wait(timeout="60s")
        assert ended.status is OccurrenceStatus.COMPLETED
    await one.close()


async def test_a_definition_is_changed_where_it_stands(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """M3, F21, C-42: an edit that the next start would undo is refused, and one that detaches the job lasts."""
    tick = application(tmp_path, "one", "heartbeat", "other")
    await tick.sync()
    with pytest.raises(Conflict, match="the code of application 'one' defines it: change it there, or detach it"):
        await tick.update("heartbeat", overlap="queue")
    with pytest.raises(Conflict, match="detach=True"):
        await tick.rename("other", "another")
    assert await tick.update("heartbeat", overlap="queue", detach=True) == 2
    assert await tick.update("heartbeat", overlap="allow") == 3, "it is the API's own now"
    await tick.sync()
    assert (await tick.job("heartbeat")).job.version == 3
    assert any("was detached" in each.getMessage() and each.levelno == logging.WARNING for each in caplog.records)
    await tick.close()


async def test_what_is_enabled_again_is_no_other_definition_for_a_sync(tmp_path: Path) -> None:
    """C-42: enable and disable are never refused, and a sync adds no version to them."""
    tick = application(tmp_path, "one", "heartbeat")
    await tick.sync()
    await tick.disable("heartbeat")
    await tick.enable("heartbeat")
    version = (await tick.job("heartbeat")).job.version
    await tick.sync()
    assert (await tick.job("heartbeat")).job.version == version
    await tick.close()
