"""The store's clock (C-05): the host's, smoothed; it follows a step back within ten seconds."""

import contextlib
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread

import pytest

from everytick.stores.host_clock import HostClock
from everytick.stores.sqlite.clock import StoreClock
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import job, put
from tests.stores.clock import START, ManualClock


class Host:
    """A wall clock that can be set, and a count of seconds that cannot."""

    def __init__(self) -> None:
        self.wall, self.elapsed = START, 0.0

    def pass_(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.elapsed += seconds


def test_a_host_that_is_set_back_is_followed_once_that_has_lasted(caplog: pytest.LogCaptureFixture) -> None:
    """L4, C-05, C-45, S1-030: within ten seconds, and it says so once."""
    host = Host()
    clock = HostClock(lambda: host.wall, lambda: host.elapsed)
    host.pass_(10)
    clock()
    host.wall -= timedelta(hours=1)
    with caplog.at_level(logging.WARNING):
        told = []
        for _ in range(11):
            told.append(clock() - START)
            host.pass_(1)
    seconds = [each.total_seconds() for each in told]
    assert seconds == [10, 11, 12, 13, 14, *(15 - 3600 + number for number in range(6))]
    assert [record.getMessage() for record in caplog.records] == [
        "this host's clock was set back by 3600 s: the store's time follows it; what was decided stays decided"
    ]


def test_a_step_back_that_passes_is_not_followed(caplog: pytest.LogCaptureFixture) -> None:
    """C-05: as a host that resumes may show the time of its sleep for a moment."""
    host = Host()
    clock = HostClock(lambda: host.wall, lambda: host.elapsed)
    host.wall -= timedelta(hours=1)
    assert clock() == START
    host.pass_(2)
    assert clock() == START + timedelta(seconds=2)
    host.wall += timedelta(hours=1)
    host.pass_(10)
    assert clock() == START + timedelta(seconds=12)
    assert caplog.records == []


def test_less_than_a_second_back_is_waited_for() -> None:
    """A clock that is slewed, or set by some milliseconds, never turns time back."""
    host = Host()
    clock = HostClock(lambda: host.wall, lambda: host.elapsed)
    host.wall -= timedelta(milliseconds=900)
    told = []
    for _ in range(4):
        told.append((clock() - START).total_seconds())
        host.pass_(0.5)
    assert told == [0.0, 0.0, 0.1, 0.6]


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


async def test_a_file_of_a_host_that_was_ahead_is_of_this_hosts_time(path: Path, clock: ManualClock) -> None:
    """L4, C-45: one that was written at a wrong time does not hold the next process up."""
    clock.move(hours=2)
    first = SqliteStore(path, clock=clock)
    await first.open()
    await put(first, job())
    await first.close()
    clock.move(hours=-2)
    again = SqliteStore(path, clock=clock)
    await again.open()
    assert await again.now() == START
    await again.close()
