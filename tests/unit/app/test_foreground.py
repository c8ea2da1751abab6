"""Which signals stop a process that runs an application."""

import asyncio
import signal
from collections.abc import Iterator

import pytest

from everytick.app.foreground import Signals


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
def test_a_hangup_that_is_ignored_or_handled_stays_so(
    loop: asyncio.AbstractEventLoop, handler: signal.Handlers
) -> None:
    """A19: `nohup` must work, and a program may have a use of its own for SIGHUP."""
    before = signal.signal(signal.SIGHUP, handler)
    try:
        with Signals(loop):
            assert signal.getsignal(signal.SIGHUP) is handler
        assert signal.getsignal(signal.SIGHUP) is handler
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_hangup_stops_and_is_given_back(loop: asyncio.AbstractEventLoop) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with Signals(loop) as signals:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGHUP)
            loop.run_until_complete(asyncio.wait_for(signals.told.wait(), 60))
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
