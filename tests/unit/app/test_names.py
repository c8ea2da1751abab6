"""Jobs by name once they were renamed or removed: what has been can still be asked for."""

from datetime import UTC, datetime

import pytest

from everytick.app import Everytick
from everytick.errors import NotFound
from everytick.stores.addresses import AnyStore
from tests.stores.acting import plan_once, run_one
from tests.stores.clock import ManualClock


@pytest.fixture
async def old(tick: Everytick, store: AnyStore, clock: ManualClock) -> str:
    """A job that has run once."""
    tick.job("0 * * * *", name="old")(lambda: None)
    await tick.sync()
    await plan_once(store)
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    return "old"


async def test_a_removed_job_that_was_renamed_can_be_asked_about(tick: Everytick, store: AnyStore, old: str) -> None:
    """F15, S0-133: by its last name, and by the one it was first defined under."""
    await tick.rename(old, "new", detach=True)
    await tick.remove("new")
    await plan_once(store)
    for name in ("new", "old"):
        [ran] = await tick.history(name)
        assert ran.status == "completed"
        said = await tick.explain(name, ran.scheduled_for)
        assert (said.verdict, said.job) == ("ran", "new")
    with pytest.raises(NotFound):
        await tick.trigger("new")
    with pytest.raises(NotFound):
        await tick.remove("old", purge=True)
    await tick.remove("new", purge=True)
    with pytest.raises(NotFound):
        await tick.history("new")


async def test_a_job_is_found_by_every_name_that_it_had(tick: Everytick, store: AnyStore, old: str) -> None:
    """F15: also by one in the middle; the job that had it last has it where two did."""
    for before, after in (("old", "middle"), ("middle", "later"), ("later", "new")):
        await tick.rename(before, after, detach=True)
    for name in ("old", "middle", "later", "new"):
        assert [each.status for each in await tick.history(name)] == ["completed"], name
    with pytest.raises(NotFound):
        await tick.history("never")
    await tick.remove("new")
    assert len(await tick.history("middle")) == 1

    other = tick.define("another", "0 0 1 1 *")
    other.task(name="main")(lambda: None)
    await tick.apply([other])
    await tick.rename("another", "middle", detach=True)
    assert len(await tick.history("middle")) == 0


async def test_a_name_that_another_job_has_is_that_jobs(tick: Everytick, store: AnyStore, old: str) -> None:
    """F15."""
    await tick.rename(old, "new", detach=True)
    await tick.remove("new")
    other = tick.define("another", "0 0 1 1 *")
    other.task(name="main")(lambda: None)
    await tick.apply([other])
    await tick.rename("another", "old", detach=True)
    assert len(await tick.history("old")) == 0
    assert len(await tick.history("new")) == 1


async def test_a_removed_job_whose_name_was_taken_is_listed(
    tick: Everytick, store: AnyStore, clock: ManualClock, old: str
) -> None:
    """S0-133: the one that took the name begins anew; the removed one keeps its history under a name that says when."""
    await tick.remove(old)
    await plan_once(store)
    clock.move(minutes=11)
    await tick.sync()
    assert len(await tick.history(old)) == 0
    [gone] = [each for each in await tick.jobs(removed=True) if each.removed_at is not None]
    assert gone.job.name == f"old (removed {datetime(2026, 11, 16, 10, tzinfo=UTC)})"
    assert len(await tick.history(gone.job.name)) == 1
    assert [each.job.name for each in await tick.jobs()] == ["old"]


async def test_a_job_that_never_was_is_not_found(tick: Everytick, old: str) -> None:
    with pytest.raises(NotFound):
        await tick.history("never")
