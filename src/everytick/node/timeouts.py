"""Timeouts: looks four times a second at the attempts that are still open.

Most attempts are over by then and cost nothing here. Those that are still open get an alarm
for their timeout, and a note in the store: that they run, how far they are, where their output is.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.domain.notes import Note
from everytick.domain.redaction import redacted
from everytick.errors import StoreUnavailable
from everytick.node.alarms import Alarms
from everytick.node.clock import NodeClock
from everytick.node.health import Health
from everytick.node.inbox import Inbox, TimeoutPassed, TimeoutsDue
from everytick.node.occurrence import OpenAttempt
from everytick.runners.context import halted
from everytick.stores.protocols import RunStore

if TYPE_CHECKING:
    from everytick.stores.base import Claim

_log = logging.getLogger("everytick.node")

_ROUND_SECONDS = 0.25
"""How often open attempts are looked at: most bodies end before the first look, and cost nothing here."""

_SHORT = timedelta(seconds=2 * _ROUND_SECONDS)
"""A shorter timeout might pass before the first look, so its alarm is set when the attempt begins."""

_LAST_NOTES_SECONDS = 3.0
"""How long a node that stops waits for the store to take its last notes: the store may be frozen."""

_SHOWN_AFTER_SECONDS = 1.0
"""Only attempts that have run for this long are noted in the store: a person can hardly look for a shorter one."""


class Timeouts:
    """Sets the alarms for the timeouts of attempts, and keeps their notes in the store."""

    def __init__(
        self,
        store: RunStore,
        clock: NodeClock,
        alarms: Alarms,
        health: Health,
        inbox: Inbox,
    ) -> None:
        self._store, self._clock, self._alarms, self._health, self._inbox = store, clock, alarms, health, inbox
        self._young: dict[OpenAttempt, None] = {}
        self._old: list[OpenAttempt] = []
        self._notes: list[tuple[Claim, Note]] = []
        self._writing: asyncio.Task[None] | None = None
        self._is_alarm_set = False

    def begun(self, attempt: OpenAttempt, seconds_ago: float = 0.0) -> None:
        """Look at it again in a moment; the alarm of a timeout that is shorter than that is set now.

        An attempt that an engine carries out for an earlier owner began `seconds_ago`.
        """
        attempt.since = self._clock.monotonic() - seconds_ago
        timeout = attempt.occurrence.claim.header.rules.tasks[attempt.place].timeout
        if attempt.body.begins_later:
            # It waits for a thread or process, which is not its own time.
            attempt.until = None
        elif timeout is not None and timeout < _SHORT and attempt.until is not None:
            self._limit(attempt, timeout)
        self._young[attempt] = None
        if not self._is_alarm_set:
            self._set_alarm()

    def timed(self, attempt: OpenAttempt) -> None:
        """Set the alarm for the timeout of an attempt that has only now begun."""
        timeout = attempt.occurrence.claim.header.rules.tasks[attempt.place].timeout
        if timeout is not None and attempt.is_open and halted(attempt.context) is None and attempt.alarm is None:
            attempt.since = self._clock.monotonic()
            self._limit(attempt, timeout)

    def ended(self, attempt: OpenAttempt) -> None:
        """Drop the attempt and its alarm. Its output and progress are noted, also of a very short attempt."""
        # Not left to the next round: until then, thousands that are over would stay in memory.
        self._young.pop(attempt, None)
        if attempt.alarm is not None:
            self._alarms.turn_off(attempt.alarm)
        if attempt.log_place is not None or attempt.progress_made is not None:
            self._note(attempt)
            if not self._is_alarm_set:
                self._set_alarm()

    async def close(self) -> None:
        """Write the last notes, unless the store takes too long for them."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_NOTES_SECONDS):
                if self._writing is not None:
                    await asyncio.gather(self._writing, return_exceptions=True)
                if self._notes:
                    await self._write()

    def _set_alarm(self) -> None:
        """Look at the open attempts again in a moment."""
        self._is_alarm_set = True
        self._alarms.after(_ROUND_SECONDS, self._inbox, TimeoutsDue())

    def _limit(self, attempt: OpenAttempt, timeout: timedelta) -> None:
        """Set the alarm for the timeout of an attempt. It counts on the monotonic clock, not on the store's."""
        seconds = attempt.since + timeout.total_seconds() - self._clock.monotonic()
        attempt.alarm = self._alarms.after(seconds, self._inbox, TimeoutPassed(attempt))

    def round(self) -> None:
        """Set the alarms of attempts that are still open, and write notes about those that people may look for."""
        # First, so that the next attempt sets it again although something goes wrong below.
        self._is_alarm_set = False
        for attempt in self._young:
            if attempt.is_open:
                self._old.append(attempt)
                timeout = attempt.occurrence.claim.header.rules.tasks[attempt.place].timeout
                if attempt.until is not None and attempt.alarm is None and timeout is not None:
                    self._limit(attempt, timeout)
        self._young.clear()
        self._old = [attempt for attempt in self._old if attempt.is_open]
        now = self._clock.monotonic()
        for attempt in self._old:
            if now - attempt.since >= _SHOWN_AFTER_SECONDS:
                self._note(attempt)
        if self._notes and self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())
        if self._old or self._notes:
            self._set_alarm()

    def _note(self, attempt: OpenAttempt) -> None:
        news = attempt.progress_made, attempt.log_place
        if attempt.noted != news:
            attempt.noted = news
            progress, log_place = news
            if progress is not None and progress.text:
                progress = replace(progress, text=redacted(progress.text))
            note = Note(attempt.task, attempt.number, attempt.context.started_at, progress, log_place)
            self._notes.append((attempt.occurrence.claim, note))

    async def _write(self) -> None:
        """Write the notes that have gathered; they are for people only, and may be lost."""
        notes, self._notes = self._notes, []
        try:
            await self._store.note(notes)
        except StoreUnavailable as error:
            self._health.failed(error)
        except Exception:  # noqa: BLE001, whatever a driver raises about the store
            _log.exception("%d notes about running attempts cannot be written; the attempts go on", len(notes))
        finally:
            self._writing = None
