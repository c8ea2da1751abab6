"""The executor: claim → run → advance → commit, until every occurrence it owns has ended or is given back.

The claim is the durable start of an occurrence's first attempts. Every later step is
committed before anything it starts begins; only the end is written behind, and frees the
slot at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from functools import partial
from logging import Logger

from everytick.deciding.advance import advance
from everytick.domain.notes import Note
from everytick.domain.outcome import Canceled, Outcome
from everytick.domain.steps import (
    AttemptEnded,
    CancelRequested,
    Claimed,
    DeadlinePassed,
    Event,
    Start,
    Step,
    Stopping,
    WaitOver,
)
from everytick.domain.texts import SHUTDOWN
from everytick.errors import StoreUnavailable
from everytick.node.alarms import Alarms
from everytick.node.backoff import Backoff
from everytick.node.clock import NodeClock
from everytick.node.events import Event as Told
from everytick.node.events import Events, Happening
from everytick.node.health import Health
from everytick.node.held import Held, Running
from everytick.node.logs import Logs
from everytick.node.reporter import Reporter
from everytick.node.settings import NodeSettings
from everytick.node.transactions import transaction
from everytick.node.workers import Workers
from everytick.node.writer import Writer
from everytick.runners.base import Repertoire
from everytick.runners.context import Halt, TaskTransaction
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Claim, Commit, Orders

_log = logging.getLogger("everytick.executor")

AHEAD = 0.02
"""So many seconds of work are claimed ahead of the slots; bodies that take longer get none."""

_CLAIMED_AT_ONCE = 500
_UNWRITTEN = 2_000
_SWEEP = 0.25
_SHORT = timedelta(seconds=2 * _SWEEP)
_SHOWN_AFTER = 1.0
_UNKNOWN_KEPT = 1_000


class Executor:
    """Runs what this node claims, in its slots."""

    def __init__(
        self,
        store: AnyStore,
        node: str,
        settings: NodeSettings,
        catalogue: Repertoire,
        clock: NodeClock,
        alarms: Alarms,
        events: Events,
        health: Health,
        reporter: Reporter,
        logs: Logs,
    ) -> None:
        self._store, self._node, self._settings, self._catalogue = store, node, settings, catalogue
        self._clock, self._alarms, self._events, self._health = clock, alarms, events, health
        self._reporter, self._logs = reporter, logs
        self._held: dict[int, Held] = {}
        self._backlog: deque[Held] = deque()
        self._busy = 0
        self._unknown: dict[str, None] = {}
        self._missing: dict[int, int] = {}
        self._claims_begun = self._claims_when_missing = 0
        self._is_claiming = False
        self._is_more, self._is_behind = True, False
        self._young: list[Running] = []
        self._old: list[Running] = []
        self._notes: list[tuple[Claim, Note]] = []
        self._is_sweeping = False
        self._noting: asyncio.Task[None] | None = None
        self._stop: Stopping | None = None
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._workers = Workers(self._attempt_ended, clock.monotonic)
        self.writer = Writer(store, health, self._committed)

    # ----------------------------------------------------------------------------------------------- what it holds

    @property
    def handles(self) -> list[int]:
        """What this node holds, for its beat; may be asked from another thread."""
        return list(self._held)

    @property
    def busy(self) -> int:
        """How many slots are taken."""
        return self._busy

    @property
    def stuck(self) -> int:
        """How many attempts were told to stop and have not."""
        return self._workers.stuck

    @property
    def unknown(self) -> Sequence[str]:
        """The jobs this node has found that it cannot run."""
        return list(self._unknown)

    @property
    def latest(self) -> str:
        """The job whose attempt began last: if the loop stands still, it is the one to look at."""
        running = self._workers.latest
        return "" if running is None else running.held.claim.job.name

    def wake(self) -> None:
        """Look for something to claim now."""
        self._wake.set()

    async def emptied(self) -> None:
        """Return when this node holds nothing any more."""
        await self._empty.wait()

    # --------------------------------------------------------------------------------------------------- claiming

    async def run(self) -> None:
        """Claim what is ready whenever there is room and a reason to look."""
        backoff = Backoff()
        while self._stop is None:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.claim()
                backoff.succeeded()
            except StoreUnavailable as error:
                self._health.failed(str(error))
                await asyncio.sleep(backoff.failed())
                self._wake.set()

    async def claim(self) -> int:
        """Claim until nothing is ready or there is no room; return how many came."""
        came = 0
        while self._stop is None and (room := self._room()):
            self._is_claiming, self._claims_begun = True, self._claims_begun + 1
            try:
                claims = await self._store.claim(self._node, self._settings.queues, room, self._unknown)
            finally:
                self._is_claiming = False
            self._health.answered()
            came += len(claims)
            self._is_more = len(claims) == room
            self._take(claims)
            if not self._is_more:
                break
        return came

    def _room(self) -> int:
        """Return how many to claim now; few at a time only where each takes long."""
        self._is_behind = self._is_behind or self.writer.waiting > _UNWRITTEN
        if self._is_behind or self._health.silent_for > self._settings.node_timeout.total_seconds():
            return 0
        slots, pace = self._settings.slots, self._workers.pace
        ahead = min(int(AHEAD / pace * slots), 8 * slots, _CLAIMED_AT_ONCE) if 0 < pace < AHEAD else 0
        free = slots + ahead - self._busy - len(self._backlog)
        least = (slots + ahead) // 4 if ahead and self._backlog else 1
        return min(free, max(_CLAIMED_AT_ONCE, slots)) if free >= least else 0

    def _take(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            known = self._held.get(claim.handle)
            if known is not None and known.claim.fence >= claim.fence:
                continue
            if claim.snapshot.claimed_at is not None:
                self._clock.learn(claim.snapshot.claimed_at)
            bodies = self._catalogue.bodies(claim.job)
            held = self._held[claim.handle] = Held(claim, bodies or ())
            self._empty.clear()
            if bodies is None:
                self._give_back_unknown(held)
            elif self._stop is not None:
                self.feed(held, Stopping())
            else:
                self._backlog.append(held)
        self._fill()

    def _give_back_unknown(self, held: Held) -> None:
        """Leave it to a node that knows what to call; this one does not ask for it again for a while."""
        job = held.claim.job
        _log.warning("job '%s' cannot run here and is left to other nodes: %s", job.name, self._catalogue.why(job))
        if len(self._unknown) >= _UNKNOWN_KEPT:
            self._unknown.pop(next(iter(self._unknown)))
        self._unknown[job.id] = None
        self.feed(held, Stopping())

    def learn_again(self) -> None:
        """Forget what could not be run: definitions may have changed."""
        self._unknown.clear()

    def _fill(self) -> None:
        while self._backlog and self._busy < self._settings.slots:
            self._begin(self._backlog.popleft())

    def _begin(self, held: Held) -> None:
        self._busy += 1
        held.is_begun = True
        self._reporter.started(held.claim, partial(self.feed, held, Claimed()))
        timeout = held.snapshot.rules.execution_timeout
        if timeout is not None and not held.is_gone and held.snapshot.deadline is not None:
            seconds = self._clock.seconds_until(held.snapshot.deadline)
            self._remind(held, seconds, DeadlinePassed())

    # --------------------------------------------------------------------------------------------------- one life

    def feed(self, held: Held, event: Event) -> None:
        """Let the event have its effect: decide, start what may start, write what must be written."""
        if held.is_gone:
            return
        if held.deferred is not None:
            held.deferred.append(event)
            return
        step = advance(held.snapshot, event, self._clock.now())
        if step.after is not held.snapshot or step.commits:
            self._follow(held, step)

    def _follow(self, held: Held, step: Step) -> None:
        self._heed(held, step)
        if step.commits:
            self.writer.put(held, step)
        else:
            for start in step.starts:
                self._start(held, start)

    def _heed(self, held: Held, step: Step) -> None:
        """Do what needs no commit: remember, tell open attempts to stop, wait, free the slot."""
        held.snapshot = step.after
        for cancel in step.cancels:
            place = step.after.rules.places[cancel.task]
            running = held.open.get(place)
            if running is not None and running.number == cancel.number:
                self._halt(running, Halt.SHUTDOWN if step.after.stop is not None else Halt.CANCEL, cancel.reason)
            else:
                held.called_off = {*(held.called_off or ()), (cancel.task, cancel.number)}
        for wait in step.waits:
            self._remind(held, self._clock.seconds_until(wait.until), WaitOver(wait.task))
        if step.end is not None or step.resume_at is not None or step.release:
            self._free(held)

    def _remind(self, held: Held, seconds: float, event: Event) -> None:
        alarm = self._alarms.after(seconds, partial(self.feed, held, event))
        held.alarms = [*(held.alarms or ()), alarm]

    def _free(self, held: Held) -> None:
        for alarm in held.alarms or ():
            self._alarms.turn_off(alarm)
        held.alarms = None
        if held.is_begun:
            held.is_begun = False
            self._busy -= 1
            if self._backlog:
                self._begin(self._backlog.popleft())
            if self._is_more and self._room():
                self._wake.set()

    def _start(self, held: Held, start: Start) -> None:
        if held.called_off is not None and (start.task, start.number) in held.called_off:
            self.feed(held, AttemptEnded(start.task, start.number, Canceled("canceled")))
            return
        place = held.snapshot.rules.places[start.task]
        running = held.open[place] = Running(self, held, place, start.number, start.deadline)
        running.since = self._clock.monotonic()
        self._watch(running)
        if self._events.wanted:
            self._tell(held, Happening.STARTED, running)
        if running.body.wants_previous:
            self._reporter.with_previous(running, partial(self._workers.put, running))
        else:
            self._workers.put(running)

    def _attempt_ended(self, running: Running, outcome: Outcome) -> None:
        held = running.held
        if held.open.get(running.place) is running:
            del held.open[running.place]
        if running.alarm is not None:
            self._alarms.turn_off(running.alarm)
        self._logs.close(running)
        if running.log_place is not None or running.progress_made is not None:
            self._note(running)
        if running.is_settled:
            return
        self.feed(held, AttemptEnded(running.task, running.number, outcome))

    def _committed(self, held: Held, step: Step, commit: Commit | None) -> None:
        if self._is_behind and self.writer.waiting < _UNWRITTEN // 2:
            self._is_behind = False
            self._wake.set()
        if held.written is not None and not held.steps:
            held.written.set_result(None)
            held.written = None
        if commit is None:
            # It stays among what is held, or the beat would hand it to this node again.
            self._let_go(held)
        elif commit is Commit.STALE:
            self._lose(held)
        else:
            self.has_committed(held, step)

    def has_committed(self, held: Held, step: Step) -> None:
        """Go on from a step that the store has: start what it starts, tell of an end."""
        for start in step.starts:
            self._start(held, start)
        if self._events.wanted:
            self._tell_of(held, step)
        if step.end is not None or step.resume_at is not None or step.release:
            self._forget(held)
            if step.end is not None:
                self._reporter.ended(held.claim, step.end)

    def _forget(self, held: Held) -> None:
        held.is_gone = True
        if self._held.get(held.claim.handle) is held:
            del self._held[held.claim.handle]
        if not self._held:
            self._empty.set()

    def _let_go(self, held: Held) -> None:
        held.is_gone = True
        self._free(held)
        self._halt_all(held, Halt.CANCEL, "no longer this node's")

    def _lose(self, held: Held) -> None:
        """Another node has it now: stop what runs, record nothing."""
        if held.is_gone:
            return
        _log.warning("occurrence %s is no longer this node's: it is stopped here", held.claim.occurrence.id)
        self._let_go(held)
        self._forget(held)

    # ---------------------------------------------------------------------------------------- stopping an attempt

    def _halt(self, running: Running, why: Halt, reason: str) -> None:
        if running.context.halt is not None:
            return
        self._workers.halt(running, why, reason)
        grace = self._settings.grace_period.total_seconds()
        if running.alarm is not None:
            self._alarms.turn_off(running.alarm)
        # The body itself may need the whole grace period to end what it began.
        running.alarm = self._alarms.after(grace + 1.0, partial(self._abandon, running))

    def _halt_all(self, held: Held, why: Halt, reason: str) -> None:
        for running in list(held.open.values()):
            self._halt(running, why, reason)

    def _abandon(self, running: Running) -> None:
        if running.held.open.get(running.place) is running:
            self._workers.abandon(running)

    def _time_out(self, running: Running) -> None:
        if running.held.open.get(running.place) is running:
            self._halt(running, Halt.TIMEOUT, "")

    # ------------------------------------------------------------------------------- what has been open for a while

    def _watch(self, running: Running) -> None:
        """Look at it again only if it is still open in a moment: most attempts are over by then."""
        timeout = running.held.snapshot.rules.tasks[running.place].timeout
        if timeout is not None and timeout < _SHORT and running.until is not None:
            self._limit(running, running.until)
        self._young.append(running)
        if not self._is_sweeping:
            self._is_sweeping = True
            self._alarms.after(_SWEEP, self._sweep)

    def _limit(self, running: Running, until: datetime) -> None:
        running.alarm = self._alarms.after(self._clock.seconds_until(until), partial(self._time_out, running))

    def _sweep(self) -> None:
        """Wind the timeout of what is still open, and show people what has run for a second."""
        for running in self._young:
            if running.held.open.get(running.place) is running:
                self._old.append(running)
                if running.until is not None and running.alarm is None:
                    self._limit(running, running.until)
        self._young.clear()
        self._old = [running for running in self._old if running.held.open.get(running.place) is running]
        now = self._clock.monotonic()
        for running in self._old:
            if now - running.since >= _SHOWN_AFTER:
                self._note(running)
        if self._notes and self._noting is None:
            self._noting = asyncio.get_running_loop().create_task(self._write_notes())
        self._is_sweeping = bool(self._old or self._notes)
        if self._is_sweeping:
            self._alarms.after(_SWEEP, self._sweep)

    def _note(self, running: Running) -> None:
        known = running.progress_made, running.log_place
        if running.noted == known:
            return
        running.noted = known
        note = Note(running.task, running.number, running.context.started_at, *known)
        self._notes.append((running.held.claim, note))
        if not self._is_sweeping:
            self._is_sweeping = True
            self._alarms.after(_SWEEP, self._sweep)

    async def _write_notes(self) -> None:
        notes, self._notes = self._notes, []
        try:
            await self._store.note(notes)
        except StoreUnavailable as error:
            # For people only: the next change is shown again.
            self._health.failed(str(error))
        finally:
            self._noting = None

    # --------------------------------------------------------------------------------------- orders from the beat

    def obey(self, orders: Orders) -> None:
        """Do what the store said: cancel, let go of what is not this node's, take what it did not know it had."""
        for handle, reason in orders.cancel:
            held = self._held.get(handle)
            if held is not None:
                self._cancel(held, reason)
        for handle in orders.gone:
            held = self._held.get(handle)
            # What waits to be written may be why the store no longer counts it as held: its commit will tell.
            if held is not None and not held.steps:
                self._lose(held)
        self._adopt(orders.adopt)

    def _cancel(self, held: Held, reason: str) -> None:
        if held in self._backlog:
            self._backlog.remove(held)
            self.feed(held, Claimed())
        if held.deferred is not None:
            self._halt_all(held, Halt.CANCEL, reason)
        self.feed(held, CancelRequested(reason))

    def _adopt(self, claims: Sequence[Claim]) -> None:
        """Take what was claimed in our name and never arrived, once no claim under way can still bring it.

        It was missing in the last answer too, and whatever claim is under way began after that.
        """
        is_new = self._claims_begun > self._claims_when_missing
        if not self._is_claiming or is_new:
            self._take(each for each in claims if self._missing.get(each.handle) == each.fence)
        self._missing = {each.handle: each.fence for each in claims if each.handle not in self._held}
        self._claims_when_missing = self._claims_begun

    # ------------------------------------------------------------------------------------------------------ stopping

    def stop(self, *, drain: bool = False) -> None:
        """Claim nothing more; give back what has not begun, and tell the rest to stop unless it may finish."""
        self._stop = Stopping(drain)
        self._wake.set()
        while self._backlog:
            self.feed(self._backlog.popleft(), Stopping())
        for held in list(self._held.values()):
            if held.deferred is not None and not drain:
                self._halt_all(held, Halt.SHUTDOWN, SHUTDOWN)
            self.feed(held, self._stop)

    async def close(self) -> None:
        """End what is left of this executor; whatever did not end is left to another node's reaper."""
        self._workers.close()
        await self._workers.closed()
        for held in list(self._held.values()):
            held.is_gone = True
        if self._noting is not None:
            await asyncio.gather(self._noting, return_exceptions=True)
        if self._notes:
            await self._write_notes()

    # --------------------------------------------------------------------------------- what a running attempt asks for

    def logger(self, running: Running) -> Logger:
        """Return the logger of the attempt."""
        return self._logs.logger(running)

    def keep(self, running: Running, data: bytes) -> None:
        """Keep output of the attempt, from any thread."""
        self._logs.write(running, data)

    def transaction(self, running: Running) -> AbstractAsyncContextManager[TaskTransaction]:
        """Begin the attempt's one transaction."""
        return transaction(self, self._store, self._clock, running)

    async def written(self, held: Held) -> None:
        """Return when everything that was decided about the occurrence is in the store."""
        if held.steps:
            held.written = asyncio.get_running_loop().create_future()
            await held.written

    def settle(self, held: Held, step: Step) -> None:
        """Go on from a step that was committed in a task's transaction."""
        self._heed(held, step)
        self.has_committed(held, step)

    # -------------------------------------------------------------------------------------------------------- telling

    def _tell(self, held: Held, kind: Happening, running: Running, status: str = "", text: str = "") -> None:
        occurrence = held.claim.occurrence
        self._events.tell(
            Told(
                kind,
                self._clock.now(),
                held.claim.job.name,
                occurrence.id,
                occurrence.scheduled_for,
                running.task,
                running.number,
                status,
                text,
            )
        )

    def _tell_of(self, held: Held, step: Step) -> None:
        occurrence, name, now = held.claim.occurrence, held.claim.job.name, self._clock.now()
        about = partial(Told, job=name, occurrence_id=occurrence.id, scheduled_for=occurrence.scheduled_for)
        for row in step.rows:
            if row.attempt is not None and row.ended_at is not None:
                self._events.tell(
                    about(
                        Happening.ATTEMPT_ENDED,
                        now,
                        task=row.task,
                        attempt=row.number,
                        status=row.attempt,
                        text=row.error or "",
                    )
                )
        for wait in step.waits:
            self._events.tell(
                about(Happening.RETRY_PLANNED, now, task=wait.task, attempt=wait.number, text=f"at {wait.until}")
            )
        if step.end is not None:
            self._events.tell(about(Happening.ENDED, now, status=step.end.status, text=step.end.error or ""))
