"""Alarms: one heap and one timer for every event that is to come at a moment."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from everytick.node.inbox import AnyEvent, Inbox

_LEAST_SWEPT = 64
"""Fewer alarms that are turned off than this stay in the heap: to sweep it would cost more than to keep them."""


class Alarm:
    """An event that is put into an inbox at a moment; `event` is None once it has rung or is turned off."""

    __slots__ = ("event", "inbox")

    def __init__(self, inbox: Inbox, event: AnyEvent) -> None:
        self.inbox = inbox
        self.event: AnyEvent | None = event


class Alarms:
    """Rings each alarm once, on the loop, not before its moment."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._heap: list[tuple[float, int, Alarm]] = []
        self._numbers = count()
        self._off = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def after(self, seconds: float, inbox: Inbox, event: AnyEvent) -> Alarm:
        """Put the event into the inbox this many seconds from now."""
        alarm, at = Alarm(inbox, event), self._monotonic() + max(0.0, seconds)
        heapq.heappush(self._heap, (at, next(self._numbers), alarm))
        self._set_timer()
        return alarm

    def turn_off(self, alarm: Alarm) -> None:
        """Let the alarm not ring; once half of all alarms are turned off, they are taken out together."""
        if alarm.event is None:
            return
        alarm.event = None
        self._off += 1
        if self._off >= _LEAST_SWEPT and 2 * self._off > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].event is not None]
            heapq.heapify(self._heap)
            self._off = 0

    def __len__(self) -> int:
        return len(self._heap)

    def stop(self) -> None:
        """Forget every alarm."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
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
        # A timer may come a moment early: an alarm that is not due waits for the next one.
        now = self._monotonic()
        while self._heap and self._heap[0][0] <= now:
            _, _, alarm = heapq.heappop(self._heap)
            if alarm.event is None:
                self._off -= 1
            else:
                event, alarm.event = alarm.event, None
                alarm.inbox.put(event)
        self._set_timer()
