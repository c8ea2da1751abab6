"""Functions in real child processes."""

import asyncio
import json
import logging
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from everytick.domain.notes import Progress
from everytick.domain.outcome import Failed, Outcome, Succeeded
from everytick.domain.payload import payload
from everytick.runners.context import Halt
from everytick.runners.guard import Guard
from everytick.runners.places import place_of
from everytick.runners.process import ProcessBody, ProcessPool, unreachable
from tests.acceptance.runners import process_tasks
from tests.unit.runners.attempts import Remembering, attempt, begun, carried_out, error_of, job_of, open_files, stopped

NONE = timedelta(0)
LONG = timedelta(seconds=60)


@pytest.fixture
def guard() -> Iterator[Guard]:
    made = Guard()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def plain_records() -> Iterator[None]:
    """Make log records as Python does: a node that still runs in this process would store them with the attempt."""
    factory = logging.getLogRecordFactory()
    logging.setLogRecordFactory(logging.LogRecord)
    yield
    logging.setLogRecordFactory(factory)


@pytest.fixture
async def pool(guard: Guard) -> Any:
    made = ProcessPool(2, guard, LONG)
    yield made
    made.close()


def body(function: Callable[..., Any], pool: ProcessPool) -> ProcessBody:
    return ProcessBody(function, place_of(function), pool)


def value_of(outcome: Outcome) -> Any:
    assert isinstance(outcome, Succeeded), outcome
    return None if outcome.result is None else outcome.result.read()


async def test_a_child_is_another_process_and_is_used_again(pool: ProcessPool) -> None:
    first = value_of(await carried_out(body(process_tasks.pid, pool)))
    second = value_of(await carried_out(body(process_tasks.pid, pool)))

    assert first != os.getpid()
    assert first == second
    assert os.getsid(first) == first


async def test_the_child_knows_of_its_attempt_what_a_task_may_know(pool: ProcessPool) -> None:
    """S0-027"""
    context = attempt(job_of("a:b", "a:c", payload={"y": "é"}), 1, payload_given={"x": 5})

    found = value_of(await carried_out(body(process_tasks.known, pool), context))

    after, through = context.covers
    assert found["ids"] == [context.occurrence_id, context.run_id, context.attempt_id, context.run_id]
    assert found["names"] == ["etl", "second", 2, 3, "schedule", False]
    assert found["times"] == [str(context.scheduled_for), str(context.started_at), "None", str(after), str(through)]
    assert (found["payload"], found["results"], found["x"]) == ({"x": 5}, {"first": 7}, 5)


async def test_an_async_function_has_a_loop_of_its_own_there(pool: ProcessPool) -> None:
    assert value_of(await carried_out(body(process_tasks.asynchronous, pool))) == 2


async def test_output_progress_and_log_come_from_the_child(pool: ProcessPool) -> None:
    services = Remembering()

    await carried_out(body(process_tasks.tells, pool), attempt(services=services))

    assert services.told == [Progress(1, 4, "quarter")]
    assert services.lines == ["WARNING careful: hot"]
    assert services.written == b"printed\nto stderr\nbytes\nfrom below\n"


async def test_what_a_function_raises_there_is_the_same_failure_as_here(pool: ProcessPool) -> None:
    """F-18"""
    failing = body(process_tasks.fails, pool)

    async def failed(how: str) -> Failed:
        outcome = await carried_out(failing, attempt(payload_given={"how": how}))
        assert isinstance(outcome, Failed)
        return outcome

    assert (await failed("x")).error_types[:2] == ("builtins.KeyError", "builtins.LookupError")
    assert "raise KeyError(how)\nKeyError: 'x'" in (await failed("x")).error
    assert "SystemExit: leaving" in (await failed("exit")).error
    assert (await failed("give up")).give_up
    assert (await failed("try again")).try_again_after == timedelta(seconds=5)
    assert "holds an object" in (await failed("result")).error
    assert "does not fill 'how'" in error_of(await carried_out(failing, attempt()))


@pytest.mark.parametrize(
    ("how", "says"),
    [("os._exit", "exit code 3"), ("segfault", "killed by SIGSEGV"), ("kill", "killed by SIGKILL"), ("close", "ended")],
)
async def test_a_process_that_ends_under_its_task_is_a_failure_and_is_replaced(
    pool: ProcessPool, how: str, says: str
) -> None:
    """F-18, I4"""
    before = value_of(await carried_out(body(process_tasks.pid, pool)))
    services = Remembering()

    outcome = await carried_out(body(process_tasks.dies, pool), attempt(services=services, payload_given={"how": how}))

    assert "ended before the task did" in error_of(outcome)
    assert says in error_of(outcome)
    assert f"dying by {how}" in error_of(outcome)
    assert services.written.decode().startswith(f"dying by {how}\n")
    assert value_of(await carried_out(body(process_tasks.pid, pool))) != before


async def test_what_was_told_before_the_end_is_heard(pool: ProcessPool) -> None:
    services = Remembering()

    assert "exit code 1" in error_of(
        await carried_out(body(process_tasks.tells_and_dies, pool), attempt(services=services))
    )
    assert [told.done for told in services.told] == list(range(100))


async def test_a_timeout_kills_the_process_with_everything_it_started(guard: Guard) -> None:
    """S0-066, H2, H5: neither of them listens to TERM."""
    pool, services = ProcessPool(1, guard, NONE), Remembering()
    context = attempt(services=services)
    running = begun(body(process_tasks.hangs, pool), context)
    await services.heard(b"ready\n")
    await services.heard(b"]\n")
    pids = json.loads(next(line for line in services.written.splitlines() if line.startswith(b"[")))
    handles = [os.pidfd_open(pid) for pid in pids]

    assert await stopped(running, context, Halt.TIMEOUT) is None

    for handle in handles:
        await gone(handle)
    assert value_of(await carried_out(body(process_tasks.pid, pool))) not in pids
    pool.close()


async def test_a_stop_that_names_a_shorter_timeout_kills_the_process_after_that(guard: Guard) -> None:
    """S0-109, S0-110: not after the grace period that the node was made with."""
    pool, services = ProcessPool(1, guard, timedelta(hours=1)), Remembering()
    context = attempt(services=services)
    running = begun(body(process_tasks.hangs, pool), context)
    await services.heard(b"ready\n")
    context._grace_seconds = 0.0
    async with asyncio.timeout(60):
        assert await stopped(running, context, Halt.SHUTDOWN) is None
    pool.close()


def alive(pid: int) -> bool:
    """Whether it runs: one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_a_canceled_process_may_clean_up_within_the_grace_period(pool: ProcessPool) -> None:
    services = Remembering()
    context = attempt(services=services)
    running = begun(body(process_tasks.cleans_up, pool), context)
    await services.heard(b"waiting\n")

    assert await stopped(running, context, Halt.CANCEL) is None

    assert services.written == b"waiting\ncleaned up, canceled: True\n"


async def test_what_a_function_does_to_its_surroundings_is_undone_for_the_next(pool: ProcessPool) -> None:
    """F-18: folder, environment, zone, file mode, signals, timers and closed outputs."""
    before = value_of(await carried_out(body(process_tasks.pid, pool)))
    as_they_were = value_of(await carried_out(body(process_tasks.surroundings, pool)))
    await carried_out(body(process_tasks.spoils, pool))
    services = Remembering()

    found = value_of(await carried_out(body(process_tasks.surroundings, pool), attempt(services=services)))

    assert found == as_they_were
    assert found[0] == os.getcwd()
    assert services.written == b"still heard\n"
    assert value_of(await carried_out(body(process_tasks.pid, pool))) == before


async def test_a_flood_of_output_is_taken_in_whole_and_the_loop_goes_on(pool: ProcessPool) -> None:
    """F-18: how much of it is kept is the node's to say."""
    taken, turns = 0, 0

    class Counting(Remembering):
        def output(self, context: object, data: bytes) -> None:
            nonlocal taken
            taken += len(data)

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.get_running_loop().create_task(turn())
    context = attempt(services=Counting(), payload_given={"lines": 20_000})
    await carried_out(body(process_tasks.floods, pool), context)
    turning.cancel()

    assert taken == 20_000 * 1024
    assert turns > 100


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
async def test_the_copy_of_a_function_that_forks_answers_nothing(pool: ProcessPool) -> None:
    before = value_of(await carried_out(body(process_tasks.pid, pool)))

    copy = value_of(await carried_out(body(process_tasks.forks, pool)))
    for _ in range(5):
        assert value_of(await carried_out(body(process_tasks.pid, pool))) == before
    if alive(copy):  # it has answered nothing; the kernel may still be ending it
        await gone(os.pidfd_open(copy))


async def test_a_child_that_sends_nonsense_is_ended(pool: ProcessPool, caplog: pytest.LogCaptureFixture) -> None:
    outcome = await carried_out(body(process_tasks.lies, pool))

    assert "killed by SIGKILL" in error_of(outcome)
    assert "cannot be read" in caplog.text


async def test_a_process_has_no_part_in_the_stores_transaction(pool: ProcessPool) -> None:
    assert "a process cannot share a connection" in error_of(await carried_out(body(process_tasks.transacts, pool)))


async def test_no_more_processes_than_the_pool_has_and_no_call_is_forgotten(pool: ProcessPool) -> None:
    outcomes = await asyncio.gather(*(carried_out(body(process_tasks.pid, pool), attempt()) for _ in range(20)))

    assert 1 <= len({value_of(outcome) for outcome in outcomes}) <= 2


async def test_a_canceled_wait_takes_no_process_from_the_next(guard: Guard) -> None:
    pool, services = ProcessPool(1, guard, LONG), Remembering()
    first, second = attempt(services=services), attempt()
    running = begun(body(process_tasks.cleans_up, pool), first)
    await services.heard(b"waiting\n")
    waiting, behind = begun(body(process_tasks.pid, pool), second), begun(body(process_tasks.pid, pool), attempt())
    await asyncio.sleep(0)

    assert await stopped(waiting, second, Halt.CANCEL) is None
    await stopped(running, first, Halt.CANCEL)

    assert value_of(await behind) > 0
    pool.close()


async def test_a_turn_that_came_too_late_goes_to_the_next_in_line(guard: Guard) -> None:
    pool = ProcessPool(1, guard, NONE)
    loop, first = asyncio.get_running_loop(), await pool.borrow()
    second, third = loop.create_task(pool.borrow()), loop.create_task(pool.borrow())
    await asyncio.sleep(0)

    pool.give_back(first)  # the second's turn has come, and in the same moment it no longer wants it
    second.cancel()

    assert await third is first
    assert second.cancelled()
    pool.close()


async def test_a_child_that_ended_while_idle_is_replaced_and_no_task_hears_of_it(pool: ProcessPool) -> None:
    before = value_of(await carried_out(body(process_tasks.pid, pool)))
    os.kill(before, signal.SIGKILL)  # before the pool can notice

    assert value_of(await carried_out(body(process_tasks.pid, pool))) != before


async def test_a_child_that_cannot_start_is_a_failure_that_says_why(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everytick.runners.process._START", "raise ImportError('no everytick here')")

    error = error_of(await carried_out(body(process_tasks.pid, pool)))

    assert error.startswith("no process could be started for the task: exit code 1\n")
    assert error.endswith("ImportError: no everytick here")


async def test_processes_leave_no_file_open_behind_them(guard: Guard) -> None:
    """T12"""
    pool = ProcessPool(2, guard, NONE)
    guard.watch(999_999_999)  # no process has this number: it only opens the guard's pipe
    guard.release(999_999_999)
    before = open_files()

    for how in ("os._exit", "close", "kill"):
        await carried_out(body(process_tasks.dies, pool), attempt(payload_given={"how": how}))
    await carried_out(body(process_tasks.pid, pool))
    pool.close()

    assert open_files() <= before


async def test_a_stopped_pool_begins_nothing(guard: Guard) -> None:
    """H4"""
    pool = ProcessPool(1, guard, LONG)
    before = value_of(await carried_out(body(process_tasks.pid, pool)))
    pool.close()
    pool.close()

    assert not alive(before)
    assert "the node has stopped" in error_of(await carried_out(body(process_tasks.pid, pool)))


def test_a_function_that_cannot_be_imported_is_known_beforehand() -> None:
    """I5"""

    def local() -> None: ...

    assert "top of a module" in (unreachable(place_of(local)) or "")
    assert unreachable(place_of(process_tasks.pid)) is None


def test_a_function_of_the_script_itself_is_found_by_running_the_script_under_another_name(tmp_path: Path) -> None:
    import subprocess

    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio, os\n"
        "from datetime import timedelta\n"
        "from everytick.runners.guard import Guard\n"
        "from everytick.runners.process import ProcessBody, ProcessPool\n"
        "import sys\n"
        "words = sys.argv[1:]\n"
        "def task(): return [__name__, *words]\n"
        "async def main():\n"
        "    from tests.unit.runners.attempts import attempt\n"
        "    guard = Guard()\n"
        "    pool = ProcessPool(1, guard, timedelta(0))\n"
        "    outcome = await ProcessBody(task, '__main__:task', pool).run(attempt())\n"
        "    print(outcome.result.text)\n"
        "    pool.close(); guard.close()\n"
        "if __name__ == '__main__': asyncio.run(main())\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((os.getcwd(), *sys.path))}

    started = [sys.executable, str(script), "--store", "ä"]
    done = subprocess.run(started, env=env, capture_output=True, text=True, check=True)

    assert json.loads(done.stdout) == ["__everytick_main__", "--store", "ä"]


NODE = """
import asyncio, json
from datetime import timedelta
from everytick.runners.guard import Guard
from everytick.runners.process import ProcessBody, ProcessPool
from tests.acceptance.runners import process_tasks
from tests.unit.runners.attempts import Remembering, attempt

guard = Guard()

class Telling(Remembering):
    def output(self, context, data):
        for line in data.decode().splitlines():
            if line.startswith("["):
                print(json.dumps([*json.loads(line), guard._process.pid]), flush=True)

async def main():
    pool = ProcessPool(1, guard, timedelta(0))
    body = ProcessBody(process_tasks.hangs, "tests.acceptance.runners.process_tasks:hangs", pool)
    await body.run(attempt(services=Telling()))

asyncio.run(main())
"""


async def begun_node() -> tuple[asyncio.subprocess.Process, list[int]]:
    """A process that runs a task which hangs; and the task's process, what that one started, and the guard."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((os.getcwd(), *sys.path))}
    node = await asyncio.create_subprocess_exec(sys.executable, "-c", NODE, env=env, stdout=asyncio.subprocess.PIPE)
    assert node.stdout is not None
    return node, json.loads(await node.stdout.readline())


async def test_a_node_that_is_killed_leaves_no_process_behind() -> None:
    """H5: the child dies with its parent, and what the child started is ended by the guard."""
    node, pids = await begun_node()
    handles = [os.pidfd_open(pid) for pid in pids]

    node.kill()
    await node.wait()

    for handle in handles:
        await gone(handle)


async def test_without_a_guard_the_kernel_still_ends_the_child_with_its_node() -> None:
    """H5: the signal on the parent's death."""
    node, (child, _, guard) = await begun_node()
    handle = os.pidfd_open(child)
    os.kill(guard, signal.SIGKILL)

    node.kill()
    await node.wait()

    await gone(handle)
    os.killpg(child, signal.SIGKILL)  # what only a guard would have ended


async def gone(handle: int) -> None:
    """Wait until the kernel says that this process has ended."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, ended.set)
    await ended.wait()
    loop.remove_reader(handle)
    os.close(handle)


async def test_an_answer_that_has_come_when_it_is_told_to_stop_counts(pool: ProcessPool, tmp_path: Path) -> None:
    """It has succeeded, though this loop has not read it yet; and its process serves the next."""
    pipe, services = tmp_path / "pipe", Remembering()
    os.mkfifo(pipe)
    context = attempt(services=services, payload_given={"pipe": str(pipe)})
    running = begun(body(process_tasks.once_told, pool), context)
    await services.heard(b"waiting\n")
    [worker] = pool._all
    with pipe.open("wb"):
        pass
    # Without a turn of the loop: the answer is in the channel when the cancel comes.
    assert select.select([worker._channel], [], [], 20)[0]
    assert await stopped(running, context, Halt.CANCEL) == Succeeded(payload("done"))
    assert worker.is_alive
