"""The application's store: where it is, when it is opened, and on which loop."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from everytick.app import Everytick
from everytick.app.store_access import StoreAccess
from everytick.errors import (
    InvalidDuration,
    InvalidPolicies,
    InvalidSetting,
    NotFound,
    SchemaMismatch,
    StoreUnavailable,
)
from everytick.schedules.interval import every
from everytick.stores.base import JobRecord
from everytick.stores.memory import MemoryStore
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import plan_once, run_one
from tests.stores.clock import ManualClock


def work() -> None:
    """Do nothing."""


def application(path: Path) -> Everytick:
    tick = Everytick(f"sqlite:///{path}", name="shop")
    tick.job(every("1h"), name="report")(work)
    return tick


@contextmanager
def running_elsewhere() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs in another thread, as an application in the background has."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


# ------------------------------------------------------------------------------------------------ when it is opened


async def test_the_first_operation_opens_the_store(tmp_path: Path) -> None:
    """Making an application and defining jobs touches nothing."""
    tick = application(tmp_path / "jobs.db")
    assert not (tmp_path / "jobs.db").exists()
    await tick.sync()
    assert (tmp_path / "jobs.db").exists()
    await tick.close()
    await tick.close()
    assert [record.job.name for record in await tick.jobs()] == ["report"]
    await tick.close()


async def test_many_who_ask_at_once_open_it_once(tmp_path: Path) -> None:
    """And one of them that is canceled disturbs no other."""
    tick = application(tmp_path / "jobs.db")
    first = asyncio.create_task(tick.jobs())
    others = [asyncio.create_task(tick.jobs()) for _ in range(5)]
    await asyncio.sleep(0)
    first.cancel()
    assert await asyncio.gather(*others) == [[]] * 5
    with pytest.raises(asyncio.CancelledError):
        await first
    await tick.close()


async def test_a_store_that_cannot_be_opened_says_so_each_time(tmp_path: Path) -> None:
    """And is tried anew by the next who asks."""
    path = tmp_path / "jobs.db"
    path.write_text("this is no database at all, and long enough to be looked at")
    tick = application(path)
    for _ in range(2):
        with pytest.raises(SchemaMismatch, match="is no SQLite database"):
            await tick.jobs()
    path.unlink()
    assert await tick.jobs() == []
    await tick.close()
    with pytest.raises(StoreUnavailable):
        await Everytick(f"sqlite:///{tmp_path}/no/such/folder/x.db").open()


def test_a_failed_opening_without_a_waiter_is_not_logged(tmp_path: Path) -> None:
    """Ctrl-C during a start: the loop would print a traceback of an error that no caller waits for."""
    (tmp_path / "jobs.db").write_text("not a database" * 100)
    told: list[object] = []

    async def leaves_while_it_opens() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
        tick = application(tmp_path / "jobs.db")
        asking = asyncio.ensure_future(tick.open())
        await asyncio.sleep(0)
        asking.cancel()
        await tick.close()

    asyncio.run(leaves_while_it_opens())
    gc.collect()

    assert told == []


async def test_a_store_that_was_made_elsewhere_is_used_as_it_is(tmp_path: Path) -> None:
    """The code that made it opens and closes it."""
    store = SqliteStore(tmp_path / "a.db")
    await store.open()
    tick = Everytick(store)
    await tick.open()
    await tick.close()
    assert await store.list() == []
    await store.close()


def test_a_store_outlives_the_loop_that_opened_it(tmp_path: Path) -> None:
    """A script may call asyncio.run many times: memory keeps what it has, a file is opened anew."""
    for address in ("memory://", f"sqlite:///{tmp_path}/jobs.db"):
        tick = Everytick(address, name="shop")
        tick.job(every("1h"), name="report")(work)
        asyncio.run(asyncio.wait_for(tick.sync(), 60))
        assert [record.job.name for record in asyncio.run(asyncio.wait_for(tick.jobs(), 60))] == ["report"]
        asyncio.run(tick.close())


def test_a_call_on_another_loop_is_answered_from_the_stores_own_loop(tmp_path: Path) -> None:
    """A driver's connections belong to one loop; handles work there too."""
    tick = application(tmp_path / "jobs.db")
    with running_elsewhere() as home:
        asyncio.run_coroutine_threadsafe(tick.open(), home).result(60)

        async def ask() -> None:
            assert (await tick.sync())[0].kind == "added"
            handle = await tick.trigger("report")
            store: Any = await tick._opened()
            await store.commit_steps([])
            with pytest.raises(NotFound, match="there is no occurrence"):
                await tick.cancel("occ_00000000-0000-5000-8000-000000000000")
            with pytest.raises(TimeoutError):
                await handle.wait("20ms")

        asyncio.run(asyncio.wait_for(ask(), 60))
        asyncio.run_coroutine_threadsafe(tick.close(), home).result(60)


class Particular(MemoryStore):
    """A store that notes on which loop it is asked, as one with connections would mind."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.asked_on: list[asyncio.AbstractEventLoop] = []

    async def list(self, *, removed: bool = False, after: str = "", limit: int | None = None) -> Sequence[JobRecord]:
        self.asked_on.append(asyncio.get_running_loop())
        return await super().list(removed=removed, after=after, limit=limit)

    async def close(self) -> None:
        self.asked_on.append(asyncio.get_running_loop())


def test_every_verb_is_carried_out_on_the_loop_that_opened_the_store() -> None:
    store = Particular()
    tick = Everytick(store)
    with running_elsewhere() as home:
        asyncio.run_coroutine_threadsafe(tick.open(), home).result(60)
        asyncio.run(asyncio.wait_for(_twice(tick), 60))
        assert store.asked_on == [home, home]


def test_a_store_is_closed_on_the_loop_that_opened_it() -> None:
    """Wherever a caller says so."""
    store = Particular()
    opened = StoreAccess(lambda: store, is_ours=True)
    with running_elsewhere() as home:
        asyncio.run_coroutine_threadsafe(opened.open(), home).result(60)
        asyncio.run(asyncio.wait_for(opened.close(), 60))
        assert store.asked_on == [home]


async def _twice(tick: Everytick) -> None:
    await tick.jobs()
    await tick.jobs()


# ------------------------------------------------------------------------------------------------ from any thread


def test_wait_gives_a_thread_the_answer_and_the_end(tmp_path: Path) -> None:
    """`tick.wait(tick.trigger(…))`, and of a handle its end."""
    tick = application(tmp_path / "jobs.db")
    with running_elsewhere() as home:
        asyncio.run_coroutine_threadsafe(tick.open(), home).result(60)
        handle = tick.wait(tick.trigger("report"))

        async def run() -> None:
            store: Any = await tick._opened()
            await plan_once(store)
            await run_one(store)

        tick.wait(run())
        assert tick.wait(handle, timeout="10s").status == "completed"
        endless = tick.wait(tick.trigger("report"))
        with pytest.raises(
            TimeoutError, match=f"occurrence {endless.id} has not ended within 0.05s: no node has planned"
        ):
            tick.wait(endless, timeout="50ms")
        tick.wait(tick.close())


async def test_wait_refuses_to_wait_for_itself() -> None:
    """Inside the loop it would block it."""
    tick = Everytick(MemoryStore(ManualClock()))
    await tick.open()
    with pytest.raises(RuntimeError, match="would stop the event loop that runs here: use await instead"):
        tick.wait(tick.jobs())


def test_wait_asks_the_store_of_a_process_without_a_node(tmp_path: Path) -> None:
    """A20: a script or a web view may trigger a job; the store is opened once, also for threads that ask at once."""
    tick = application(tmp_path / "jobs.db")
    with ThreadPoolExecutor(4) as threads:
        handles = list(threads.map(lambda number: tick.wait(tick.trigger("report", key=str(number))), range(8)))
    assert tick.node is None
    assert len({handle.id for handle in handles}) == 8
    with pytest.raises(TimeoutError):
        tick.wait(handles[0], timeout="50ms")
    tick.wait(tick.close())


def test_a_node_that_starts_later_takes_the_store_over_from_what_waited_before(tmp_path: Path) -> None:
    tick = application(tmp_path / "jobs.db")
    handle = tick.wait(tick.trigger("report"))
    tick.start_background()
    assert tick.wait(handle, timeout="60s").status == "completed"
    tick.stop_background()


def test_a_script_that_only_asks_ends_by_itself_and_closes_its_store(tmp_path: Path) -> None:
    """No thread, loop or connection is left at the end: Python would warn."""
    program = tmp_path / "program.py"
    program.write_text(
        "from everytick import Everytick, every\n"
        f"tick = Everytick('sqlite:///{tmp_path}/jobs.db', name='shop')\n"
        "@tick.job(every('1h'))\n"
        "def report(): ...\n"
        "print(tick.wait(report.trigger()).id[:4])\n"
    )
    command = [sys.executable, "-W", "always::ResourceWarning", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "occ_\n", "")


def test_wait_refuses_a_store_that_was_opened_on_a_loop_it_does_not_know(tmp_path: Path) -> None:
    tick = Everytick(SqliteStore(tmp_path / "a.db"))
    with pytest.raises(RuntimeError, match="give the application an address instead of a store"):
        tick.wait(tick.jobs())


# -------------------------------------------------------------------------------------------------- where it is


def test_without_an_address_the_store_is_beside_the_script(tmp_path: Path) -> None:
    """Wherever the script is started from."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "jobs.py").write_text(
        "import asyncio\nfrom everytick import Everytick\ntick = Everytick()\nasyncio.run(tick.open())\n"
        "asyncio.run(tick.close())\n"
    )
    subprocess.run([sys.executable, str(folder / "jobs.py")], cwd=tmp_path, check=True)
    assert (folder / "everytick.db").exists()


def test_a_relative_address_begins_where_the_program_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tick = Everytick("sqlite:///here.db")
    asyncio.run(tick.open())
    asyncio.run(tick.close())
    assert (tmp_path / "here.db").exists()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("jobs.db", "is not an address; write one like sqlite:///path, memory://"),
        ("sqlite://jobs.db", r"must name a file: sqlite:///jobs\.db \(relative\)"),
        ("sqlite:///", "must name a file"),
        ("sqlite:///:memory:", "write memory://"),
        ("sqlite:///a.db?mode=fast", r"knows two options: \?synchronous=normal or full, and \?driver=sqlite3 or apsw"),
        ("sqlite:///a.db?driver=dbapi", "knows two options"),
        ("memory://here", "has nothing to name after memory://"),
        ("mysql://ada:secret@db/x", r"store=mysql://…@db/x names no store that is known"),
        (5, "must be an address"),
    ],
)
def test_an_address_that_names_no_store_is_refused_when_the_application_is_made(address: Any, reason: str) -> None:
    """With what to write instead, and without the password in it."""
    with pytest.raises(InvalidSetting, match=reason) as refusal:
        Everytick(address)
    assert "secret" not in str(refusal.value)


def test_an_address_may_ask_every_commit_to_wait_for_the_disk(tmp_path: Path) -> None:
    tick = Everytick(f"sqlite:///{tmp_path}/a%20b.db?synchronous=full")
    asyncio.run(tick.open())
    asyncio.run(tick.close())
    assert (tmp_path / "a b.db").exists()


# -------------------------------------------------------------------------------------------------- the settings


def test_settings_of_the_node_are_read_and_checked_when_the_application_is_made() -> None:
    """S0-079, S0-104: slots is MaxConcurrentJobs."""
    tick = Everytick("memory://", slots=5, grace_period="1m", queues=["a", "b"], log_folder="logs")
    assert (tick.settings.slots, tick.settings.queues) == (5, ("a", "b"))
    assert tick.settings.grace_period == timedelta(minutes=1)
    assert Everytick("memory://", reaper_interval="2s").settings.reaper_interval == timedelta(seconds=2)
    assert Everytick("memory://").settings.slots == 50
    assert Everytick("memory://").settings.grace_period == timedelta(seconds=30)
    assert Everytick("memory://", max_concurrent_jobs=7).settings.slots == 7
    assert Everytick("memory://", slots=7, max_concurrent_jobs=7).settings.slots == 7


@pytest.mark.parametrize(
    ("settings", "error", "reason"),
    [
        ({"slots": 0}, InvalidSetting, "slots=0 must be a whole number"),
        ({"slots": 5, "max_concurrent_jobs": 6}, InvalidSetting, "is also given as max_concurrent_jobs=6"),
        ({"node_timeout": "10s"}, InvalidSetting, "shorter than three heartbeats"),
        ({"poll": 5}, InvalidDuration, "has no unit"),
        ({"timezone_data": "2020a"}, InvalidSetting, 'must be "system"'),
        ({"hook_timeout": "0s"}, InvalidSetting, "must be at least"),
        ({"retention": {}, "defaults": {"retention": {}}}, InvalidSetting, "is also given in defaults"),
        ({"retention": {"sucess": "1d"}}, InvalidPolicies, "retention"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        Everytick("memory://", **settings)


def test_the_retention_of_an_application_is_that_of_its_jobs() -> None:
    tick = Everytick("memory://", retention={"success": "1d"})
    assert tick.define("etl", every("1h")).job.settings.retention.success == timedelta(days=1)


async def test_an_application_opens_and_closes_with_its_block(tmp_path: Path) -> None:
    tick = application(tmp_path / "jobs.db")
    async with tick as same:
        assert same is tick
        assert [record.job.name for record in await tick.jobs()] in ([], ["report"])
