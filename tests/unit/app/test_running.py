"""Running an application: in a loop, in the background, beside a web application; started once, stopped cleanly."""

import asyncio
import gc
import importlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from everytick import Context, Everytick, current, every
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import AlreadyRunning, InvalidPolicies


def _app(address: str = "memory://") -> tuple[Everytick, list[str]]:
    tick, ran = Everytick(address, name="test", grace_period="1s"), []

    @tick.job(every("P1Y"))
    async def work(ctx: Context) -> str:
        ran.append(ctx.occurrence_id)
        return "done"

    return tick, ran


@contextmanager
def _process(program: Path, **options: Any) -> Iterator["subprocess.Popen[str]"]:
    """Run the program beside the test; it never outlives it."""
    arguments = [sys.executable, str(program)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_an_application_runs_inside_a_loop() -> None:
    """S4-005: start stores the definitions and runs what is asked; stop ends it, and it can be started again."""
    tick, ran = _app()
    for _ in range(2):
        async with tick:
            asked = await tick.trigger("work")
            ended = await asked.wait(timeout="60s")
            assert ended.status is OccurrenceStatus.COMPLETED
        assert tick.node is None
    assert len(ran) == 2


async def test_starting_twice_is_refused_and_disturbs_nothing() -> None:
    """S0-111: `scheduler already running`."""
    tick, _ = _app()
    async with tick:
        with pytest.raises(AlreadyRunning, match="scheduler already running"):
            await tick.start()
        with pytest.raises(AlreadyRunning, match="scheduler already running"):
            tick.start_background()
        assert (await (await tick.trigger("work")).wait(timeout="60s")).status is OccurrenceStatus.COMPLETED


async def test_stopping_what_does_not_run_changes_nothing() -> None:
    """S0-110: twice, and without a start."""
    tick, _ = _app()
    await tick.stop()
    async with tick:
        pass
    await tick.stop()


def test_an_application_runs_in_the_background(tmp_path: Path) -> None:
    """A thread of its own; any thread can ask and wait."""
    tick, ran = _app(f"sqlite:///{tmp_path}/e.db")
    tick.start_background()
    try:
        asked = tick.wait(tick.trigger("work"))
        assert tick.wait(asked, timeout="10s").status is OccurrenceStatus.COMPLETED
        assert ran == [asked.id]
    finally:
        tick.stop_background()
    assert "everytick" not in {thread.name for thread in threading.enumerate()}
    tick.stop_background()


def test_what_keeps_the_background_from_starting_is_raised_where_it_was_started() -> None:
    """A job without tasks is refused at the start, in the caller's face."""
    tick = Everytick("memory://", name="test")
    tick.define("empty", every("1h"))
    with pytest.raises(InvalidPolicies, match="empty"):
        tick.start_background()
    assert "everytick" not in {thread.name for thread in threading.enumerate()}


async def test_a_web_application_runs_it_for_as_long_as_it_lives() -> None:
    """`FastAPI(lifespan=tick.lifespan)`."""
    tick, ran = _app()
    async with tick.lifespan(object()):
        await (await tick.trigger("work")).wait(timeout="60s")
    assert len(ran) == 1
    assert tick.node is None


def test_run_belongs_to_the_main_thread() -> None:
    """It hears signals; elsewhere the message names the other way."""
    tick, _ = _app()
    raised: list[BaseException] = []

    def elsewhere() -> None:
        try:
            tick.run()
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(60)
    assert "start_background" in str(raised[0])


async def test_run_in_a_coroutine_says_what_to_call_instead() -> None:
    """B3: also in a notebook, whose cells run inside a loop. No coroutine is left that was never awaited."""
    tick, _ = _app()
    with pytest.raises(RuntimeError, match=r"call tick.start_background\(\), or write `async with tick:`"):
        tick.run()
    gc.collect()


async def test_two_applications_on_one_file_run_each_occurrence_once(tmp_path: Path) -> None:
    """C6: as many web workers do."""
    address = f"sqlite:///{tmp_path}/e.db"
    (one, ran), (other, also) = _app(address), _app(address)
    async with one, other:
        asked = [await (one, other)[number % 2].trigger("work", key=f"k{number}") for number in range(20)]
        await asyncio.gather(*(each.wait(timeout="60s") for each in asked))
    assert sorted(ran + also) == sorted(each.id for each in asked)


async def test_output_is_kept_beside_the_file(tmp_path: Path) -> None:
    """Prints of a thread, in one file per attempt; the store knows where."""
    tick = Everytick(f"sqlite:///{tmp_path}/e.db", name="test")

    @tick.job(every("P1Y"))
    def speak(ctx: Context) -> None:
        sys.stdout.write("hello from a thread\n")
        ctx.log.warning("and from a logger")

    async with tick:
        asked = await tick.trigger("speak")
        await asked.wait(timeout="60s")
    async with tick:
        [(_, attempt)] = (await tick.occurrence(asked.id)).attempts
    assert attempt.log is not None
    text = (tmp_path / "e-logs" / attempt.log.path).read_text()
    assert "hello from a thread\n" in text
    assert "WARNING and from a logger" in text


def test_a_process_that_simply_ends_stops_cleanly(tmp_path: Path) -> None:
    """H4: threads can still be had when the background stops; nothing is complained of, and all is written."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import asyncio, logging, sys
from everytick import Everytick, every
logging.basicConfig(level=logging.WARNING)
tick = Everytick("sqlite:///" + sys.argv[1], name="test", grace_period="5s")
begun = []

@tick.job(every("P1Y"))
async def work():
    begun.append(1)
    await asyncio.Event().wait()

told = []

@work.definition.on_complete
def complete(report):
    told.append(report.outcome)
    print("told", report.outcome, flush=True)

tick.start_background()
tick.wait(tick.trigger("work"))
while not begun:
    pass
print("ends", flush=True)
"""
    )
    file = tmp_path / "e.db"
    done = subprocess.run(
        [sys.executable, str(program), str(file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["ends", "told canceled"]
    assert not file.with_name("e.db-wal").exists(), "the store was closed"


@pytest.mark.parametrize("held_up", ["while True: pass", "import time; time.sleep(600)"])
def test_a_second_signal_leaves_though_a_task_holds_the_loop(tmp_path: Path, held_up: str) -> None:
    """C-17: the commonest mistake of a beginner must not need kill -9."""
    program = tmp_path / "program.py"
    program.write_text(
        f"""
from everytick import Everytick, every
tick = Everytick("memory://", name="test")

@tick.job(every("1s"))
async def blocks():
    print("begun", flush=True)
    {held_up}

tick.run()
"""
    )
    with _process(program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130


async def test_a_task_in_a_process_makes_no_second_node_of_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that starts its application when it is imported, as those of web servers do, is only imported there."""
    (tmp_path / "starts_itself.py").write_text(
        f"""
from everytick import Everytick, every
tick = Everytick("sqlite:///{tmp_path}/e.db", name="test", grace_period="1s")

@tick.job(every("P1Y"), runner="process")
def work():
    return "done"

tick.start_background()
"""
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    tick = (await asyncio.to_thread(importlib.import_module, "starts_itself")).tick
    try:
        ended = await (await tick.trigger("work")).wait(timeout="60s")
        assert (ended.status, ended.error) == (OccurrenceStatus.COMPLETED, None)
    finally:
        await asyncio.to_thread(tick.stop_background)
    with closing(sqlite3.connect(tmp_path / "e.db")) as file:
        assert file.execute("select count(*) from node").fetchone() == (1,)


def test_a_script_that_runs_wherever_it_is_imported_is_told_what_to_write(tmp_path: Path) -> None:
    """As multiprocessing does: the task fails with a sentence, and its process becomes no node."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import os, signal
from everytick import Everytick, every
tick = Everytick("memory://", name="test", grace_period="1s")

@tick.job(every("1s"), runner="process")
def work():
    return "done"

@work.definition.on_complete
def complete(report, told=[]):
    print(report.task("work").error, flush=True)
    if not told:  # a second signal would leave at once
        told.append(report)
        os.kill(os.getpid(), signal.SIGTERM)

tick.run()
"""
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert 'put the call under `if __name__ == "__main__":`' in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("hang", "code"), [("await asyncio.Event().wait()", 0), ("await asyncio.to_thread(time.sleep, 300)", 1)]
)
def test_a_signal_ends_a_start_that_waits_for_its_store(tmp_path: Path, hang: str, code: int) -> None:
    """V4: a store that does not answer keeps no process alive, also if a thread hangs in it."""
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import asyncio, time
from datetime import UTC, datetime
from everytick import Everytick
from everytick.stores.memory import MemoryStore

class Hangs(MemoryStore):
    async def list(self):
        print("asked", flush=True)
        {hang}

Everytick(Hangs(lambda: datetime.now(UTC)), name="test").run()
"""
    )
    with _process(program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == code


def test_hooks_that_hang_do_not_keep_the_process(tmp_path: Path) -> None:
    """V4: gone a few seconds after the grace period, however many of them sleep in their threads."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import time
from everytick import Everytick, every
tick = Everytick("memory://", name="test", grace_period="1s")

@tick.job(every("100ms"), overlap="allow")
async def work():
    return

begun = []

@work.definition.on_complete
def hangs(report):
    begun.append(report)
    if len(begun) == 7:
        print("hang", flush=True)
    time.sleep(300)

tick.run()
"""
    )
    with _process(program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "hang\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.parametrize("printed", [10, 10_000_000])
def test_a_second_signal_ends_the_process_though_its_output_is_not_read(tmp_path: Path, printed: int) -> None:
    """C-17: with a reader that is gone, and in the middle of printing to one that does not read."""
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import asyncio, sys
from everytick import Everytick, every
tick = Everytick("memory://", name="test", grace_period="5m")

@tick.job(every("1s"))
async def prints():
    print("begun", file=sys.stderr, flush=True)
    sys.stdout.write("x" * {printed})
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            print("told", file=sys.stderr, flush=True)

tick.run()
"""
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with _process(program, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        _read_through(process.stderr, "begun\n")
        if printed == 10:
            process.stdout.close()
        process.send_signal(signal.SIGINT)
        if printed == 10:
            _read_through(process.stderr, "told\n")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130


def _read_through(stream: IO[str], line: str) -> None:
    """Read until this line has come; the program tells beside it what it runs and that it stops."""
    assert line in iter(stream.readline, "")


def test_run_lets_the_threads_of_its_process_take_turns_often(tmp_path: Path) -> None:
    """A store's thread must not wait for a busy loop longer than its statements take."""
    program = tmp_path / "program.py"
    program.write_text(
        """
import os, signal, sys
from everytick import Everytick, every
tick = Everytick("memory://", name="test")

@tick.job(every("1s"))
async def tell():
    print(sys.getswitchinterval(), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

tick.run()
"""
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split()[0] == "0.001", done.stderr


async def test_a_thread_knows_the_previous_occurrence_anywhere_below_its_task() -> None:
    """F11, S0-027: also where only a helper asks, and the task itself has no `ctx`."""
    tick, seen = Everytick("memory://", name="test", grace_period="1s"), []

    def helper() -> object:
        return current().previous

    @tick.job(every("P1Y"))
    def work() -> None:
        seen.append(helper())

    async with tick:
        first = await (await tick.trigger("work")).wait("10s")
        await (await tick.trigger("work")).wait("10s")
    assert seen == [None, first.scheduled_for]


async def test_a_stop_may_name_its_own_timeout() -> None:
    """S0-109, Shutdown(timeout): a task that does not heed is left after that, not after the grace period."""
    tick, begun, free = Everytick("memory://", name="test", grace_period="1h"), asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @tick.job(every("P1Y"))
    def deaf() -> None:
        loop.call_soon_threadsafe(begun.set)
        free.wait(60)

    await tick.start()
    await tick.trigger("deaf")
    await begun.wait()
    async with asyncio.timeout(60):
        await tick.stop(timeout="0.1s")
    free.set()


@pytest.mark.parametrize("runner", ["coroutine", "thread"])
async def test_a_task_knows_which_version_of_its_job_it_runs_under(runner: str) -> None:
    """S0-027, S0-116: an edit counts for what is claimed after it."""
    tick, seen = Everytick("memory://", name="test", grace_period="1s"), []
    job = tick.define("work", every("P1Y"))

    if runner == "coroutine":

        @job.task
        async def work(ctx: Context) -> None:
            seen.append(ctx.definition.version)

    else:

        @job.task
        def work_in_a_thread() -> None:
            seen.append(current().definition.version)

    async with tick:
        await (await tick.trigger("work")).wait("10s")
        await tick.update("work", detach=True, description="edited")
        await (await tick.trigger("work")).wait("10s")
    first, second = seen
    assert second > first == 1


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("sqlite:///missing-folder/jobs.db", "missing-folder/jobs.db"),
        ("postgresql://nobody@no-such-host.invalid/jobs", "no-such-host.invalid"),
        ("sqlite:///text.db", "text.db"),
    ],
)
def test_run_on_a_store_that_cannot_be_used_ends_with_a_sentence(tmp_path: Path, address: str, said: str) -> None:
    """F20, C-46: what was asked, why, what to do, and an exit code; no traceback, as the command has none."""
    (tmp_path / "text.db").write_text("this is no database\n" * 100)
    program = tmp_path / "program.py"
    program.write_text(f"from everytick import Everytick\nEverytick({address!r}, name='test').run()\n")
    command = [sys.executable, str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    [sentence] = [line for line in done.stderr.splitlines() if line.startswith("everytick: ")]
    assert said in sentence
    assert ": " in sentence.removeprefix("everytick: ")
    assert done.returncode == 69
