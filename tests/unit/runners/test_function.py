"""Async functions on the node's own loop."""

import asyncio
import os
import sys

import pytest

from everytick.domain.outcome import Failed, Succeeded
from everytick.domain.payload import payload
from everytick.runners.context import Context, Halt, current
from everytick.runners.function import FunctionBody, LoopBody
from everytick.runners.outcomes import NOTHING
from tests.unit.runners.attempts import NOON, attempt, begun, carried_out, error_of, job_of, stopped


async def test_a_function_without_a_context_is_called_without_one() -> None:
    """S0-026"""

    async def nothing() -> None:
        return None

    async def seven() -> int:
        return 7

    assert await carried_out(FunctionBody(nothing)) is NOTHING
    assert await carried_out(FunctionBody(seven)) == Succeeded(payload(7))


async def test_the_context_tells_what_a_task_may_know() -> None:
    """S0-027: scheduled time, actual time, last run time, and the ids of occurrence, run and attempt."""
    job = job_of("a:b", "a:c")
    seen: list[Context] = []

    async def look(ctx: Context) -> None:
        assert current() is ctx
        seen.append(ctx)

    await carried_out(FunctionBody(look), attempt(job, 1))

    [ctx] = seen
    assert (ctx.job, ctx.task, ctx.attempt, ctx.fence) == ("etl", "second", 2, 3)
    assert ctx.scheduled_for == NOON
    assert ctx.started_at > ctx.scheduled_for
    assert await ctx.look_up_previous() is None
    assert ctx.results == {"first": 7}
    assert ctx.idempotency_key == ctx.run_id
    assert len({ctx.occurrence_id, ctx.run_id, ctx.attempt_id}) == 3


async def test_parameters_come_from_the_payload_of_the_trigger_else_of_the_definition() -> None:
    async def add(x: int, ctx: Context, y: int = 1) -> int:
        return x + y + ctx.attempt

    job = job_of(payload={"x": 10})

    assert await carried_out(FunctionBody(add), attempt(job)) == Succeeded(payload(13))
    given = attempt(job, payload_given={"x": 20, "y": 5})
    assert await carried_out(FunctionBody(add), given) == Succeeded(payload(27))


async def test_a_payload_that_does_not_fit_fails_for_good() -> None:
    async def add(x: int) -> int:
        return x

    outcome = await carried_out(FunctionBody(add))

    assert isinstance(outcome, Failed)
    assert outcome.give_up
    assert outcome.error == "the payload does not fill 'x': trigger it with payload={\"x\": …}"


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(1), KeyboardInterrupt(), GeneratorExit("x")])
async def test_any_exception_of_a_task_is_its_failure_and_no_others(error: BaseException) -> None:
    """F-18, S0-026: what it raises is its error; nothing raised is no error."""

    async def fails() -> None:
        raise error

    outcome = await carried_out(FunctionBody(fails))

    assert type(error).__name__ in error_of(outcome)
    assert "function.py" not in error_of(outcome).replace("test_function.py", "")


async def test_sys_exit_in_a_task_does_not_end_the_node() -> None:
    async def leaves() -> None:
        sys.exit("good bye")

    assert "SystemExit: good bye" in error_of(await carried_out(FunctionBody(leaves)))


async def test_a_halted_function_is_canceled_where_it_waits() -> None:
    """S0-066: the coroutine gets a CancelledError and may clean up."""
    waits, cleaned = asyncio.Event(), asyncio.Event()

    async def waits_for_ever() -> None:
        waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    context = attempt()
    running = begun(FunctionBody(waits_for_ever), context)
    await waits.wait()

    assert await stopped(running, context, Halt.TIMEOUT) is None
    assert cleaned.is_set()


async def test_a_function_that_ends_in_spite_of_a_cancel_keeps_its_outcome() -> None:
    waits = asyncio.Event()

    async def stubborn() -> str:
        waits.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done all the same"
        return "never"

    context = attempt()
    running = begun(FunctionBody(stubborn), context)
    await waits.wait()

    assert await stopped(running, context, Halt.CANCEL) == Succeeded(payload("done all the same"))


async def test_a_cancel_that_the_function_raised_itself_is_a_failure() -> None:
    async def awaits_a_canceled_one() -> None:
        inner = asyncio.get_running_loop().create_task(asyncio.Event().wait())
        inner.cancel()
        await inner

    assert "CancelledError" in error_of(await carried_out(FunctionBody(awaits_a_canceled_one)))


async def test_a_cancel_of_the_whole_loop_is_passed_on() -> None:
    """A node that is ended without saying why must not be held up by a task."""
    waits = asyncio.Event()

    async def waits_for_ever() -> None:
        waits.set()
        await asyncio.Event().wait()

    running = begun(FunctionBody(waits_for_ever), attempt())
    await waits.wait()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_plain_function_can_be_called_on_the_loop_and_may_return_something_to_await() -> None:
    async def later() -> int:
        return 2

    def plain(ctx: Context, x: int = 1) -> int:
        return ctx.attempt + x

    assert await carried_out(LoopBody(plain)) == Succeeded(payload(3))
    assert await carried_out(LoopBody(lambda: later())) == Succeeded(payload(2))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
async def test_the_copy_of_a_task_that_forks_does_not_go_on_as_a_second_node() -> None:
    """F-18: the copy would have the same connections and the same name."""

    async def forks() -> int:
        return os.fork()

    outcome = await carried_out(FunctionBody(forks))

    assert isinstance(outcome, Succeeded)
    assert outcome.result is not None
    _, status = await asyncio.to_thread(os.waitpid, int(outcome.result.text), 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_an_editor_offers_only_what_is_meant_for_tasks() -> None:
    """B28: what the node and the runners need of a context has names with an underscore."""
    offered = {name for name in dir(Context) if not name.startswith("_")}

    assert offered == {
        "attempt", "attempt_id", "canceled", "cause", "covers", "definition", "fence", "idempotency_key", "job", "late",
        "log", "look_up_previous", "occurrence", "occurrence_id", "output", "payload", "previous", "progress",
        "results", "run_id", "scheduled_for", "started_at", "task", "transaction",
    }  # fmt: skip
