"""The store's clock (C-05): the host's, except that it never goes back."""

import contextlib
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread

import pytest

from everytick.stores.sqlite.clock import HostClock, StoreClock
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import job
from tests.stores.clock import START, ManualClock


class Host:
    """A wall clock that can be set, and a count of seconds that cannot."""

    def __init__(self) -> None:
        self.wall, self.elapsed = START, 0.0

    def pass_(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.elapsed += seconds


def test_a_host_that_is_set_back_does_not_turn_time_back(caplog: pytest.LogCaptureFixture) -> None:
    host = Host()
    clock = HostClock(lambda: host.wall, lambda: host.elapsed)
    host.pass_(10)
    host.wall -= timedelta(hours=1)
    with caplog.at_level(logging.WARNING):
        first = clock()
        host.pass_(5)
        second = clock()
    assert (first, second) == (START + timedelta(seconds=10), START + timedelta(seconds=15))
    assert [record.getMessage() for record in caplog.records] == [
        "the host's clock was set back by 1:00:00: ignored until this process restarts"
    ]


def test_a_host_that_is_set_forward_is_followed() -> None:
    host = Host()
    clock = HostClock(lambda: host.wall, lambda: host.elapsed)
    host.wall += timedelta(hours=1)
    assert clock() == START + timedelta(hours=1)
    host.pass_(5)
    assert clock() == START + timedelta(hours=1, seconds=5)


def test_the_host_clock_is_the_host_s() -> None:
    assert abs(HostClock()() - datetime.now(UTC)) < timedelta(seconds=5)


def test_threads_ask_the_host_one_after_the_other() -> None:
    """The host's clock keeps two numbers that belong together: half of a change would be a leap of days."""
    together = Barrier(2)
    met: list[int] = []

    def source() -> datetime:
        with contextlib.suppress(BrokenBarrierError):
            met.append(together.wait(0.05))
        return START

    clock = StoreClock(source)
    threads = [Thread(target=clock.now) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == []


async def test_time_is_never_below_what_the_file_already_holds(path: Path, clock: ManualClock) -> None:
    """A host whose clock is an hour behind opens a file that another one wrote."""
    first = SqliteStore(path, clock=clock)
    await first.open()
    clock.move(hours=2)
    await first.put(job())
    await first.close()
    clock.move(hours=-1)
    again = SqliteStore(path, clock=clock)
    await again.open()
    assert await again.now() == START + timedelta(hours=2)
    await again.close()
