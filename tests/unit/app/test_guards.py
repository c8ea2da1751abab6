"""Guarded operations: nothing is done without a confirmation, and with two people not before the second agrees."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from everytick import Conflict, Everytick, NeedsApproval, NeedsConfirmation, NotFound, Proposal, every
from everytick.app.proposals import proposal_job, read_proposal
from everytick.domain.changes import Edit, Put, Remove, Rename, Tell
from everytick.domain.facts import Pause, Resume
from everytick.domain.policies import UpdatePolicy
from everytick.domain.snapshots import Missed
from everytick.stores.addresses import AnyStore
from tests.stores.acting import plan_once
from tests.stores.clock import START, ManualClock

Operation = Callable[[Everytick, bool], Awaitable[Any]]

OPERATIONS: dict[str, Operation] = {
    "apply": lambda tick, sure: tick.apply([_defined(tick, priority=5)], confirmed=sure),
    "update": lambda tick, sure: tick.update("report", priority=5, confirmed=sure),
    "rename": lambda tick, sure: tick.rename("report", "other", confirmed=sure),
    "disable": lambda tick, sure: tick.disable("report", confirmed=sure),
    "remove": lambda tick, sure: tick.remove("report", confirmed=sure),
}


def _defined(tick: Everytick, **policies: Any) -> Any:
    defined = tick.define("report", every("1h", start="2026-01-01T00:00:00Z"), owner="team", **policies)
    return defined if defined.job.tasks else defined.command("work", "true")


async def stored(tick: Everytick, protected: Any, **policies: Any) -> None:
    await tick.apply([_defined(tick, protected=protected, **policies)])


async def version(tick: Everytick, name: str = "report") -> int:
    return (await tick.job(name)).job.version


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_change_of_a_protected_job_is_confirmed_or_not_made(tick: Everytick, name: str) -> None:
    operation = OPERATIONS[name]
    await stored(tick, True)
    with pytest.raises(NeedsConfirmation, match="job 'report' is protected") as needed:
        await operation(tick, False)

    assert (await version(tick), needed.value.jobs) == (1, ("report",))
    await operation(tick, True)
    assert [record.job.version for record in await tick.jobs() if record.job.name == "report"] in ([2], [])


async def test_the_history_of_a_protected_job_is_deleted_only_if_that_is_confirmed(tick: Everytick) -> None:
    await stored(tick, True)
    await tick.remove("report", confirmed=True)
    with pytest.raises(NeedsConfirmation, match="the deletion of job 'report' and its history"):
        await tick.remove("report", purge=True)

    await tick.remove("report", purge=True, confirmed=True)
    assert await tick.jobs(removed=True) == []


async def test_a_job_without_protection_needs_nothing(tick: Everytick) -> None:
    await stored(tick, False)
    await tick.update("report", priority=5)

    assert await version(tick) == 2


@pytest.mark.parametrize("name", OPERATIONS)
async def test_with_two_people_the_second_one_carries_it_out(tick: Everytick, name: str) -> None:
    operation = OPERATIONS[name]
    await stored(tick, "two_people")
    with pytest.raises(NeedsConfirmation, match="by two people"):
        await operation(tick, False)
    with pytest.raises(NeedsApproval) as proposed:
        await operation(tick, True)

    assert await version(tick) == 1
    [proposal] = await tick.proposals()
    assert (proposal.id, proposal.by, proposal.jobs) == (proposed.value.proposal, "code:shop", ("report",))
    assert [record.job.name for record in await tick.jobs()] == ["report"], "a proposal is no job to people"
    with pytest.raises(Conflict, match="another person must approve it"):
        await tick.approve(proposal.id)
    await tick.approve(proposal.id, by="bob")

    assert await tick.proposals() == []
    left = {record.job.name: record.job for record in await tick.jobs()}
    assert left.get("report") is None or left["report"].version == 2
    with pytest.raises(NotFound):
        await tick.approve(proposal.id, by="carol")


async def test_a_version_says_who_proposed_and_who_approved_it(tick: Everytick, store: AnyStore) -> None:
    await stored(tick, "two_people")
    with pytest.raises(NeedsApproval) as proposed:
        await tick.update("report", priority=5, confirmed=True, by="alice")
    await tick.approve(proposed.value.proposal, by="bob")

    assert (await tick.job("report")).job.settings.priority == 5
    assert [entry.by for entry in await tick.proposals()] == []


async def test_a_proposal_holds_for_the_version_that_it_was_made_for(tick: Everytick) -> None:
    await stored(tick, "two_people")
    for priority in (5, 6):
        with pytest.raises(NeedsApproval):
            await tick.update("report", priority=priority, confirmed=True, by="alice")
    first, second = await tick.proposals()
    await tick.approve(second.id, by="bob")

    with pytest.raises(Conflict, match="is at version 2, and it was made for version 1: propose it again"):
        await tick.approve(first.id, by="bob")
    await tick.reject(first.id, by="alice")
    assert (await tick.proposals(), await version(tick)) == ([], 2)


async def test_a_proposal_expires_and_goes_with_the_next_one(tick: Everytick, clock: ManualClock) -> None:
    await stored(tick, "two_people")
    with pytest.raises(NeedsApproval):
        await tick.remove("report", confirmed=True)
    [old] = await tick.proposals()
    clock.time = START + timedelta(days=8)
    with pytest.raises(Conflict, match="it has expired"):
        await tick.approve(old.id, by="bob")
    with pytest.raises(NeedsApproval) as proposed:
        await tick.remove("report", confirmed=True)

    assert [each.id for each in await tick.proposals()] == [proposed.value.proposal]


@pytest.mark.parametrize(
    "edit",
    [
        Put(_defined(Everytick("memory://", name="shop"), payload={"a": [1]}).job, 3),
        Put(_defined(Everytick("memory://", name="shop"), template="hourly").job, 0),
        Put(_defined(Everytick("memory://", name="shop")).job, 3, UpdatePolicy("graceful", 2)),
        Rename("a", "b", 2),
        Remove("a", timedelta(minutes=10), 2),
        Tell("a", Pause(START, Missed.LAST, "holiday", "alice"), 2),
        Tell("a", Pause(), 2),
        Tell("a", Resume("alice", Missed.CATCH_UP), 2),
        Tell("a", Resume(), None),
    ],
)
def test_a_proposal_reads_back_equal(edit: Edit) -> None:
    proposal = Proposal("1a2b3c4d", "x", ("a",), "alice", START, START + timedelta(days=7), (edit,))

    assert read_proposal(proposal_job(proposal)) == proposal


async def test_a_proposal_never_runs(tick: Everytick, store: AnyStore, clock: ManualClock) -> None:
    await stored(tick, "two_people")
    with pytest.raises(NeedsApproval) as proposed:
        await tick.remove("report", confirmed=True)
    clock.move(minutes=90)
    await plan_once(store)

    page = await tick.history(limit=10)
    assert {occurrence.job_id async for occurrence in page} == {(await tick.job("report")).job.id}
    with pytest.raises(Exception, match="disabled"):
        await tick.trigger(f"proposal-{proposed.value.proposal}")


async def test_a_resumption_that_catches_up_many_runs_is_confirmed(
    tick: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    tick.confirm_above = 20
    await stored(tick, False, recovery="execute_all")
    await store.request((await tick.job("report")).job.id, Pause())
    clock.move(minutes=25 * 60)
    with pytest.raises(NeedsConfirmation, match="25 runs, of unknown length: more than 20"):
        await tick.resume("report", missed="catch_up")

    assert (await tick.status("report")).is_paused
    assert await tick.resume("report", missed="last"), "one run needs no confirmation"


async def test_a_resumption_of_a_job_of_two_people_is_proposed(tick: Everytick, store: AnyStore) -> None:
    await stored(tick, "two_people")
    await store.request((await tick.job("report")).job.id, Pause())
    with pytest.raises(NeedsApproval) as proposed:
        await tick.resume("report", missed="last", confirmed=True, by="alice")
    await tick.approve(proposed.value.proposal, by="bob")

    assert not (await tick.status("report")).is_paused


async def test_a_new_job_that_begins_with_many_runs_is_confirmed(tick: Everytick) -> None:
    tick.confirm_above = 20
    since = {"backfill_from": (START - timedelta(hours=30)).isoformat()}
    with pytest.raises(NeedsConfirmation, match="more than 20"):
        await stored(tick, False, on_create=since, recovery="execute_all")

    assert await tick.jobs() == []


async def test_a_start_leaves_a_changed_definition_of_a_protected_job(
    store: AnyStore, caplog: pytest.LogCaptureFixture
) -> None:
    """No person is there to confirm it; the others are stored."""
    old = Everytick(store, name="shop")
    for name in ("careful", "plain", "gone"):
        old.define(name, every("1h"), protected=name != "plain").command("work", "true")
    await old.sync()
    new = Everytick(store, name="shop")
    for name in ("careful", "plain"):
        new.define(name, every("2h")).command("work", "true")

    assert await new._sync_skipping_refused() == {}

    found = {record.job.name: record.job for record in await new.jobs()}
    assert {name: job.version for name, job in found.items()} == {"careful": 1, "gone": 1, "plain": 2}
    assert "job 'careful' is protected and goes on as it was" in caplog.text
    with pytest.raises(NeedsConfirmation):
        await new.sync()
    changes = {change.name: change.kind for change in await new.sync(confirmed=True)}
    assert changes == {"careful": "changed", "plain": "unchanged", "gone": "kept"}


async def test_a_backfill_of_many_instants_or_of_a_protected_job_is_confirmed(
    tick: Everytick, clock: ManualClock
) -> None:
    tick.confirm_above = 20
    await stored(tick, False)
    clock.move(minutes=25 * 60)
    span = START - timedelta(hours=12), START
    with pytest.raises(NeedsConfirmation, match=r"the backfill of job 'report'.*more than 20"):
        await tick.backfill("report", START - timedelta(hours=30), START)

    assert (await tick.backfill("report", *span)).id is not None
    await tick.update("report", protected=True)
    with pytest.raises(NeedsConfirmation, match="job 'report' is protected"):
        await tick.backfill("report", *span, again=True)
    assert (await tick.backfill("report", *span, again=True, approve=False)).id is not None, "nothing runs yet"
    assert (await tick.backfill("report", *span, again=True, confirmed=True)).id is not None


async def test_a_backfill_of_a_job_of_two_people_is_approved_by_the_second(tick: Everytick, clock: ManualClock) -> None:
    await stored(tick, "two_people")
    clock.move(minutes=25 * 60)
    with pytest.raises(NeedsApproval, match="everytick backfill approve backfill_") as proposed:
        await tick.backfill("report", START - timedelta(hours=3), START, confirmed=True, by="alice")
    planned = await tick.find_backfill(proposed.value.proposal, by="alice")

    assert (await planned.progress()).status == "planned"
    for act in (planned.approve, planned.resume):
        with pytest.raises(Conflict, match="alice has proposed it: another person must approve it"):
            await act()
    assert await planned.approve(by="bob")
    assert (await planned.progress()).approved_by == "bob"
    await planned.pause()
    assert await planned.resume(), "it was approved once"
