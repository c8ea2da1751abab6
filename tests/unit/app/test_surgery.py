"""Single future runs are skipped, moved, amended and added, and each is undone (B20); on every store."""

from datetime import datetime, timedelta

import pytest

from everytick.app import Everytick
from everytick.deciding.explanation import Verdict
from everytick.domain.occurrence import Occurrence
from everytick.errors import Conflict, InvalidInstant, InvalidPolicies
from everytick.stores.addresses import AnyStore
from tests.stores.acting import occurrences, plan_once, run_one
from tests.stores.clock import START, ManualClock


def work(pages: int = 1) -> int:
    return pages


@pytest.fixture
async def hourly(tick: Everytick) -> str:
    """An hourly job, stored at nine."""
    tick.job("0 * * * *", name="report", recovery="execute_all", overlap="queue")(work)
    await tick.sync()
    return "report"


def at(hour: int, minute: int = 0) -> datetime:
    return START.replace(hour=hour, minute=minute)


async def live(store: AnyStore, clock: ManualClock, until: datetime) -> list[Occurrence]:
    """Let a node plan every ten minutes until then and run what is there; return what ran, in order."""
    while clock.time < until:
        clock.move(minutes=10)
        await plan_once(store)
        while any(each.status in ("pending", "queued") for each in await occurrences(store)):
            await run_one(store)
            await plan_once(store)
    return sorted((each for each in await occurrences(store) if each.started_at), key=lambda each: each.scheduled_for)


async def test_one_run_is_amended_and_the_next_is_as_usual(
    tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock
) -> None:
    """B20, S0-080: payload and policies of its own, with who and why in its record."""
    await tick.amend(hourly, at(10), payload={"pages": 3}, priority=5, reason="audit", by="ada")
    await tick.amend(hourly, at(10), priority=7, reason="audit", by="ada")
    found = await tick.explain(hourly, at(10))
    assert found.text.endswith("it is amended by ada (audit)")

    amended, usual = await live(store, clock, at(11))

    assert dict(amended.overrides.items)["priority"] == 7
    assert dict(amended.overrides.items)["payload"].read() == {"pages": 3}
    assert amended.reason == "on time, amended by ada (audit)"
    assert usual.overrides.items == ()


async def test_a_run_is_moved_and_amended_in_any_order(
    tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock
) -> None:
    """B20: neither forgets the other; by its new time it can be spoken of too."""
    await tick.amend(hourly, at(10), payload={"pages": 3})
    await tick.move(hourly, at(10), at(10, 20))
    await tick.move(hourly, at(11), at(11, 20))
    await tick.amend(hourly, at(11, 20), payload={"pages": 4})
    assert [(run.at, run.mark, run.instant) for run in await tick.upcoming(hourly, 2)] == [
        (at(10, 20), "moved", at(10)),
        (at(11, 20), "moved", at(11)),
    ]
    ran = await live(store, clock, at(11, 30))

    found = [(each.scheduled_for, dict(each.overrides.items)["payload"].read()) for each in ran]
    assert found == [(at(10, 20), {"pages": 3}), (at(11, 20), {"pages": 4})]
    assert ran[0].reason == "on time, moved from 2026-11-16T10:00:00+00:00 and amended by code:shop"


async def test_what_was_moved_can_be_moved_on_and_skipped_after_its_own_time(
    tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock
) -> None:
    """B20: its old place is decided, the run is still to come."""
    await tick.move(hourly, at(10), at(12, 20))
    await tick.move(hourly, at(11), at(12, 40))
    await live(store, clock, at(11))
    await tick.move(hourly, at(12, 20), at(12, 30))
    await tick.skip(hourly, at(12, 40), by="ada", reason="not needed")
    with pytest.raises(Conflict, match="decided about 2026-11-16 10:00:00"):
        await tick.undo(hourly, at(12, 30))

    ran = await live(store, clock, at(13))

    assert [each.scheduled_for for each in ran] == [at(12), at(12, 30), at(13)]
    skipped = await tick.explain(hourly, at(11))
    assert (skipped.verdict, "by ada (not needed)" in skipped.text) == (Verdict.SKIPPED_BY_HAND, True)


async def test_a_run_is_added_once_and_the_schedule_stays(
    tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock
) -> None:
    """B20: at a time that the schedule does not name; the same time again is the same run."""
    handle = await tick.add(hourly, at(10, 30), {"pages": 2}, reason="late data", by="ada")
    assert (await tick.add(hourly, at(10, 30), {"pages": 2})).id == handle.id
    assert [(run.at, run.is_asked_for) for run in await tick.upcoming(hourly, 3)] == [
        (at(10), False),
        (at(10, 30), True),
        (at(11), False),
    ]
    ran = await live(store, clock, at(11))
    assert [(each.scheduled_for, each.id == handle.id) for each in ran] == [
        (at(10), False),
        (at(10, 30), True),
        (at(11), False),
    ]
    assert ran[1].reason == "asked for, by ada, late data"


async def test_everything_that_was_said_of_a_time_is_undone(
    tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock
) -> None:
    """B20: then all is as the schedule says; who undid it is told."""
    await tick.skip(hourly, at(10))
    await tick.move(hourly, at(11), at(11, 20))
    await tick.amend(hourly, at(12), payload={"pages": 9})
    added = await tick.add(hourly, at(12, 30))
    await tick.move(hourly, at(13), at(13, 10))
    await tick.amend(hourly, at(13), priority=3)
    assert await tick.undo(hourly, at(10), reason="after all", by="bob") == ("skip",)
    assert await tick.undo(hourly, at(11, 20)) == ("move",)
    assert await tick.undo(hourly, at(12)) == ("amend",)
    assert await tick.undo(hourly, at(12, 30), by="bob") == ("add",)
    assert await tick.undo(hourly, at(13)) == ("move", "amend")
    assert (await tick.occurrence(added.id)).occurrence.status == "canceled"
    assert "left as scheduled by bob (after all)" in (await tick.explain(hourly, at(10))).text
    assert [(run.at, run.mark) for run in await tick.upcoming(hourly, 4)] == [
        (at(hour), None) for hour in range(10, 14)
    ]

    ran = await live(store, clock, at(13))

    assert [(each.scheduled_for, each.overrides.items) for each in ran] == [(at(hour), ()) for hour in range(10, 14)]
    assert (await tick.add(hourly, at(13, 30))).id != added.id


async def test_an_added_run_that_was_undone_can_be_added_again(
    tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock
) -> None:
    first = await tick.add(hourly, at(10, 30))
    await tick.undo(hourly, at(10, 30))
    again = await tick.add(hourly, at(10, 30))
    assert again.id != first.id
    ran = await live(store, clock, at(10, 30))
    assert [each.id for each in ran[1:]] == [again.id]


async def test_a_reschedule_is_undone(tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock) -> None:
    """B20: the instants that gave way and are still to come run again."""
    await tick.reschedule(hourly, at(12, 30))
    await live(store, clock, at(10))
    [run] = await tick.upcoming(hourly, 1)
    assert (run.at, run.mark, run.detail) == (at(12, 30), "rescheduled", "by code:shop")
    assert await tick.undo(hourly, at(12, 30)) == ("reschedule",)
    assert [each.scheduled_for for each in await live(store, clock, at(13))] == [at(11), at(12), at(13)]


async def test_skipped_instants_are_listed_with_their_mark_if_wanted(tick: Everytick, hourly: str) -> None:
    """B20: who and why; `next_runs` and a plain `upcoming` list only what runs."""
    await tick.skip(hourly, at(10), by="ada", reason="release")
    listed = await tick.upcoming(hourly, 2, skipped=True)
    assert [(run.at, run.mark, run.detail) for run in listed] == [
        (at(10), "skipped", "by ada (release)"),
        (at(11), None, ""),
    ]
    assert [run.at for run in await tick.upcoming(hourly, 1)] == await tick.next_runs(hourly, 1) == [at(11)]


async def test_what_makes_no_sense_is_refused_with_what_to_do(
    tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock
) -> None:
    """B20: an unknown time names its neighbours, one that is decided is not changed, nothing said is nothing undone."""
    with pytest.raises(
        InvalidInstant, match=r"nearest instants are 2026-11-16T10:00:00\+00:00 and 2026-11-16T11:00:00"
    ):
        await tick.amend(hourly, at(10, 1), priority=1)
    with pytest.raises(InvalidPolicies, match="nothing is amended"):
        await tick.amend(hourly, at(10))
    with pytest.raises(InvalidPolicies, match="overlap cannot be set for one occurrence"):
        await tick.amend(hourly, at(10), overlap="skip")  # type: ignore[call-arg]
    with pytest.raises(InvalidInstant, match="named by the schedule of job 'report': amend it, or trigger"):
        await tick.add(hourly, at(10))
    await tick.skip(hourly, at(11))
    with pytest.raises(InvalidInstant, match="named by the schedule of job 'report': undo what was said of it"):
        await tick.add(hourly, at(11))
    with pytest.raises(InvalidInstant, match="must be later than the store's time"):
        await tick.add(hourly, at(8))
    with pytest.raises(
        Conflict, match=r"nothing to undo of 'report' at 2026-11-16T10:00:00\+00:00; there are changes for .*T11:00"
    ):
        await tick.undo(hourly, at(10))
    asked = await tick.trigger(hourly, at=at(10, 30))
    with pytest.raises(Conflict, match=f"asked for by a trigger: cancel {asked.id}"):
        await tick.undo(hourly, at(10, 30))
    await live(store, clock, at(10))
    for attempt in (tick.skip(hourly, at(10)), tick.amend(hourly, at(10), priority=1)):
        with pytest.raises(InvalidInstant, match="must be later than the store's time"):
            await attempt


async def test_what_a_clock_ahead_has_decided_is_not_changed(
    tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock
) -> None:
    clock.move(hours=2)
    await plan_once(store)
    clock.move(hours=-2)
    with pytest.raises(Conflict, match="has decided about 2026-11-16T10:00:00"):
        await tick.skip(hourly, at(10))


@pytest.mark.parametrize(
    ("missed", "ran"), [("skip", []), ("catch_up", [10, 11, 12]), ("last", [12]), (None, [10, 11, 12])]
)
async def test_what_was_held_becomes_what_the_resume_says(
    tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock, missed: str | None, ran: list[int]
) -> None:
    """A11, S4-015: without a word, what the pause says; each instant is explained."""
    await tick.pause(hourly, missed="catch_up", by="ada")
    clock.time = at(12, 10)
    await plan_once(store)
    assert await tick.resume(hourly, missed=missed, by="bob")  # type: ignore[arg-type]
    found = await live(store, clock, at(12, 50))

    assert [each.scheduled_for for each in found] == [at(hour) for hour in ran]
    verdicts = [(await tick.explain(hourly, at(hour))).verdict for hour in (10, 11, 12)]
    assert verdicts == [Verdict.RAN if hour in ran else Verdict.PAUSED for hour in (10, 11, 12)]
    if missed == "last":
        said = (await tick.explain(hourly, at(11))).text
        assert said.endswith("since the job was paused by ada, resumed by bob, only the newest is run")


async def test_a_pause_that_ends_by_itself_runs_the_newest_that_it_held(
    tick: Everytick, hourly: str, store: AnyStore, clock: ManualClock
) -> None:
    """A11: what a person moved into the pause counts too."""
    await tick.pause(hourly, until=at(12, 10), missed="last")
    await tick.move(hourly, at(10), at(12, 5))
    assert "recovery decides about the newest that was held" in (await tick.explain(hourly, at(11))).text
    found = await live(store, clock, at(12, 20))
    assert [each.scheduled_for for each in found] == [at(12, 5)]
    assert found[0].created_at == at(12, 10) + timedelta(0)
