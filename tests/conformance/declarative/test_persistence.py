"""Persistence Semantics & Overrides: the four classes of a task, comparison, identifier, atomicity, state documents."""

import copy
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.conformance.declarative.adapter import Adapter, Registration, World
from tests.conformance.declarative.tasks import EVERY_MINUTE, NEVER_NEAR, Task

DELAY = timedelta(minutes=5)


# -------------------------------------------------------------------------------------------------- Override Resolution


def test_override_resolution_new_task_is_created_with_the_first_startup_rule(adapter: Adapter) -> None:
    """S2-058, S2-059, S2-012."""

    async def story(world: World) -> None:
        now, later = Task(world), Task(world)
        scheduler = await world.started(now.on(name="now"), later.on("5 * * * *", name="later"))
        await world.advance(seconds=1)
        found = await world.task_states()
        await scheduler.stop()
        assert (now.count, later.count) == (1, 0)
        assert found["later"]["state"] == "AwaitingRun"
        assert found["later"]["lastAttemptAt"] is None

    adapter.play(story)


def test_override_resolution_preserved_task_changes_nothing(adapter: Adapter) -> None:
    """S2-058, S2-059, S2-066: state before and after a restart with equal registrations is equal."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("0 * * * *"))
        await world.advance(seconds=5)
        await first.stop()
        states, document = await world.task_states(), await world.document("task")
        for _ in range(3):
            again = await world.started(task.on("0 * * * *"))
            await world.advance(minutes=1)
            await again.stop()
        assert history(await world.task_states()) == history(states)
        assert configuration(await world.document("task")) == configuration(document)

    adapter.play(story)


@pytest.mark.parametrize(
    ("cron", "delay"), [("30 * * * *", DELAY), ("0  * * * *", DELAY), ("0 * * * *", DELAY * 2)], ids=repr
)
def test_override_resolution_overridden_task_keeps_its_history(adapter: Adapter, cron: str, delay: timedelta) -> None:
    """S2-058, S2-059, S2-060: another string, be it of equal meaning, or another delay; the past stays."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True, False])
        first = await world.started(task.on("0 * * * *", delay=DELAY))
        await world.advance(minutes=6)
        await first.stop()
        before, document = await world.task_states(), await world.document("task")
        second = await world.started(task.on(cron, delay=delay))
        await world.advance(seconds=5)
        after = await world.task_states()
        await second.stop()
        assert task.count == 2  # the failure and its retry: the change itself runs nothing
        assert history(after) == history(before)
        assert configuration(await world.document("task")) != configuration(document)

    adapter.play(story)


def test_override_resolution_overridden_task_follows_the_new_expression(adapter: Adapter) -> None:
    """S2-059: from then on, and the old one is forgotten."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("0 12 * * *"))
        await first.stop()
        second = await world.started(task.on("3,5 * * * *"))
        await world.advance(minutes=10)
        await second.stop()
        third = await world.started(task.on("12 * * * *"))
        await world.advance(minutes=4)
        await third.stop()
        assert task.minutes == ["12:00", "12:03", "12:05", "12:12"]

    adapter.play(story)


def test_override_resolution_overridden_task_waits_by_the_new_delay_after_the_next_failure(adapter: Adapter) -> None:
    """S2-059, S2-021: a wait that has begun is history and stays as it is."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True] * 3)
        first = await world.started(task.on("0 12 * * *", delay=timedelta(minutes=10)))
        await world.advance(minutes=1)
        await first.stop()
        pending = (await world.task_states())["task"]["pendingRetryUntil"]
        second = await world.started(task.on("0 12 * * *", delay=timedelta(minutes=2)))
        assert (await world.task_states())["task"]["pendingRetryUntil"] == pending
        await world.advance(minutes=14)
        await second.stop()
        assert task.minutes == ["12:00", "12:10", "12:12", "12:14"]

    adapter.play(story)


def test_override_resolution_overridden_task_runs_the_new_callback(adapter: Adapter) -> None:
    """S2-059: callbacks are no part of the configuration: the newest is called, override or not."""

    async def story(world: World) -> None:
        old, new = Task(world), Task(world)
        first = await world.started(old.on())
        await first.stop()
        second = await world.started(new.on())
        await world.advance(minutes=2)
        await second.stop()
        assert (old.minutes, new.minutes) == (["12:00"], ["12:01", "12:02"])

    adapter.play(story)


def test_override_resolution_overridden_in_its_new_minute_runs_by_case_a(adapter: Adapter) -> None:
    """S2-019 case A: "Current minute matches the cron expression AND the task has not been run this minute"."""

    async def story(world: World) -> None:
        ran, waited = Task(world), Task(world)
        first = await world.started(ran.on("0 * * * *", name="ran"), waited.on(NEVER_NEAR, name="waited"))
        await first.stop()
        second = await world.started(ran.on(EVERY_MINUTE, name="ran"), waited.on("0 12 * * *", name="waited"))
        await world.advance(seconds=20)
        await second.stop()
        assert (ran.minutes, waited.minutes) == (["12:00"], ["12:00"])

    adapter.play(story)


def test_override_resolution_overridden_in_a_minute_in_which_it_was_retried_does_not_run_again(
    adapter: Adapter,
) -> None:
    """S2-019 case A: a retry is a run, too."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True])
        first = await world.started(task.on("0 12 * * *", delay=timedelta(seconds=70)))
        await world.advance(seconds=80)
        await first.stop()
        second = await world.started(task.on("1 12 * * *", delay=timedelta(seconds=70)))
        await world.advance(seconds=10)
        await second.stop()
        assert task.minutes == ["12:00", "12:01"]

    adapter.play(story)


@pytest.mark.parametrize(("cron", "delay"), [("0 12 * * *", DELAY), ("7 * * * *", DELAY * 3)], ids=["equal", "changed"])
def test_override_resolution_orphaned_task_restarts_immediately(adapter: Adapter, cron: str, delay: timedelta) -> None:
    """S2-058, S2-059, S2-061: started by an instance that is gone, unfinished; with the new configuration, once."""

    async def story(world: World) -> None:
        task, again = Task(world, gate=True), Task(world)
        first = await world.started(task.on("0 12 * * *"))
        await world.advance(seconds=5)
        first.crash()
        await world.advance(seconds=5)
        second = await world.started(again.on(cron, delay=delay))
        back = world.now()
        await world.advance(seconds=1)
        assert [began - back < timedelta(seconds=1) for began in again.began] == [True]
        assert second.names("task") == ["TaskRunStarted", "TaskRunCompleted"]
        await world.advance(seconds=45)
        await second.stop()
        assert again.count == 1
        found = (await world.task_states())["task"]
        assert found["state"] == "AwaitingRun"
        assert found["lastSuccessAt"] is not None

    adapter.play(story)


def test_override_resolution_orphaned_task_that_is_also_due_runs_once(adapter: Adapter) -> None:
    """S2-011, S2-059: restarted at once, and that is its one run after the downtime."""

    async def story(world: World) -> None:
        task, again = Task(world, gate=True), Task(world)
        first = await world.started(task.on())
        await world.advance(minutes=3)
        first.crash()
        await world.advance(hours=1)
        second = await world.started(again.on())
        await world.advance(seconds=40)
        assert again.count == 1
        await world.advance(minutes=1)
        await second.stop()
        assert again.count == 2

    adapter.play(story)


def test_override_resolution_orphaned_task_that_fails_is_retried(adapter: Adapter) -> None:
    """S2-059, S2-021: with the new delay."""

    async def story(world: World) -> None:
        task, again = Task(world, gate=True), Task(world, fails=[True])
        first = await world.started(task.on("0 12 * * *"))
        await world.advance(seconds=5)
        first.crash()
        second = await world.started(again.on("0 12 * * *", delay=timedelta(seconds=90)))
        await world.advance(minutes=3)
        await second.stop()
        assert second.names("task") == ["TaskRunStarted", "TaskRunFailed", "TaskRetryStarted", "TaskRunCompleted"]

    adapter.play(story)


def test_override_resolution_orphaned_again_and_again(adapter: Adapter) -> None:
    """S2-059: however often its instance was lost, the next one restarts it."""

    async def story(world: World) -> None:
        for number in range(6):
            task = Task(world, gate=True)
            scheduler = await world.started(task.on("0 12 * * *"))
            await world.advance(seconds=2)
            assert task.count == 1, f"life {number}"
            scheduler.crash()
        last = Task(world)
        scheduler = await world.started(last.on("0 12 * * *"))
        await world.advance(seconds=2)
        await scheduler.stop()
        assert last.count == 1

    adapter.play(story)


def test_override_resolution_a_task_that_finished_is_no_orphan(adapter: Adapter) -> None:
    """S2-058: stopped in order, nothing is left to restart; a crash between two runs leaves nothing either."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("0 12 * * *"))
        await world.advance(seconds=5)
        await first.stop()
        second = await world.started(task.on("0 12 * * *"))
        await world.advance(seconds=5)
        second.crash()
        third = await world.started(task.on("0 12 * * *"))
        await world.advance(minutes=2)
        await third.stop()
        assert task.count == 1

    adapter.play(story)


def test_override_resolution_orphans_of_tasks_that_are_not_registered_are_left_alone(adapter: Adapter) -> None:
    """S2-058: orphaned means "exists in both"; it restarts when it is registered again."""

    async def story(world: World) -> None:
        task, other, again = Task(world, gate=True), Task(world), Task(world)
        first = await world.started(task.on("0 12 * * *"))
        await world.advance(seconds=5)
        first.crash()
        second = await world.started(other.on("0 12 * * *", name="other"))
        await world.advance(minutes=10)
        await second.stop()
        assert (await world.task_states()).keys() == {"task", "other"}
        third = await world.started(again.on("0 12 * * *"))
        await world.advance(seconds=5)
        await third.stop()
        assert again.count == 1

    adapter.play(story)


# --------------------------------------------------------------------------------------------- Configuration Comparison


@pytest.mark.parametrize(
    ("cron", "delay", "identical"),
    [
        ("0 * * * *", timedelta(minutes=5), True),
        ("0 * * * *", timedelta(seconds=300), True),
        (" 0 * * * *", timedelta(minutes=5), False),
        ("00 * * * *", timedelta(minutes=5), False),
        ("0 * * * 0-6", timedelta(minutes=5), False),
        ("0 * * * *", timedelta(minutes=5, milliseconds=1), False),
    ],
)
def test_configuration_comparison_is_exact(adapter: Adapter, cron: str, delay: timedelta, identical: bool) -> None:
    """S2-060: the string, not its meaning; the duration, not how it was written."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("0 * * * *", delay=timedelta(minutes=5)))
        await first.stop()
        before = configuration(await world.document("task"))
        second = await world.started(task.on(cron, delay=delay))
        await second.stop()
        assert (configuration(await world.document("task")) == before) is identical

    adapter.play(story)


@pytest.mark.parametrize("delay", [timedelta(microseconds=1), timedelta(days=365_001), timedelta.max], ids=str)
def test_configuration_comparison_of_every_delay_there_is(adapter: Adapter, delay: timedelta) -> None:
    """S2-003, S2-060: what can be registered can be read again, and is identical."""

    async def story(world: World) -> None:
        task = Task(world, fails=[True])
        for _ in range(2):
            scheduler = await world.started(task.on("0 12 * * *", delay=delay))
            await world.advance(seconds=5)
            await scheduler.stop()
        assert task.count == (2 if delay < timedelta(seconds=1) else 1)

    adapter.play(story)


# ------------------------------------------------------------------------------------------------- Scheduler Identifier


def test_scheduler_identifier_is_unique_and_kept_with_the_state(adapter: Adapter) -> None:
    """S2-061: made at the first initialization of an instance, the same for all its life, another for another."""

    async def story(world: World) -> None:
        found: list[str | None] = []
        for number in range(3):
            scheduler = world.scheduler()
            assert scheduler.identifier is None
            for _ in range(2):
                await scheduler.initialize([Task(world).on(f"{number} * * * *")])
                found.append(scheduler.identifier)
                assert (await world.document("task"))["schedulerIdentifier"] == scheduler.identifier
                await scheduler.stop()
        assert found[0::2] == found[1::2]
        assert len(set(found)) == 3
        assert all(found)

    adapter.play(story)


# --------------------------------------------------------------------------------------------------- Override Atomicity


def test_override_atomicity_a_failure_at_any_request_restores_everything(adapter: Adapter) -> None:
    """S2-062, S2-067: new, preserved and overridden together: all of it is applied, or none of it."""
    failures = [bool(adapter.play(partial(one_request_fails, answered))) for answered in range(12)]

    assert failures[0]


async def one_request_fails(answered: int, world: World) -> bool:
    """Refuse one request of an initialization; return whether it failed, in which case nothing may have changed."""
    kept, changed, new = Task(world), Task(world), Task(world)
    first = await world.started(kept.on(NEVER_NEAR, name="kept"), changed.on(NEVER_NEAR, name="changed"))
    await first.stop()
    before = await everything(world)
    scheduler = world.scheduler()
    world.break_store(after=answered, times=1)
    try:
        await scheduler.initialize(
            [
                kept.on(NEVER_NEAR, name="kept"),
                changed.on("0 0 2 1 *", name="changed"),
                new.on(NEVER_NEAR, name="new"),
            ]
        )
    except Exception:  # noqa: BLE001, any error will do
        assert world.mend_store()
        assert await everything(world) == before, f"after {answered} requests"
        return True
    world.mend_store()
    await scheduler.stop()
    assert set(await world.task_states()) == {"kept", "changed", "new"}
    return False


def test_override_atomicity_of_what_waits_and_of_what_was_left_running(adapter: Adapter) -> None:
    """S2-062, S2-016: a retry is still waited for, and an orphan still one, after an initialization that failed."""
    failed = [adapter.play(partial(one_request_fails_among_leftovers, answered)) for answered in range(18)]

    assert failed[0]


async def one_request_fails_among_leftovers(answered: int, world: World) -> bool:
    """Override a task that waits and one that was left running, both due now, and refuse one request of it."""
    failing, hanging, waiting, orphan = Task(world, fails=[True]), Task(world, gate=True), Task(world), Task(world)
    old, delay = "0 12 * * *", timedelta(hours=1)
    first = await world.started(failing.on(old, name="waiting", delay=delay), hanging.on(old, name="orphan"))
    await world.advance(seconds=5)
    first.crash()
    await world.advance(minutes=1)
    before = history(await world.task_states())
    scheduler = world.scheduler()
    world.break_store(after=answered, times=1)
    try:
        await scheduler.initialize([waiting.on(name="waiting"), orphan.on(name="orphan")])
    except Exception:  # noqa: BLE001, any error will do
        assert world.mend_store()
        await world.advance(seconds=5)
        assert (waiting.count, orphan.count) == (0, 0), f"after {answered} requests"
        assert history(await world.task_states()) == before, f"after {answered} requests"
        again = await world.started(waiting.on(old, name="waiting", delay=delay), orphan.on(old, name="orphan"))
        await world.advance(seconds=5)
        assert (await world.task_states())["waiting"]["pendingRetryUntil"] == before["waiting"][-1]
        await again.stop()
        assert (waiting.count, orphan.count) == (0, 1), f"after {answered} requests"
        return True
    world.mend_store()
    await world.advance(seconds=20)
    await scheduler.stop()
    assert (waiting.count, orphan.count) == (1, 1), f"after {answered} requests"
    return False


def test_override_atomicity_a_crash_at_any_request_is_all_or_nothing(adapter: Adapter) -> None:
    """S2-062, S2-067, S2-011: whatever an instance was about to do when it went, the next one does, once."""
    for answered in range(16):
        adapter.play(partial(one_life_ends_early, answered))


async def one_life_ends_early(answered: int, world: World) -> None:
    """Let an instance go after so many requests of its initialization, and another one begin with the same list."""
    hanging = Task(world, gate=True)
    first = await world.started(hanging.on(NEVER_NEAR.replace("0 0", "0 12"), name="orphan"), *unlike(world))
    await first.stop()
    orphaned = await world.started(hanging.on(name="orphan"), *unlike(world))
    await world.advance(seconds=1)
    orphaned.crash()
    before = {name: configuration(await world.document(name)) for name in ("changed", "orphan")}

    doomed, after = [Task(world) for _ in NAMES], [Task(world) for _ in NAMES]
    scheduler = world.scheduler()
    world.break_store(after=answered)
    with suppress(Exception):
        await scheduler.initialize(everyone(doomed))
    scheduler.crash()
    world.mend_store()
    found = {name: configuration(await world.document(name)) for name in await world.task_states()}
    assert {name: found[name] for name in before} == before or set(found) == set(NAMES), f"after {answered} requests"

    last = await world.started(*everyone(after))
    await world.advance(seconds=2)
    await last.stop()
    states = await world.task_states()
    for name, ended, task in zip(NAMES, doomed, after, strict=True):
        assert states[name]["state"] == "AwaitingRun", f"{name} after {answered} requests"
        assert states[name]["lastSuccessAt"] is not None, f"{name} after {answered} requests"
        assert task.count == 1 or (task.count, ended.count) == (0, 1), f"{name} after {answered} requests"


NAMES = ("new", "changed", "orphan")


def everyone(tasks: list[Task]) -> list[Registration]:
    """Return one that is new, one that was overridden and one that was left running, all of them due."""
    return [task.on("* * * * 0-6", name=name) for name, task in zip(NAMES, tasks, strict=True)]


def unlike(world: World) -> list[Registration]:
    return [Task(world).on(NEVER_NEAR, name="changed")]


def test_override_atomicity_failures_do_not_add_up(adapter: Adapter) -> None:
    """S2-016, S2-062: however often it failed, with another configuration each time, the next one succeeds."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on(NEVER_NEAR))
        await first.stop()
        for number in range(60):
            scheduler = world.scheduler()
            world.break_store(after=3 + number // 10, times=1)
            try:
                await scheduler.initialize([task.on(f"{number} 3 * * *")])
                await scheduler.stop()
            except Exception:
                if not world.mend_store():
                    raise
            world.mend_store()
        last = await world.started(task.on("1 * * * *"))
        await world.advance(minutes=1)
        await last.stop()
        assert task.count == 1

    adapter.play(story)


def test_override_atomicity_failures_do_not_keep_a_task_registered(adapter: Adapter) -> None:
    """S2-016, S2-062: after many failures with a task the next instance need not have it."""

    async def story(world: World) -> None:
        left, kept = Task(world), Task(world)
        first = await world.started(left.on(NEVER_NEAR, name="left"), kept.on(NEVER_NEAR, name="kept"))
        await first.stop()
        for number in range(60):
            scheduler = world.scheduler()
            world.break_store(after=3 + number % 6, times=1)
            try:
                await scheduler.initialize(
                    [left.on(f"{number} 3 * * *", name="left"), kept.on(NEVER_NEAR, name="kept")]
                )
                await scheduler.stop()
            except Exception:
                if not world.mend_store():
                    raise
            world.mend_store()
        last = await world.started(kept.on("1 * * * *", name="kept"))
        await world.advance(minutes=1)
        await last.stop()
        assert (left.count, kept.count) == (0, 1)

    adapter.play(story)


# ----------------------------------------------------------------------------------------- Task State Management Errors


def test_task_state_management_errors_every_broken_document_has_its_error(quick: Adapter) -> None:
    """S2-050 … S2-054: the whole table: name, message, details."""
    for each in quick.invalid_documents():
        quick.play(partial(broken_document, quick, *each))


def test_task_state_management_errors_on_every_store(adapter: Adapter) -> None:
    """S2-050 … S2-054, S2-016: one document of each kind."""
    for each in {each[0]: each for each in adapter.invalid_documents()}.values():
        adapter.play(partial(broken_document, adapter, *each))


async def broken_document(adapter: Adapter, name: str, change: Any, expected: Any, world: World) -> None:
    """Break the document of a task: initialize says what is wrong and changes nothing; mended, all goes on."""
    task = Task(world)
    first = await world.started(task.on(NEVER_NEAR))
    await first.stop()
    good = await world.document("task")
    bad = change(copy.deepcopy(good))
    await world.write_document("task", bad)
    scheduler = world.scheduler()
    with pytest.raises(adapter.error("TaskTryDeserializeError")) as caught:
        await scheduler.initialize([task.on(NEVER_NEAR)])
    assert type(caught.value).__name__ == name, bad
    details = dict(adapter.details(caught.value))
    assert details.pop("taskName", "task") == "task"
    check_state_error(name, str(caught.value), details, expected)
    assert (scheduler.state, scheduler.polling) == ("Uninitialized", "Inactive")
    assert scheduler.names() == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
    assert await world.document("task") == bad
    await world.write_document("task", good)
    last = await world.started(task.on(NEVER_NEAR))
    await last.stop()


KEYS = {
    "TaskMissingFieldError": {"field"},
    "TaskInvalidTypeError": {"field", "value", "expectedType", "actualType"},
    "TaskInvalidValueError": {"field", "value", "reason"},
    "TaskInvalidStructureError": {"value"},
}


def check_state_error(name: str, message: str, details: dict[str, Any], expected: Any) -> None:
    assert set(details) == KEYS[name]
    assert {key: details[key] for key in expected} == expected
    if name == "TaskMissingFieldError":
        assert message == f"Missing required field: {details['field']}"
    elif name == "TaskInvalidTypeError":
        kinds = f"expected {details['expectedType']}, got {details['actualType']}"
        assert message == f"Invalid type for field '{details['field']}': {kinds}"
    elif name == "TaskInvalidValueError":
        assert message == f"Invalid value for field '{details['field']}': {details['reason']}"
    assert message


def test_task_state_management_errors_a_broken_document_harms_no_other_task(adapter: Adapter) -> None:
    """S2-050, S2-062: nothing of the failed initialization is applied; without the broken one all is well."""

    async def story(world: World) -> None:
        broken, fine = Task(world), Task(world)
        first = await world.started(broken.on(NEVER_NEAR, name="broken"), fine.on("0 * * * *", name="fine"))
        await first.stop()
        _, change, _ = adapter.invalid_documents()[0]
        await world.write_document("broken", change(await world.document("broken")))
        document = await world.document("fine")
        scheduler = world.scheduler()
        with pytest.raises(adapter.error("TaskTryDeserializeError")):
            await scheduler.initialize([fine.on(EVERY_MINUTE, name="fine"), broken.on(NEVER_NEAR, name="broken")])
        assert await world.document("fine") == document
        await world.advance(minutes=2)
        assert fine.count == 1
        await scheduler.initialize([fine.on(EVERY_MINUTE, name="fine")])
        await world.advance(minutes=1)
        await scheduler.stop()
        assert fine.count == 3

    adapter.play(story)


# ---------------------------------------------------------------------------------------- State Persistence Idempotency


def test_state_persistence_idempotency_writing_the_same_state_is_safe(adapter: Adapter) -> None:
    """S2-067."""

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("0 * * * *"))
        await first.stop()
        before = history(await world.task_states())
        document = await world.document("task")
        for _ in range(3):
            await world.write_document("task", document)
        second = await world.started(task.on("0 * * * *"))
        await world.advance(minutes=1)
        await second.stop()
        assert history(await world.task_states()) == before
        assert task.count == 1

    adapter.play(story)


@pytest.mark.parametrize("answered", [0, 1, 2, 3, 5, 8])
def test_state_persistence_idempotency_a_store_that_fails_while_running_corrupts_nothing(
    adapter: Adapter, answered: int
) -> None:
    """S2-067, S2-011: the outage is caught up by one run; afterwards everything is readable and goes on."""

    async def story(world: World) -> None:
        task = Task(world)
        scheduler = await world.started(task.on())
        await world.advance(minutes=1)
        world.break_store(after=answered)
        await world.advance(minutes=5)
        before = task.count
        world.mend_store()
        await world.advance(seconds=40)
        assert before <= 2 + answered
        assert before <= task.count <= before + 2
        await world.advance(minutes=2)
        await scheduler.stop()
        assert not task.beside_itself
        assert task.minutes[-1] == f"{world.now():%H:%M}"
        found = (await world.task_states())["task"]
        assert (found["state"], found["pendingRetryUntil"]) == ("AwaitingRun", None)
        again = await world.started(task.on())
        await again.stop()

    adapter.play(story)


# -------------------------------------------------------------------------------------------------------------- helpers


def history(states: Any) -> dict[str, tuple[Any, ...]]:
    keys = ("lastAttemptAt", "lastSuccessAt", "lastFailureAt", "pendingRetryUntil")
    return {name: tuple(state[key] for key in keys) for name, state in states.items()}


def configuration(document: Any) -> Any:
    """What of a document must not change as long as the registration does not: everything but who wrote it."""
    return {key: value for key, value in document.items() if key != "schedulerIdentifier"}


async def everything(world: World) -> Any:
    states = await world.task_states()
    return history(states), {name: await world.document(name) for name in states}
