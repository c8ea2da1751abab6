"""What becomes of attempts: timeouts, retries, order, results, what leaks and what does not."""

import asyncio
import gc
import threading
from contextvars import ContextVar
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.domain.payload import payload
from everytick.domain.retry import Retry
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.errors import GiveUp, TryAgain
from everytick.runners.context import Context, current
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import World, living, passing, pause


def test_an_attempt_that_takes_too_long_is_ended_and_tried_again(live: Live) -> None:
    """S0-065, S0-066: canceled at its timeout, recorded as such, and the retry policy applies."""

    async def story(world: World) -> None:
        begun: list[datetime] = []

        async def body() -> None:
            begun.append(world.now())
            await passing(3600)

        job = await world.define("slow", body, task_timeout="10s", retry=Retry(1, "2s"))
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        ended = await world.ended(asked)
        assert ended.status is OccurrenceStatus.FAILED
        assert ended.error == "task execution timeout after 10s, its task_timeout (2 attempts)"
        whole = await world.store.whole(asked)
        assert [run.status for run in whole.runs] == [RunStatus.TIMEOUT]
        assert [attempt.status for _, attempt in whole.attempts] == [AttemptStatus.TIMEOUT] * 2
        assert {attempt.error for _, attempt in whole.attempts} == {"task execution timeout"}
        assert [round((at - begun[0]).total_seconds()) for at in begun] == [0, 12]
        await node.stop()

    live(story)


def test_a_timeout_shorter_than_a_moment_holds_too(live: Live) -> None:
    """S0-066: a tenth of a second is a timeout like any other."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(3600)

        job = await world.define("slow", body, task_timeout="100ms")
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await world.ended(asked, "1s")
        await node.stop()

    live(story)


def test_the_deadline_of_an_occurrence_ends_all_its_tasks(live: Live) -> None:
    """S0-067: start plus execution_timeout, whatever the tasks' own timeouts."""

    async def story(world: World) -> None:
        stopped: list[float] = []

        async def body() -> None:
            try:
                await passing(3600)
            finally:
                stopped.append(world.loop.time())

        tasks = {"a": body, "b": body}
        job = await world.define("both", tasks, mode="parallel", execution_timeout="30s", task_timeout="1h")
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        ended = await world.ended(asked)
        assert (ended.status, ended.error) == (OccurrenceStatus.FAILED, "Execution exceeded timeout")
        assert [round(at) for at in stopped] == [30, 30]
        await node.stop()

    live(story)


def test_a_far_retry_holds_no_slot_and_comes_in_time(live: Live) -> None:
    """S0-081, S0-082: 1m, 2m, 4m; meanwhile the only slot belongs to others."""

    async def story(world: World) -> None:
        tries: list[float] = []

        async def flaky() -> None:
            tries.append(world.loop.time())
            if len(tries) < 4:
                raise ValueError("not yet")

        async def other() -> None:
            await passing(1)

        job = await world.define("flaky", flaky, retry=Retry(3, "1m", factor=2.0))
        filler = await world.define("filler", other)
        node = world.node(slots=1)
        await node.start()
        asked = await world.trigger(job)
        await pause("10s")
        assert await world.status(asked) is OccurrenceStatus.AWAITING_RETRY
        assert not node.engine.named
        between = await world.trigger(filler)
        assert (await world.ended(between, "5s")).status is OccurrenceStatus.COMPLETED
        assert (await world.ended(asked)).status is OccurrenceStatus.COMPLETED
        waits = [round(later - earlier) for earlier, later in pairwise(tries)]
        assert waits == [60, 120, 240]
        await node.stop()

    live(story)


def test_a_task_steers_its_own_retries(live: Live) -> None:
    """TryAgain brings its own wait and counts; GiveUp ends the run whatever is left."""

    async def story(world: World) -> None:
        tries: list[float] = []

        async def again() -> None:
            tries.append(world.loop.time())
            if len(tries) == 1:
                raise TryAgain("3s")
            raise GiveUp("no use")

        job = await world.define("steered", again, retry=Retry(5, "1h"))
        node = world.node()
        await node.start()
        ended = await world.ended(await world.trigger(job))
        assert ended.status is OccurrenceStatus.FAILED
        assert [round(at - tries[0]) for at in tries] == [0, 3]
        await node.stop()

    live(story)


def test_nothing_starts_that_the_store_does_not_know(live: Live) -> None:
    """Intent first: when a task begins, the store has the end of the one before it."""

    async def story(world: World) -> None:
        known: list[list[tuple[str, RunStatus]]] = []

        async def body(ctx: Context) -> int:
            whole = await world.store.whole(ctx.occurrence_id)
            known.append([(run.task_id, run.status) for run in whole.runs if run.status is RunStatus.SUCCESS])
            return ctx.attempt

        names = ["a", "b", "c"]
        job = await world.define("steps", dict.fromkeys(names, body))
        node = world.node()
        await node.start()
        ended = await world.ended(await world.trigger(job))
        assert ended.status is OccurrenceStatus.COMPLETED
        assert [len(each) for each in known] == [0, 1, 2]
        await node.stop()

    live(story)


def test_a_task_sees_what_those_before_it_returned(live: Live) -> None:
    """Results by task name; one that did not succeed is absent."""

    async def story(world: World) -> None:
        seen: list[dict[str, object]] = []

        async def one() -> dict[str, int]:
            return {"rows": 3}

        async def bad() -> None:
            raise ValueError

        async def last(ctx: Context) -> None:
            seen.append(dict(ctx.results))

        job = await world.define("results", {"one": one, "bad": bad, "last": last}, failure="continue")
        node = world.node()
        await node.start()
        ended = await world.ended(await world.trigger(job))
        assert ended.status is OccurrenceStatus.COMPLETED_WITH_ERRORS
        assert seen == [{"one": {"rows": 3}}]
        await node.stop()

    live(story)


def test_the_context_says_what_this_attempt_is(live: Live) -> None:
    """S0-027, C-14: both times, the ids, the payload, the cause, what ended last."""

    async def story(world: World) -> None:
        seen: list[Context] = []
        inside: list[Context] = []

        async def body(ctx: Context, x: int) -> None:
            seen.append(ctx)
            inside.append(current())
            assert x == 7

        job = await world.define("ctx", body, payload={"x": 7})
        node = world.node()
        await node.start()
        first = await world.trigger(job, "one")
        await world.ended(first)
        second = await world.trigger(job, "two", payload=payload({"x": 7}))
        await world.ended(second)
        earlier, ctx = seen
        assert inside == seen
        assert (ctx.job, ctx.task, ctx.attempt, ctx.occurrence_id) == ("ctx", "a", 1, second)
        assert ctx.payload == {"x": 7}
        assert (ctx.cause, ctx.late, ctx.canceled) == ("trigger", False, False)
        assert ctx.run_id == ctx.idempotency_key
        assert (await world.store.whole(second)).attempts[0][1].id == ctx.attempt_id
        assert earlier.previous is None
        assert ctx.previous == earlier.scheduled_for
        assert ctx.started_at >= ctx.scheduled_for
        assert ctx.covers[1] == ctx.scheduled_for
        await node.stop()

    live(story)


def test_the_previous_occurrence_is_known_anywhere_below_a_coroutine(live: Live) -> None:
    """F11, S0-027: in a coroutine by awaiting; None is never said of what was not asked."""

    async def story(world: World) -> None:
        seen: list[object] = []

        def helper() -> object:
            return current().previous

        async def looked_up() -> object:
            return await current().look_up_previous()

        async def waiting() -> None:
            seen.append(await looked_up())

        async def asking() -> None:
            try:
                seen.append(helper())
            except LookupError as refused:
                seen.append(str(refused))

        node = world.node()
        await node.start()
        for name, body in (("waiting", waiting), ("asking", asking)):
            job = await world.define(name, body)
            first = await world.trigger(job, "one")
            await world.ended(first)
            await world.ended(await world.trigger(job, "two"))
            earlier = (await world.store.whole(first)).occurrence.scheduled_for
            if name == "asking":
                assert "await current().look_up_previous()" in str(seen.pop())
                assert "await current().look_up_previous()" in str(seen.pop())
            else:
                assert [seen.pop(), seen.pop()] == [earlier, None]
        await node.stop()

    live(story)


def test_ten_in_parallel_and_the_cleanup_runs_though_the_seventh_failed(live: Live) -> None:
    """S0-030, S0-031: the peers are canceled, task 10 whose strategy is continue is not."""

    async def story(world: World) -> None:
        ended: list[str] = []

        def named(name: str):  # type: ignore[no-untyped-def]
            async def body() -> None:
                await passing(1 if name == "t7" else 10)
                if name == "t7":
                    raise ValueError("seven")
                ended.append(name)

            return body

        names = [f"t{n}" for n in range(1, 11)]
        job = await world.define(
            "ten", {name: named(name) for name in names}, mode="parallel", own={"t10": {"failure": "continue"}}
        )
        node = world.node(slots=1)
        await node.start()
        asked = await world.trigger(job)
        done = await world.ended(asked)
        assert done.status is OccurrenceStatus.FAILED
        assert done.error == "task t7 failed, aborting due to fail-fast: ValueError: seven"
        assert ended == ["t10"]
        statuses = [run.status for run in (await world.store.whole(asked)).runs]
        assert statuses.count(RunStatus.CANCELED) == 8
        assert statuses.count(RunStatus.SUCCESS) == statuses.count(RunStatus.FAILED) == 1
        await node.stop()

    live(story)


def test_what_an_attempt_sets_in_its_context_does_not_reach_the_next(live: Live) -> None:
    """S0-015; workers are kept, variables are not: each attempt begins with none of another's."""
    variable: ContextVar[str] = ContextVar("variable", default="clean")

    async def story(world: World) -> None:
        found: list[str] = []

        async def body() -> None:
            found.append(variable.get())
            variable.set("dirty")

        job = await world.define("leak", body)
        node = world.node()
        await node.start()
        for number in range(5):
            await world.ended(await world.trigger(job, f"k{number}"))
        assert found == ["clean"] * 5
        await node.stop()

    live(story)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), BaseException("odd"), GeneratorExit()])
def test_whatever_a_task_raises_the_node_lives(live: Live, error: BaseException) -> None:
    """User code may raise anything: the attempt is accounted for, and the next one runs."""

    async def story(world: World) -> None:
        async def bad() -> None:
            raise error

        async def good() -> None:
            return

        broken, fine = await world.define("bad", bad), await world.define("good", good)
        node = world.node()
        await node.start()
        assert (await world.ended(await world.trigger(broken))).status is OccurrenceStatus.FAILED
        assert (await world.ended(await world.trigger(fine))).status is OccurrenceStatus.COMPLETED
        await node.stop()

    live(story)


def test_an_attempt_that_will_not_stop_is_left_behind(live: Live) -> None:
    """It swallowed its cancel: after the grace period it is recorded as timed out, and its slot is free."""

    async def story(world: World) -> None:
        is_over = False

        async def stubborn() -> None:
            while not is_over:
                try:
                    await passing(100)
                except asyncio.CancelledError:
                    continue

        async def good() -> None:
            return

        bad, fine = await world.define("bad", stubborn, task_timeout="5s"), await world.define("good", good)
        node = world.node(slots=1, grace_period="10s")
        await node.start()
        asked = await world.trigger(bad)
        assert (await world.ended(asked, "30s")).status is OccurrenceStatus.FAILED
        assert (await world.ended(await world.trigger(fine), "5s")).status is OccurrenceStatus.COMPLETED
        is_over = True
        await node.stop()

    live(story)


def test_people_see_what_has_run_for_a_while(live: Live) -> None:
    """Rows of attempts that have run for about a second are there while they run, with their progress."""

    async def story(world: World) -> None:
        async def body(ctx: Context) -> None:
            ctx.progress(1, 4, note="first")
            await passing(5)
            ctx.progress(2, 4)
            await passing(5)

        job = await world.define("long", body)
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await pause("2500ms")
        [(_, attempt)] = (await world.store.whole(asked)).attempts
        assert attempt.status is AttemptStatus.RUNNING
        assert attempt.progress is not None
        assert (attempt.progress.done, attempt.progress.total, attempt.progress.text) == (1, 4, "first")
        await pause("5s")
        [(_, attempt)] = (await world.store.whole(asked)).attempts
        assert attempt.progress is not None
        assert attempt.progress.done == 2
        await world.ended(asked)
        await node.stop()

    live(story)


def test_a_retry_the_owner_waits_for_begins_when_its_time_has_come(live: Live) -> None:
    """At most five seconds away it keeps its place: recorded as awaiting_retry with an owner."""

    async def story(world: World) -> None:
        tries: list[float] = []

        async def body() -> None:
            tries.append(world.loop.time())
            if len(tries) == 1:
                raise ValueError

        job = await world.define("near", body, retry=Retry(1, "4s"))
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await pause("2s")
        found = (await world.store.whole(asked)).occurrence
        assert (found.status, found.owner) == (OccurrenceStatus.AWAITING_RETRY, node.name)
        await world.ended(asked)
        assert timedelta(seconds=4) <= timedelta(seconds=tries[1] - tries[0]) < timedelta(seconds=4.1)
        await node.stop()

    live(story)


def test_a_task_that_cancels_itself_harms_no_other(live: Live) -> None:
    """Libraries do so: the attempt has failed or returned, and the next one on its worker is not touched."""

    async def story(world: World) -> None:
        async def cancels_and_waits() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await passing(1)

        async def cancels_and_returns() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

        async def innocent() -> None:
            await passing(0.1)

        waits = await world.define("waits", cancels_and_waits)
        returns = await world.define("returns", cancels_and_returns)
        good = await world.define("good", innocent)
        node = world.node(slots=1)
        await node.start()
        for number in range(2):
            assert (await world.ended(await world.trigger(waits, f"w{number}"), "5s")).status == "failed"
            assert (await world.ended(await world.trigger(good, f"a{number}"), "5s")).status == "completed"
            assert (await world.ended(await world.trigger(returns, f"r{number}"), "5s")).status == "completed"
            assert (await world.ended(await world.trigger(good, f"b{number}"), "5s")).status == "completed"
        await node.stop()

    live(story)


def test_a_note_is_stored_without_the_secret_in_it(live: Live) -> None:
    """S12: it is a text of the task, as its errors and its output are."""

    async def story(world: World) -> None:
        async def body(ctx: Context) -> None:
            ctx.progress(1, 2, note="copying from postgresql://app:c4n4ry@db/app")

        asked = await world.trigger(await world.define("copies", body))
        node = world.node()
        await node.start()
        await world.ended(asked)
        await node.stop()
        [(_, attempt)] = (await world.store.whole(asked)).attempts
        assert attempt.progress is not None
        assert attempt.progress.text == "copying from postgresql://app:***@db/app"

    live(story)


def test_a_note_that_no_store_takes_is_made_fit_or_refused(live: Live) -> None:
    """F-19: text without a lone surrogate or a zero byte, bounded; numbers that are numbers."""

    async def story(world: World) -> None:
        refused: list[str] = []

        async def body(ctx: Context) -> None:
            ctx.progress(1, 2, note="odd \ud800 \0 " + "x" * 5000)
            try:
                ctx.progress(float("nan"))
            except ValueError as error:
                refused.append(str(error))
            await passing(3)

        job = await world.define("notes", body)
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await world.ended(asked)
        await node.stop()
        [(_, attempt)] = (await world.store.whole(asked)).attempts
        assert attempt.progress is not None
        assert attempt.progress.text.startswith("odd \\ud800  x")
        assert len(attempt.progress.text) < 1_100
        assert "finite" in refused[0]

    live(story)


async def test_waiting_for_a_thread_is_not_the_tasks_own_time() -> None:
    """S0-065: a task that waits for the only thread for longer than its timeout is timed from its own beginning."""
    tick = Everytick("memory://", name="threads", threads=1)
    begun, never = threading.Event(), threading.Event()

    @tick.job(every("P1Y"))
    def holds_the_thread() -> None:
        begun.set()
        never.wait(2.5)

    @tick.job(every("P1Y"), task_timeout="2s")
    def quick() -> None:
        pass

    async with tick:
        await tick.trigger("holds_the_thread")
        assert await asyncio.to_thread(begun.wait, 60)
        ended = await (await tick.trigger("quick")).wait(timeout="60s")
    assert ended.status is OccurrenceStatus.COMPLETED


@pytest.mark.parametrize("threads", [1, 2])
async def test_the_deadline_of_an_occurrence_binds_a_plain_function_too(threads: int) -> None:
    """S0-067, F10: a thread that does not stop is left behind, and its run is `timeout`, as at its own timeout.

    The grace period is as long as it is by default: the deadline does not wait for it. With one
    thread only the second task still waits for its turn when the deadline comes.
    """
    tick = Everytick("memory://", name="threads", threads=threads)
    going = threading.Event()
    both = tick.define("both", every("P1Y"), mode="parallel", execution_timeout="500ms")

    def wait() -> None:
        going.wait(60)

    for name in ("a", "b"):
        both.task(name=name)(wait)
    try:
        async with tick:
            ended = await (await tick.trigger("both")).wait(timeout="60s")
            whole = await tick.occurrence(ended.id)
            assert (ended.status, ended.error) == (OccurrenceStatus.FAILED, "Execution exceeded timeout")
            assert {(str(run.status), run.error) for run in whole.runs} == {("timeout", "Execution exceeded timeout")}
            assert {str(attempt.status) for _, attempt in whole.attempts} == {"timeout"}
            going.set()
    finally:
        going.set()


async def test_the_deadline_of_an_occurrence_does_not_wait_for_an_open_transaction(tmp_path: Path) -> None:
    """S0-067, F10: a task that hangs with its transaction open is told to stop, and what it wrote is taken back."""
    tick = Everytick(f"sqlite:///{tmp_path / 'store.db'}", name="transactions")
    stopped = asyncio.Event()

    @tick.job(every("P1Y"), execution_timeout="500ms")
    async def pay(ctx: Context) -> None:
        try:
            async with ctx.transaction() as tx:
                await tx.execute("create table money (amount)")
                await asyncio.Event().wait()
        finally:
            stopped.set()

    async with tick:
        ended = await (await tick.trigger("pay")).wait(timeout="60s")
        assert (ended.status, ended.error) == (OccurrenceStatus.FAILED, "Execution exceeded timeout")
        assert stopped.is_set()


def test_an_attempt_that_is_over_leaves_nothing_for_the_collector() -> None:
    """To find what could have been freed at once takes longer than to run most bodies."""

    async def story(world: World) -> None:
        async def body(ctx: Context) -> None:
            ctx.log.info("begun")

        job = await world.define("job", body)
        node = world.node()
        await node.start()
        gc.collect()
        gc.disable()
        try:
            # What other tests have left stays what it is.
            before = sum(type(each) is Context for each in gc.get_objects())
            for number in range(20):
                await world.ended(await world.trigger(job, str(number)))
            after = sum(type(each) is Context for each in gc.get_objects())
        finally:
            gc.enable()
        # The worker's own context keeps the last one.
        assert after - before <= 2
        await node.stop()

    living(story)
