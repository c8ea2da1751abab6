"""Alarms: one heap and one timer for everything a node must do at a moment."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count


class Alarm:
    """Something to call at a moment; turning it off is free."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def turn_off(self) -> None:
        """Call nothing."""
        self.call = None


class Alarms:
    """Rings each alarm once, on the loop, not before its moment."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._heap: list[tuple[float, int, Alarm]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def after(self, seconds: float, call: Callable[[], None]) -> Alarm:
        """Call this so many seconds from now."""
        alarm, at = Alarm(call), self._monotonic() + max(0.0, seconds)
        heapq.heappush(self._heap, (at, next(self._numbers), alarm))
        self._wind()
        return alarm

    def stop(self) -> None:
        """Forget every alarm."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wind(self) -> None:
        if not self._heap:
            return
        at = self._heap[0][0]
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer, self._timer_at = loop.call_later(at - self._monotonic(), self._ring), at

    def _ring(self) -> None:
        self._timer = None
        # A timer may come a moment early: what is not due yet waits for the next one.
        now = self._monotonic()
        while self._heap and self._heap[0][0] <= now:
            _, _, alarm = heapq.heappop(self._heap)
            if alarm.call is not None:
                alarm.call()
        self._wind()
