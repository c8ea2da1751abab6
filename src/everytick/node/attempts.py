"""Attempts: coroutines that carry out one attempt after another.

A task per attempt would cost more than most bodies; so would a timeout per attempt. A
worker is kept as long as no attempt cancels it or sets a context variable.
"""

import asyncio
import contextvars
import logging
from collections import deque
from datetime import timedelta

from everytick.domain.outcome import Canceled, Outcome, TimedOut
from everytick.node.alarms import Alarms
from everytick.node.clock import NodeClock
from everytick.node.inbox import AttemptOver, GraceOver, Inbox
from everytick.node.occurrence import OpenAttempt, OwnedKeys
from everytick.node.slots import Slots
from everytick.runners import capture
from everytick.runners.context import Halt, abandon, enter, halt, halted, leave
from everytick.runners.outcomes import failed
from everytick.runners.tracing import attempt_span

_log = logging.getLogger("everytick.node")

_IN_A_ROW = 64
"""How many attempts a worker carries out before it lets the loop turn, if none of them waited: some milliseconds."""

_MOST_IDLE_WORKERS = 64
"""A worker that finds this many others idle ends: a burst must not leave thousands of tasks behind."""

_CLOSE_SECONDS = 0.5
"""How long a node that closes waits for its workers: those that are left are stuck, and are reported as such."""


class Attempts:
    """Starts attempts in the order they come, each at once.

    `ready` are those that wait for the loop to turn. `Calm` reads the same deque: while it holds any, nothing is
    planned ahead.
    """

    def __init__(
        self, inbox: Inbox, clock: NodeClock, alarms: Alarms, slots: Slots, owned: OwnedKeys, ready: deque[OpenAttempt]
    ) -> None:
        self._inbox, self._monotonic, self._alarms, self._slots, self._owned = (
            inbox,
            clock.monotonic,
            alarms,
            slots,
            owned,
        )
        self._ready = ready
        self._idle: list[asyncio.Future[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = self._is_turning = self._is_capturing = False

    def put(self, attempt: OpenAttempt) -> None:
        """Carry out the attempt."""
        if not self._is_capturing:
            self._is_capturing = True
            capture.streams.enter()
        self._ready.append(attempt)
        if self._is_turning:
            # The worker that has just ended an attempt takes the next one itself, without a turn of the loop.
            self._is_turning = False
            return
        while self._idle:
            waiter = self._idle.pop()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._start_worker()

    def halt(self, attempt: OpenAttempt, why: Halt, reason: str, grace: timedelta) -> None:
        """Tell the attempt to stop, and wait for its grace period; telling it twice changes nothing."""
        if halted(attempt.context) is not None:
            return
        halt(attempt.context, why, grace.total_seconds())
        attempt.reason = reason
        if attempt.worker is not None:
            attempt.worker.cancel()
        if attempt.alarm is not None:
            self._alarms.turn_off(attempt.alarm)
        # A second more: the body itself may need the whole grace period to end its thread or process.
        attempt.alarm = self._alarms.after(grace.total_seconds() + 1.0, self._inbox, GraceOver(attempt))

    def abandon(self, attempt: OpenAttempt) -> None:
        """Wait no longer for an attempt that does not stop: its outcome is ignored."""
        attempt.is_abandoned = True
        abandon(attempt.context)
        _log.error(
            "task '%s' of job '%s' does not stop although it was told to: it is left behind; its outcome is ignored",
            attempt.task,
            attempt.occurrence.claim.job.name,
        )
        self._inbox.put(AttemptOver(attempt, _stopped(attempt), self._monotonic()))

    @property
    def stuck(self) -> int:
        """How many workers have not ended. After `close`, these are the ones whose attempt does not end."""
        return sum(not task.done() for task in self._tasks)

    def close(self) -> None:
        """Tell every worker to end, also a busy one."""
        self._is_closed = True
        for task in list(self._tasks):
            task.cancel()
        if self._is_capturing:
            self._is_capturing = False
            capture.streams.leave()

    async def closed(self) -> None:
        """Return when the workers have ended that can end."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)

    def _start_worker(self) -> None:
        capture.streams.renew()
        # In a context of its own: what one attempt sets there must not reach the next.
        task = asyncio.get_running_loop().create_task(self._work(), context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        worker = asyncio.current_task()
        assert worker is not None, "a worker is a task"
        in_a_row = 0
        while True:
            while self._ready:
                attempt = self._ready.popleft()
                outcome = await self._carry_out(worker, attempt)
                if attempt.is_abandoned or self._is_closed:
                    return
                # One reading serves all that follows at once, up to the start of the next attempt.
                reading = self._monotonic()
                if not attempt.is_handed:
                    self._slots.ran(reading - attempt.since)
                self._is_turning = True
                self._inbox.put(AttemptOver(attempt, outcome, reading))
                self._is_turning = False
                attempt.break_cycle()
                if worker.cancelling() or len(contextvars.copy_context()) > 1:
                    # It was canceled, or set a variable. Neither may reach the next attempt: that gets a fresh worker.
                    if self._ready:
                        self._start_worker()
                    return
                in_a_row += 1
                if in_a_row >= _IN_A_ROW:
                    in_a_row = 0
                    await asyncio.sleep(0)
            if len(self._idle) >= _MOST_IDLE_WORKERS:
                return
            waiter = asyncio.get_running_loop().create_future()
            self._idle.append(waiter)
            in_a_row = 0
            await waiter

    async def _carry_out(self, worker: "asyncio.Task[None]", attempt: OpenAttempt) -> Outcome:
        """Return how the attempt ended. Only the cancellation of a worker whose node closes is raised."""
        context = attempt.context
        if halted(context) is not None:
            return _stopped(attempt)
        self._owned.began(attempt)
        attempt.worker = worker
        enter(context)
        outcome: Outcome | None = None
        span = attempt_span(context)
        try:
            outcome = await attempt.body.run(context)
        except asyncio.CancelledError as error:
            if self._is_closed:
                raise
            # The node has not told it to stop: the body canceled itself, or waited for something canceled.
            outcome = failed(error) if halted(attempt.context) is None else _stopped(attempt)
        except BaseException as error:  # noqa: BLE001, user code may raise anything and the node lives
            outcome = failed(error)
        finally:
            attempt.worker = None
            if span is not None:
                span.end(outcome)
            # What the node itself says from here on is not the task's.
            leave()
        return outcome


def _stopped(attempt: OpenAttempt) -> Outcome:
    return TimedOut() if halted(attempt.context) is Halt.TIMEOUT else Canceled(attempt.reason or "canceled")
