"""Operations through the public API, on memory and on SQLite."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everytick.app import Everytick
from everytick.deciding.advance import advance
from everytick.domain.changes import Edit
from everytick.domain.config import UNSET
from everytick.domain.occurrence import Cause
from everytick.domain.outcome import Succeeded
from everytick.domain.payload import payload
from everytick.domain.snapshots import AdjustmentKind
from everytick.domain.steps import AttemptEnded
from everytick.errors import (
    Conflict,
    DuplicateDefinition,
    InvalidInstant,
    InvalidName,
    InvalidPayload,
    InvalidPolicies,
    InvalidSchedule,
    JobDisabled,
    NotFound,
    OccurrenceExists,
    TooManyEditions,
    TransactionsUnsupported,
    VersionConflict,
)
from everytick.schedules.cron import cron
from everytick.schedules.interval import every
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Stored
from tests.stores.acting import FAILED, began, claim_one, ended, occurrences, plan_once, run_one, statuses
from tests.stores.clock import START, ManualClock


def work(x: int = 1) -> int:
    return x


@pytest.fixture
async def hourly(tick: Everytick) -> str:
    """An hourly job, stored at nine."""
    tick.job("0 * * * *", name="report")(work)
    await tick.sync()
    return "report"


def at(hour: int, minute: int = 0) -> datetime:
    return START.replace(hour=hour, minute=minute)


# ------------------------------------------------------------------------------------------------- start-up sync


async def test_a_sync_stores_every_definition_and_a_second_one_changes_nothing(
    tick: Everytick, clock: ManualClock
) -> None:
    """C-21: by content; neither pause nor watermark are touched."""
    tick.job("0 * * * *", name="report")(work)
    tick.define("etl", every("1h")).task(work)

    first = await tick.sync()
    before = await tick.job("report")
    await tick.pause("report", reason="holiday")
    clock.move(minutes=5)
    second = await tick.sync()

    assert [(each.name, each.kind, each.version) for each in first] == [("report", "added", 1), ("etl", "added", 1)]
    assert {each.kind for each in second} == {"unchanged"}
    after = await tick.job("report")
    assert (after.job.version, after.watermark) == (1, before.watermark)
    assert after.pause is not None
    assert after.job.owner == "code:shop"


async def test_a_sync_removes_what_its_code_no_longer_names_ten_minutes_later(
    store: AnyStore, clock: ManualClock
) -> None:
    """C-21, C-22: only what it owns; what comes back within ten minutes keeps its watermark."""
    old = Everytick(store, name="shop")
    for name in ("stays", "goes"):
        old.job("0 * * * *", name=name)(work)
    await old.sync()
    other = Everytick(store, name="bakery")
    other.job("0 * * * *", name="bread")(work)
    await other.sync()
    clock.move(minutes=1)

    new = Everytick(store, name="shop")
    new.job("0 * * * *", name="stays")(work)
    changes = await new.sync()

    assert [(each.name, each.kind) for each in changes] == [("stays", "unchanged"), ("goes", "removed")]
    assert [record.job.name for record in await new.jobs()] == ["bread", "stays"]
    gone = next(iter((await store.get([old.definitions[1].job.id])).values()))
    assert gone.retire_at == START + timedelta(minutes=11)
    clock.move(minutes=9)
    await old.sync()
    back = await old.job("goes")
    assert (back.removed_at, back.watermark) == (None, gone.watermark)


async def test_a_job_without_tasks_is_refused_when_it_is_stored(tick: Everytick) -> None:
    """Nothing could run; the sentence says which job and what to do."""
    tick.define("empty", every("1h"))
    with pytest.raises(InvalidPolicies, match=r"job 'empty': has no task.*a function decorated with its \.task"):
        await tick.sync()
    assert await tick.jobs() == []


async def test_what_an_operator_disabled_stays_so_after_a_deploy(store: AnyStore) -> None:
    """S1-024: until it is enabled; the code's own `enabled` wins."""
    tick = Everytick(store, name="shop")
    tick.job("0 * * * *", name="report")(work)
    await tick.sync()
    await tick.disable("report")

    changed = Everytick(store, name="shop")
    changed.job("30 * * * *", name="report")(work)
    assert [each.kind for each in await tick.sync()] == ["unchanged"]
    assert [each.kind for each in await changed.sync()] == ["changed"]
    record = await changed.job("report")
    assert (record.job.enabled, str(record.job.schedule)) == (False, "cron: 30 * * * *; tz=UTC")

    spoken = Everytick(store, name="shop")
    spoken.job("30 * * * *", name="report", enabled=True)(work)
    await spoken.sync()
    assert (await spoken.job("report")).job.enabled


async def test_a_hook_that_comes_or_goes_is_a_change_and_an_edit_keeps_it(store: AnyStore) -> None:
    """The store must know whether a hook waits for reports."""
    plain, hooked = Everytick(store, name="shop"), Everytick(store, name="shop")
    for tick in (plain, hooked):
        definition = tick.define("etl", every("1h"))
        definition.task(work)
        if tick is hooked:
            definition.on_complete(work)
    await plain.sync()
    assert [each.kind for each in await hooked.sync()] == ["changed"]
    await hooked.update("etl", overlap="queue", detach=True)
    assert (await hooked.job("etl")).job.reports is True


# --------------------------------------------------------------------------------------------- pause, enable, resume


async def test_a_pause_says_until_when_by_whom_and_why(tick: Everytick, hourly: str, clock: ManualClock) -> None:
    """S0-040, S0-043, C-18."""
    await tick.pause(hourly, until=at(12), reason="holiday", by="ada")
    record = await tick.job(hourly)
    assert record.pause is not None
    assert (record.pause.until, record.pause.reason, record.pause.by) == (at(12), "holiday", "ada")
    assert await tick.resume(hourly) is True
    assert await tick.resume(hourly) is False
    await tick.pause(hourly, missed="catch_up")
    paused = (await tick.job(hourly)).pause
    assert paused is not None
    assert (paused.missed, paused.by) == ("catch_up", "code:shop")


async def test_a_pause_that_makes_no_sense_is_refused(tick: Everytick, hourly: str) -> None:
    """Its end in the past, a word that is not known, a job that is not there, a time without a zone."""
    with pytest.raises(InvalidInstant, match="must be later than the store's time, 2026-11-16T09:00:00"):
        await tick.pause(hourly, until=at(9))
    with pytest.raises(InvalidPolicies, match="missed 'drop' is not known"):
        await tick.pause(hourly, missed="drop")  # type: ignore[arg-type]
    with pytest.raises(InvalidInstant, match="has no time zone"):
        await tick.pause(hourly, until=datetime(2026, 12, 1))  # noqa: DTZ001 - that is the point
    with pytest.raises(NotFound, match="there is no job 'reprot'"):
        await tick.pause("reprot")


async def test_stop_and_start_of_one_job_are_disable_and_enable(
    tick: Everytick, store: AnyStore, hourly: str, clock: ManualClock
) -> None:
    """C-39, S0-040, S0-041, S0-042: twice is no-op; after a start the first run waits for its instant; S1-024."""
    assert await tick.disable(hourly) is True
    assert await tick.disable(hourly) is False
    clock.move(hours=2)
    await plan_once(store)
    assert await statuses(store) == []
    with pytest.raises(JobDisabled):
        await tick.trigger(hourly)
    assert await tick.enable(hourly) is True
    assert await tick.enable(hourly) is False
    clock.move(minutes=30)
    await plan_once(store)
    assert await statuses(store) == []
    clock.move(minutes=30)
    await plan_once(store)
    assert [each.scheduled_for for each in await occurrences(store)] == [at(12)]


# ------------------------------------------------------------------------------------------------------- requests


async def test_a_trigger_runs_beside_the_schedule_and_its_handle_waits_for_the_end(
    tick: Everytick, store: AnyStore, hourly: str
) -> None:
    """S1-022: next_run is unchanged; the payload is the occurrence's own."""
    before = await tick.next_runs(hourly, 1)
    handle = await tick.trigger(hourly, payload={"x": 5}, by="ada")
    await plan_once(store)
    await run_one(store)
    ended = await handle.wait(timeout="60s")
    assert (ended.id, ended.status, ended.cause) == (handle.id, "completed", Cause.TRIGGER)
    assert ended.overrides.get("payload").read() == {"x": 5}
    assert await tick.next_runs(hourly, 1) == before


async def test_the_same_key_is_the_same_occurrence(tick: Everytick, hourly: str) -> None:
    """S0-057: with another payload it is refused."""
    one = await tick.trigger(hourly, key="order-7", payload={"x": 1})
    two = await tick.trigger(hourly, key="order-7", payload={"x": 1})
    assert one.id == two.id
    assert (await tick.trigger(hourly)).id != (await tick.trigger(hourly)).id
    with pytest.raises(OccurrenceExists, match="occurrence already exists: occ_"):
        await tick.trigger(hourly, key="order-7", payload={"x": 2})


async def test_a_trigger_that_makes_no_sense_is_refused_before_anything_is_written(
    tick: Everytick, store: AnyStore, hourly: str
) -> None:
    """Payload, overlap, key and name."""
    with pytest.raises(InvalidPayload, match="holds a set"):
        await tick.trigger(hourly, payload={"x": {1}})
    with pytest.raises(InvalidPolicies, match="overlap 'maybe' is not known"):
        await tick.trigger(hourly, overlap="maybe")  # type: ignore[arg-type]
    with pytest.raises(InvalidName, match="request key name '': is empty"):
        await tick.trigger(hourly, key="")
    with pytest.raises(NotFound):
        await tick.trigger("nobody")
    await plan_once(store)
    assert await statuses(store) == []


async def test_a_handle_gives_up_when_it_is_told_to(tick: Everytick, hourly: str) -> None:
    """No node runs: it never ends."""
    handle = await tick.trigger(hourly)
    with pytest.raises(TimeoutError, match=r"occurrence occ_\S+ has not ended within .*s: no node has planned it yet"):
        await handle.wait(timeout="30ms")
    assert repr(handle) == f"Handle('{handle.id}')"


async def test_a_decorated_function_is_triggered_with_its_own_arguments(tick: Everytick, store: AnyStore) -> None:
    """They are the payload, over what the definition gives every occurrence; it is stored if it was not yet."""

    @tick.job("0 * * * *", payload={"x": 1, "y": 2})
    def add(x: int, y: int = 0) -> int:
        return x + y

    handle = await add.trigger(5)
    await plan_once(store)
    await run_one(store)
    assert (await handle.wait()).overrides.get("payload").read() == {"x": 5, "y": 2}
    assert add(1, 2) == 3
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        await add.trigger(1, z=3)  # type: ignore[call-overload]


async def test_a_replay_is_a_new_occurrence_linked_to_the_old_one(
    tick: Everytick, store: AnyStore, hourly: str, clock: ManualClock
) -> None:
    """S0-102: with its reason; it keeps the original's time, cover and payload."""
    first = await tick.trigger(hourly, payload={"x": 7})
    await plan_once(store)
    with pytest.raises(Conflict, match="is pending: replay it once it has ended"):
        await tick.replay(first.id)
    await run_one(store, FAILED)
    clock.move(minutes=1)
    handle = await tick.replay(first.id, reason="fixed", by="ada")
    await plan_once(store)
    await run_one(store)
    original, again = await first.wait(), await handle.wait()
    assert (original.status, again.status) == ("failed", "completed")
    assert (again.cause, again.replay_of, again.scheduled_for) == (Cause.REPLAY, first.id, original.scheduled_for)
    assert again.overrides.get("payload").read() == {"x": 7}
    assert again.reason is not None
    assert "fixed" in again.reason
    with pytest.raises(NotFound):
        await tick.replay("occ_00000000-0000-5000-8000-000000000000")


async def test_a_replay_from_one_task_on_keeps_what_the_tasks_before_it_returned(
    tick: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    """S0-102: only that task and those after it are run again, and see the results as if all had run."""
    etl = tick.define("etl", every("P1Y"))
    for name in ("extract", "load", "tell"):
        etl.task(name=name)(work)
    await tick.sync()
    first = await tick.trigger("etl")
    await plan_once(store)
    claim = await claim_one(store)
    step = began(claim, clock.time)
    for name, outcome in (("extract", Succeeded(payload([1, 2]))), ("load", FAILED)):
        step = advance(claim.header, step.after, AttemptEnded(name, 1, outcome), clock.time)
        await store.commit_steps([(claim, step)])
    assert (await first.wait()).status == "failed"

    with pytest.raises(Conflict, match="task 'load' is failed: replay from 'load'"):
        await tick.replay(first.id, from_task="tell")
    with pytest.raises(NotFound, match="task 'nothing'"):
        await tick.replay(first.id, from_task="nothing")
    handle = await tick.replay(first.id, from_task="load", reason="the disk was full")
    await plan_once(store)
    again = await claim_one(store)
    assert [start.task for start in began(again, clock.time).starts] == ["load"]
    assert again.life.runs[0].result == payload([1, 2])
    assert (again.occurrence.id, again.occurrence.replay_of) == (handle.id, first.id)


async def test_cancel_ends_what_waits_and_says_who_asked(tick: Everytick, store: AnyStore, hourly: str) -> None:
    """What has ended is not canceled again."""
    handle = await tick.trigger(hourly)
    await plan_once(store)
    assert await tick.cancel(handle.id, reason="a mistake", by="ada") is True
    assert await tick.cancel(handle.id) is False
    ended = await handle.wait()
    assert (ended.status, ended.error) == ("canceled", "canceled by ada: a mistake")
    with pytest.raises(NotFound):
        await tick.cancel("occ_00000000-0000-5000-8000-000000000000")


async def test_a_backfill_asks_for_the_past_instants_that_have_no_occurrence(
    tick: Everytick, store: AnyStore, hourly: str, clock: ManualClock
) -> None:
    """One after the other, oldest first; a dry run only tells which. It is known by its id, and tells how it goes."""
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    clock.move(minutes=30)
    dry = await tick.backfill(hourly, at(6), at(10), dry_run=True)
    assert (dry.id, dry.instants, dry.more) == (None, (at(7), at(8), at(9)), False)
    assert (await tick.backfill(hourly, at(9, 30), at(10))).id is None

    done = await tick.backfill(hourly, at(6), at(23), by="ada", reason="lost")
    for _ in range(3):
        await plan_once(store)
        await run_one(store)
        clock.move(seconds=1)
    await plan_once(store)
    made = [each.scheduled_for for each in await occurrences(store) if each.cause is Cause.BACKFILL]
    assert made == [at(7), at(8), at(9)]
    told = await done.wait("1m")
    assert (told.status, told.done, told.left, told.order.by, told.order.reason) == ("completed", 3, 0, "ada", "lost")
    assert await tick.backfills(hourly) == [told]
    again = await tick.backfill(hourly, at(9), at(10), again=True, dry_run=True)
    assert again.instants == (at(10),)


async def test_a_backfill_can_be_told_how_it_goes_with_what_runs(tick: Everytick, store: AnyStore, hourly: str) -> None:
    """F7: at once, though the job itself would let them wait; and nothing that makes them push each other aside."""
    with pytest.raises(InvalidPolicies, match='overlap="queue", or overlap="allow"'):
        await tick.backfill(hourly, at(6), at(8), overlap="cancel_running")  # type: ignore[arg-type]
    with pytest.raises(InvalidPolicies, match="a whole number from 1 to 6,000"):
        await tick.backfill(hourly, at(6), at(8), rate=0)
    await tick.backfill(hourly, at(6), at(8), overlap="allow", rate=120)

    await plan_once(store)

    assert [str(each.status) for each in await occurrences(store)] == ["pending", "pending"]


async def test_a_backfill_waits_for_its_approval_and_is_paused_resumed_and_canceled(
    tick: Everytick, store: AnyStore, hourly: str, clock: ManualClock
) -> None:
    """A23, B5: by its handle, which is found again by its id; each says who."""
    planned = await tick.backfill(hourly, at(4), at(8), approve=False, by="ada")
    await plan_once(store)
    assert await occurrences(store) == []
    assert planned.id is not None
    found = await tick.find_backfill(planned.id, by="eve")
    assert await found.approve()
    assert not await found.approve()
    await plan_once(store)
    assert await found.pause()
    told = await planned.progress()
    assert (told.status, told.approved_by, told.created, told.left) == ("paused", "eve", 1, 3)
    assert told.time_left == timedelta(seconds=3)
    assert await found.resume()
    assert await tick.cancel(planned.id, by="bob")
    assert (await found.wait("10s")).changed_by == "bob"
    with pytest.raises(NotFound):
        await tick.find_backfill("backfill_none")
    assert [str(each.status) for each in await occurrences(store)] == ["canceled"]


async def test_a_backfill_of_what_is_to_come_is_refused(tick: Everytick, hourly: str) -> None:
    """Or one whose end comes before its beginning."""
    wrong = ((at(10), at(12), "now: a backfill asks for the past"), (at(8), at(7), "the end of the backfill"))
    for after, through, said in wrong:
        with pytest.raises(InvalidInstant, match=said):
            await tick.backfill(hourly, after, through)


# ------------------------------------------------------------------------------------------------ single instants


async def test_one_single_instant_is_skipped_or_moved(
    tick: Everytick, store: AnyStore, hourly: str, clock: ManualClock
) -> None:
    """The others stay; a moved one runs at its new time under its old id."""
    await tick.skip(hourly, at(10), by="ada", reason="release")
    await tick.move(hourly, "2026-11-16T11:00:00Z", at(11, 20))
    [snapshot] = (await store.look([(await tick.job(hourly)).job.id])).values()
    said = {each.at: each for each in snapshot.adjustments}
    assert (said[at(10)].kind, said[at(10)].by, said[at(10)].reason) == (AdjustmentKind.SKIP, "ada", "release")
    assert await tick.next_runs(hourly, 3) == [at(11, 20), at(12), at(13)]
    for _ in range(8):
        clock.move(minutes=20)
        await plan_once(store)
    assert [each.scheduled_for for each in await occurrences(store)] == [at(11, 20)]


async def test_a_move_or_skip_that_makes_no_sense_is_refused(tick: Everytick, hourly: str) -> None:
    """Onto itself, of an instant that the schedule does not name, in the past."""
    near = "not named by the schedule of job 'report'; the nearest instants are 2026-11-16T10:00:00.00:00 and"
    with pytest.raises(InvalidInstant, match=near):
        await tick.skip(hourly, at(10, 1))
    with pytest.raises(InvalidInstant, match=near):
        await tick.move(hourly, at(10, 1), at(12, 30))
    with pytest.raises(InvalidInstant, match="is where it stands already"):
        await tick.move(hourly, at(10), "2026-11-16T11:00:00+01:00")
    with pytest.raises(InvalidInstant, match="must be later than the store's time"):
        await tick.move(hourly, at(9), at(12, 30))
    with pytest.raises(InvalidInstant, match="must be later than the store's time"):
        await tick.move(hourly, at(10), at(8))
    assert await tick.next_runs(hourly, 1) == [at(10)]


async def test_a_reschedule_sets_the_next_run(
    tick: Everytick, store: AnyStore, hourly: str, clock: ManualClock
) -> None:
    """S1-023: the instants before it give way, those after it stay."""
    await tick.reschedule(hourly, at(12, 30))
    assert await tick.next_runs(hourly, 2) == [at(12, 30), at(13)]
    clock.move(hours=3, minutes=30)
    await plan_once(store)
    assert [each.scheduled_for for each in await occurrences(store)] == [at(12, 30)]
    with pytest.raises(InvalidInstant, match="must be later"):
        await tick.reschedule(hourly, at(9))


# -------------------------------------------------------------------------------------------------- the definitions


async def test_an_update_changes_what_it_names_and_nothing_else(tick: Everytick, hourly: str) -> None:
    """A new version; UNSET takes a policy back; the guard is the version that was read."""
    assert (
        await tick.update(hourly, retry={"max": 3, "interval": "10s"}, overlap="queue", expected_version=1, detach=True)
        == 2
    )
    assert await tick.update(hourly, "30 * * * *", overlap=UNSET, detach=True) == 3
    job = (await tick.job(hourly)).job
    assert job.schedule == cron("30 * * * *", tz="UTC")
    assert (job.settings.overlap, job.settings.retry is not None) == ("skip", True)
    assert [task.name for task in job.tasks] == ["report"]
    with pytest.raises(VersionConflict, match="is at version 3, not 2"):
        await tick.update(hourly, expected_version=2, overlap="allow", detach=True)
    assert (await tick.job(hourly)).job.version == 3


async def test_an_update_is_checked_as_a_definition_is(tick: Everytick, hourly: str) -> None:
    """Nothing is changed by one that is refused."""
    with pytest.raises(InvalidPolicies, match="there is no policy 'overlp'"):
        await tick.update(hourly, overlp="skip", detach=True)  # type: ignore[call-arg]
    with pytest.raises(InvalidSchedule):
        await tick.update(hourly, "61 * * * *", detach=True)
    with pytest.raises(InvalidPolicies, match=r"the stored schedule has its zone already.*schedule= along"):
        await tick.update(hourly, timezone="Asia/Tokyo", detach=True)
    assert await tick.update(hourly, "0 9 * * *", timezone="Asia/Tokyo", detach=True) == 2
    assert str((await tick.job(hourly)).job.schedule) == "cron: 0 9 * * *; tz=Asia/Tokyo"


async def test_a_spread_job_is_updated_without_being_spread_twice(tick: Everytick) -> None:
    """The stored schedule holds the spread already."""
    tick.job("0 * * * *", name="report", spread="10m")(work)
    await tick.sync()
    assert await tick.update("report", overlap="queue", detach=True) == 2
    assert str((await tick.job("report")).job.schedule) == "cron: 0 * * * *; tz=UTC; spread=10m"
    assert await tick.sync() == [], "the code no longer defines it"


async def test_a_rename_keeps_the_job_and_a_remove_keeps_its_history(
    tick: Everytick, store: AnyStore, hourly: str, clock: ManualClock
) -> None:
    """C-22: future occurrences are canceled."""
    before = (await tick.job(hourly)).job.id
    clock.move(hours=1)
    await plan_once(store)
    await run_one(store)
    await tick.rename(hourly, "hourly report", detach=True)
    record = await tick.job("hourly report")
    assert record.job.id == before
    assert await tick.next_runs("hourly report", 1) == [at(11)]
    handle = await tick.trigger("hourly report")
    await tick.remove("hourly report")
    await plan_once(store)
    assert (await handle.wait()).status == "skipped"
    with pytest.raises(NotFound):
        await tick.job("hourly report")
    with pytest.raises(InvalidName):
        await tick.rename("hourly report", " x", detach=True)


async def test_apply_tells_what_it_changes_and_prunes_only_if_it_is_told_to(tick: Everytick, store: AnyStore) -> None:
    """C-16: the idempotent call of the core; a dry run writes nothing."""
    source = Everytick(name="other")
    one = source.define("one", every("1h"), owner="file:jobs")
    one.task(work)
    two = source.define("two", every("2h"), owner="file:jobs")
    two.task(work)

    dry = await tick.apply([one, two.job], dry_run=True)
    assert [(each.name, each.kind, each.version) for each in dry] == [("one", "added", None), ("two", "added", None)]
    assert await tick.jobs() == []
    await tick.apply([one, two], by="ada")
    assert [each.kind for each in await tick.apply([one])] == ["unchanged"]
    assert [(each.name, each.kind) for each in await tick.apply([one], prune=True)] == [
        ("one", "unchanged"),
        ("two", "removed"),
    ]
    assert [record.job.name for record in await tick.jobs()] == ["one"]


async def test_apply_stores_all_definitions_or_none(tick: Everytick, store: AnyStore) -> None:
    """One that has too many edits keeps the others out, and so do two of one name."""
    source = Everytick("memory://", name="files")
    worn, new = source.define("worn", every("1h")), source.define("new", every("2h"))
    for each in (worn, new):
        each.task(work)
    await tick.apply([worn])
    for number in range(15):
        again = Everytick("memory://", name="files").define("worn", every(f"{number + 2}h"))
        again.task(work)
        await tick.apply([again])

    with pytest.raises(TooManyEditions):
        await tick.apply([new, worn])
    with pytest.raises(DuplicateDefinition, match="two definitions are named 'new'"):
        await tick.apply([new, new])
    assert [record.job.name for record in await tick.jobs()] == ["worn"]


async def test_a_sync_that_another_process_crosses_reads_again(
    tick: Everytick, store: AnyStore, hourly: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it disables just then stays disabled."""
    changed = Everytick(store, name=tick.name)
    changed.job("30 * * * *", name=hourly)(work)
    apply = store.apply

    async def crossed(changes: Sequence[Edit], by: str = "") -> list[Stored]:
        monkeypatch.undo()
        await tick.disable(hourly)
        return await apply(changes, by)

    monkeypatch.setattr(store, "apply", crossed)

    assert [(each.kind, each.version) for each in await changed.sync()] == [("changed", 3)]
    assert not (await tick.job(hourly)).job.enabled


async def test_an_occurrence_that_is_running_is_asked_to_stop(tick: Everytick, store: AnyStore, hourly: str) -> None:
    """Its owner learns it with its next beat."""
    handle = await tick.trigger(hourly)
    await plan_once(store)
    claim = await claim_one(store)
    assert await tick.cancel(handle.id, by="ada") is True
    orders = await store.beat("node-1", [claim.key])
    assert [reason for _, reason in orders.cancel] == ["canceled by ada"]


def test_moments_may_name_their_zone() -> None:
    """A text with its zone in brackets is read there; one without anything is refused."""
    from everytick.app.text_reading import moment_of

    assert moment_of("2026-11-16T10:00:00[Europe/Berlin]") == datetime(2026, 11, 16, 9, tzinfo=UTC)
    nobody_knows: Any = "2026-11-16T10:00:00"
    with pytest.raises(InvalidInstant):
        moment_of(nobody_knows)


async def test_a_purge_forgets_the_job_and_all_that_belongs_to_it(
    tick: Everytick, store: AnyStore, hourly: str
) -> None:
    """S0-133: refused while something of it runs; a job that was removed before can be purged too."""
    handle = await tick.trigger(hourly)
    await plan_once(store)
    claim = await claim_one(store)
    with pytest.raises(Conflict, match="'report' is left as it is, for 1 of its occurrences still run"):
        await tick.remove(hourly, purge=True)
    assert (await tick.job(hourly)).removed_at is None
    await tick.remove(hourly)
    with pytest.raises(Conflict, match="'report' is removed, and 1 of its occurrences still run"):
        await tick.remove(hourly, purge=True)
    await store.commit_steps([(claim, ended(claim, began(claim, START), START))])
    assert len((await tick.history(hourly)).occurrences) == 1

    await tick.remove(hourly, purge=True)
    with pytest.raises(NotFound):
        await tick.occurrence(handle.id)
    assert await tick.jobs() == []


@pytest.mark.parametrize("store", ["memory"], indirect=True)
async def test_in_memory_there_is_no_transaction_to_trigger_within(tick: Everytick, hourly: str) -> None:
    with pytest.raises(TransactionsUnsupported, match="memory has none"):
        await tick.trigger(hourly, within=object())


async def test_who_removed_a_job_is_stored_and_told(tick: Everytick, hourly: str, clock: ManualClock) -> None:
    """Every operation says who asked; a job that comes back has no `removed_by`."""
    await tick.remove(hourly, by="ada")
    clock.move(minutes=5)
    told = await tick.explain(hourly, at(23))
    assert "removed at 2026-11-16T09:00:00+00:00 by ada" in told.text
    await tick.sync()
    assert (await tick.job(hourly)).removed_by == ""
