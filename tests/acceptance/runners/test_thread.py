"""Plain functions in real threads."""
# ruff: noqa: T201 - tasks print

import asyncio
import contextlib
import contextvars
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from everytick.domain.notes import Progress
from everytick.domain.outcome import Failed, Succeeded
from everytick.domain.payload import payload
from everytick.errors import Fenced
from everytick.runners import thread
from everytick.runners.context import Context, Halt, current
from everytick.runners.outcomes import NOTHING
from everytick.runners.thread import ThreadBody, ThreadPool
from tests.unit.runners.attempts import Remembering, attempt, begun, carried_out, error_of, stopped

LONG = timedelta(seconds=60)
NONE = timedelta(0)


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    made = ThreadPool(2)
    yield made
    made.close()


def body(function: Callable[..., Any], pool: ThreadPool, grace: timedelta = LONG) -> ThreadBody:
    return ThreadBody(function, pool, grace)


class Door:
    """A function that waits until it is let through."""

    def __init__(self) -> None:
        self.entered, self.open, self.left = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, ctx: Context) -> str:
        self.entered.set()
        self.open.wait()
        with contextlib.suppress(Fenced):
            ctx.progress(1)
            ctx.output(b"from the grave")
            with ctx.transaction():
                pass
        self.left.set()
        return "late"

    async def has_begun(self) -> None:
        await asyncio.to_thread(self.entered.wait)

    async def has_left(self) -> None:
        await asyncio.to_thread(self.left.wait)


async def test_a_function_runs_in_a_thread_with_its_context(pool: ThreadPool) -> None:
    """S0-026, S0-027"""
    here = threading.get_ident()

    def function(ctx: Context, x: int = 1) -> list[object]:
        return [threading.get_ident() != here, threading.current_thread().daemon, current() is ctx, x]

    assert await carried_out(body(function, pool)) == Succeeded(payload([True, True, True, 1]))


async def test_context_variables_are_carried_into_the_thread(pool: ThreadPool) -> None:
    colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour")
    colour.set("green")

    assert await carried_out(body(lambda: colour.get(), pool)) == Succeeded(payload("green"))


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(2), KeyboardInterrupt(), GeneratorExit()])
async def test_whatever_it_raises_is_a_failure_and_the_thread_serves_the_next(
    pool: ThreadPool, error: BaseException
) -> None:
    """F-18"""

    def fails() -> None:
        raise error

    for _ in range(5):
        assert type(error).__name__ in error_of(await carried_out(body(fails, pool)))
    assert await carried_out(body(lambda: None, pool)) is NOTHING


async def test_threads_are_used_again_and_never_more_than_the_pool_has(pool: ThreadPool) -> None:
    seen: set[int] = set()

    def function() -> None:
        seen.add(threading.get_ident())

    await asyncio.gather(*(carried_out(body(function, pool), attempt()) for _ in range(100)))

    assert 1 <= len(seen) <= 2


async def test_a_timed_out_thread_is_left_to_itself_and_another_takes_its_place(
    pool: ThreadPool, caplog: pytest.LogCaptureFixture
) -> None:
    """S0-066, H3: the pool never dies, however many tasks never end."""
    doors = [Door() for _ in range(10)]
    for door in doors:
        context = attempt()
        running = begun(body(door, pool), context)
        await door.has_begun()
        assert await stopped(running, context, Halt.TIMEOUT) is None

    assert (pool.stuck, pool.abandoned) == (10, 10)
    assert await carried_out(body(lambda: 1, pool)) == Succeeded(payload(1))
    assert "the thread of job 'etl', task 'first' did not end with attempt 2" in caplog.text
    assert any(each.name == "everytick abandoned: etl, first" for each in threading.enumerate())

    for door in doors:
        door.open.set()
        await door.has_left()
    await asyncio.to_thread(joined, "everytick abandoned")
    assert (pool.stuck, pool.abandoned) == (0, 10)


def joined(name: str) -> None:
    for each in threading.enumerate():
        if each.name.startswith(name):
            each.join()


async def test_an_abandoned_thread_can_record_nothing_more(pool: ThreadPool) -> None:
    """A zombie can finish; it cannot record."""
    door, services = Door(), Remembering()
    context = attempt(services=services)
    running = begun(body(door, pool), context)
    await door.has_begun()
    await stopped(running, context, Halt.TIMEOUT)

    door.open.set()
    await door.has_left()

    assert (services.told, services.written, services.committed) == ([], b"", [])


async def test_what_waits_for_a_thread_gets_the_one_that_replaces_an_abandoned_one() -> None:
    pool = ThreadPool(1)
    door, context = Door(), attempt()
    stuck = begun(body(door, pool), context)
    await door.has_begun()
    waiting = begun(body(lambda: 1, pool), attempt())
    await asyncio.sleep(0)

    await stopped(stuck, context, Halt.TIMEOUT)

    assert await waiting == Succeeded(payload(1))
    door.open.set()
    pool.close()


async def test_what_has_not_begun_never_begins_once_it_is_stopped() -> None:
    pool = ThreadPool(1)
    door, called = Door(), threading.Event()
    first, second = attempt(), attempt()
    running = begun(body(door, pool), first)
    await door.has_begun()
    waiting = begun(body(called.set, pool), second)
    await asyncio.sleep(0)

    assert await stopped(waiting, second, Halt.CANCEL) is None
    door.open.set()
    await running
    assert await carried_out(body(lambda: 1, pool)) == Succeeded(payload(1))
    assert not called.is_set()
    assert pool.abandoned == 0
    pool.close()


async def test_a_canceled_thread_sees_it_and_has_the_grace_period(pool: ThreadPool) -> None:
    begun_, cleaned = threading.Event(), threading.Event()

    def looks(ctx: Context) -> str:
        begun_.set()
        while not ctx.canceled:
            pass
        cleaned.set()
        return "stopped early"

    context = attempt()
    running = begun(body(looks, pool), context)
    await asyncio.to_thread(begun_.wait)

    assert await stopped(running, context, Halt.CANCEL) is None
    assert cleaned.is_set()
    assert pool.abandoned == 0


async def test_a_thread_that_ended_without_looking_keeps_its_outcome(pool: ThreadPool) -> None:
    door, context = Door(), attempt()
    running = begun(body(door, pool), context)
    await door.has_begun()
    context._halt = Halt.SHUTDOWN
    running.cancel()
    await asyncio.sleep(0)
    door.open.set()

    assert await running == Succeeded(payload("late"))


async def test_a_canceled_thread_that_goes_on_is_abandoned_after_the_grace_period(pool: ThreadPool) -> None:
    door, context = Door(), attempt()
    running = begun(body(door, pool, NONE), context)
    await door.has_begun()

    assert await stopped(running, context, Halt.SHUTDOWN) is None
    assert pool.stuck == 1
    door.open.set()


async def test_a_stop_may_give_a_thread_longer_than_the_grace_period(pool: ThreadPool) -> None:
    """S0-109, S0-110: what the stop names takes the place of what the node was made with."""
    door, context = Door(), attempt()
    running = begun(body(door, pool, NONE), context)
    await door.has_begun()
    context._halt, context._grace_seconds = Halt.SHUTDOWN, LONG.total_seconds()
    running.cancel()
    await asyncio.sleep(0)
    door.open.set()
    assert await running == Succeeded(payload("late"))
    assert pool.abandoned == 0


async def test_a_stop_may_give_a_thread_less_than_the_grace_period(pool: ThreadPool) -> None:
    """S0-109, S0-110."""
    door, context = Door(), attempt()
    running = begun(body(door, pool, timedelta(hours=1)), context)
    await door.has_begun()
    context._grace_seconds = 0.0
    async with asyncio.timeout(60):
        assert await stopped(running, context, Halt.SHUTDOWN) is None
    assert pool.stuck == 1
    door.open.set()


async def test_too_many_stuck_threads_are_a_failure_that_says_what_to_do(
    pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H3: the machine is not filled with threads that cannot be ended."""
    monkeypatch.setattr(thread, "STUCK_LIMIT", 1)
    door, context = Door(), attempt()
    running = begun(body(door, pool), context)
    await door.has_begun()
    await stopped(running, context, Halt.TIMEOUT)

    assert 'runner="process"' in error_of(await carried_out(body(lambda: 1, pool)))
    door.open.set()
    await asyncio.to_thread(joined, "everytick abandoned")
    assert await carried_out(body(lambda: 1, pool)) == Succeeded(payload(1))


async def test_a_machine_without_threads_fails_the_attempt_and_not_the_node(
    pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T12"""

    def refuses(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as broken:
        broken.setattr(threading.Thread, "start", refuses)
        assert "can't start new thread" in error_of(await carried_out(body(lambda: 1, pool)))
    assert await carried_out(body(lambda: 1, pool)) == Succeeded(payload(1))


async def test_a_stopped_pool_begins_nothing() -> None:
    """H4"""
    pool = ThreadPool(1)
    pool.close()
    pool.close()

    assert "the node has stopped" in error_of(await carried_out(body(lambda: 1, pool)))


async def test_prints_of_a_thread_are_kept_with_its_attempt_alone(
    pool: ThreadPool, capsys: pytest.CaptureFixture[str]
) -> None:
    def prints(x: int) -> None:
        print(f"out {x}")
        print(f"err {x} \ud800", file=sys.stderr)
        sys.stdout.buffer.write(b"raw\n")
        sys.stdout.writelines(["a\n", "b\n"])
        sys.stdout.close()
        print("after closing", flush=True)

    print("before")
    services = [Remembering(), Remembering()]
    captured = body(prints, pool)
    print("meanwhile")
    await asyncio.gather(
        *(
            carried_out(captured, attempt(services=each, payload_given={"x": number}))
            for number, each in enumerate(services)
        )
    )
    print("afterwards")

    for number, each in enumerate(services):
        written = f"out {number}\nerr {number} \\ud800\nraw\na\nb\nafter closing\n"
        assert each.written.decode() == written
    shown = capsys.readouterr().out.splitlines()
    assert (shown[:2], shown[-1]) == (["before", "meanwhile"], "afterwards")
    assert sorted(shown[2:-1]) == ["a", "a", "after closing", "after closing", "b", "b", "out 0", "out 1"]


async def test_prints_are_shown_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    pool, services = ThreadPool(1), Remembering()
    assert sys.stdout is not before

    await carried_out(body(lambda: print("tick"), pool), attempt(services=services))
    pool.close()

    assert sys.stdout is before
    assert services.written == b"tick\n"
    assert capsys.readouterr().out == "tick\n"


async def test_a_terminal_that_is_gone_is_not_the_tasks_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    pool, services = ThreadPool(1), Remembering()

    assert await carried_out(body(lambda: print("tick", flush=True), pool), attempt(services=services)) is NOTHING
    with pytest.raises(BrokenPipeError):
        print("the node's own")
    pool.close()

    assert services.written == b"tick\n"


async def test_a_stream_that_hands_on_to_another_is_heard_once(capsys: pytest.CaptureFixture[str]) -> None:
    pool, services = ThreadPool(1), Remembering()
    ours = sys.stdout

    class Tee(io.StringIO):
        def write(self, text: str) -> int:
            return ours.write(text)

    sys.stdout = Tee()
    await carried_out(body(lambda: print("tick"), pool), attempt(services=services))
    sys.stdout = ours
    pool.close()

    assert services.written == b"tick\n"
    assert capsys.readouterr().out == "tick\n"


def test_outside_of_tasks_the_streams_are_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    original = io.TextIOWrapper(written, encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", original)
    pool = ThreadPool(1)

    sys.stdout.write("text\n")
    sys.stdout.writelines(["lines\n"])
    sys.stdout.flush()
    sys.stdout.buffer.write(b"bytes\n")
    assert (sys.stdout.encoding, sys.stdout.isatty(), sys.stdout.closed) == ("utf-8", False, False)
    assert written.getvalue() == b"text\nlines\nbytes\n"
    sys.stdout.close()

    assert original.closed
    assert sys.stdout.closed
    pool.close()


async def test_progress_and_log_come_from_the_thread(pool: ThreadPool) -> None:
    services = Remembering()

    def tells(ctx: Context) -> None:
        ctx.progress(1, 2, note="half")
        ctx.log.warning("careful")

    await carried_out(body(tells, pool), attempt(services=services))

    assert services.told == [Progress(1, 2, "half")]
    assert services.lines == ["WARNING careful"]


async def test_a_thread_writes_in_the_transaction_through_the_loop(pool: ThreadPool) -> None:
    services = Remembering()

    def writes(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute("insert")
            assert tx.fetch("select", 1) == ["select", 1]
            with pytest.raises(ValueError, match="wrong"):
                tx.execute("wrong")
            tx.result({"rows": 1})

    assert await carried_out(body(writes, pool), attempt(services=services)) is NOTHING
    assert services.statements == ["insert"]
    assert services.committed == ["{'rows': 1}"]


async def test_a_thread_that_raises_in_its_transaction_commits_nothing(pool: ThreadPool) -> None:
    services = Remembering()

    def fails(ctx: Context) -> None:
        with ctx.transaction() as tx:
            tx.execute("insert")
            raise ValueError("boom")

    assert "ValueError: boom" in error_of(await carried_out(body(fails, pool), attempt(services=services)))
    assert services.committed == []


async def test_an_abandoned_thread_in_its_transaction_commits_nothing(pool: ThreadPool) -> None:
    services, inside, go_on, ended = Remembering(), threading.Event(), threading.Event(), threading.Event()
    raised: list[str] = []

    def writes(ctx: Context) -> None:
        try:
            with ctx.transaction() as tx:
                tx.execute("insert")
                inside.set()
                go_on.wait()
                tx.execute("another")
        except BaseException as error:
            raised.append(type(error).__name__)
            raise
        finally:
            ended.set()

    context = attempt(services=services)
    running = begun(body(writes, pool), context)
    await asyncio.to_thread(inside.wait)
    await stopped(running, context, Halt.TIMEOUT)
    go_on.set()
    await asyncio.to_thread(ended.wait)

    assert (services.statements, services.committed, raised) == ([], [], ["CancelledError"])


async def test_an_abandoned_thread_is_not_kept_waiting_for_its_statement(pool: ThreadPool) -> None:
    inside, ended = threading.Event(), threading.Event()

    def writes(ctx: Context) -> None:
        try:
            with ctx.transaction() as tx:
                inside.set()
                tx.execute("endless")
        finally:
            ended.set()

    context = attempt()
    running = begun(body(writes, pool), context)
    await asyncio.to_thread(inside.wait)
    await stopped(running, context, Halt.TIMEOUT)

    await asyncio.to_thread(ended.wait)


async def test_the_wrong_colour_of_transaction_is_refused_with_the_right_one(pool: ThreadPool) -> None:
    def asynchronously(ctx: Context) -> None:
        async def enter() -> None:
            async with ctx.transaction():
                pass

        asyncio.run(enter())

    assert "write `with ctx.transaction()`" in error_of(await carried_out(body(asynchronously, pool)))
    with pytest.raises(RuntimeError, match="write `async with"), attempt().transaction():
        pass


async def test_a_coroutine_that_is_not_awaited_is_a_failure_that_says_so(pool: ThreadPool) -> None:
    async def later() -> int:
        return 1

    outcome = await carried_out(body(lambda: later(), pool))

    assert isinstance(outcome, Failed)
    assert outcome.give_up
    assert 'runner="function"' in outcome.error


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
async def test_the_copy_of_a_task_that_forks_does_not_go_on_as_a_second_node(pool: ThreadPool) -> None:
    """F-18: both processes return from the function; only the node's own returns to it."""

    def forks() -> int:
        return os.fork()

    outcome = await carried_out(body(forks, pool))

    assert isinstance(outcome, Succeeded)
    assert outcome.result is not None
    _, status = await asyncio.to_thread(os.waitpid, int(outcome.result.text), 0)
    assert os.waitstatus_to_exitcode(status) == 0
