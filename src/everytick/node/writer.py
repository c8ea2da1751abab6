"""The writer: steps of many occurrences in one commit, whenever the last commit is through."""

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Sequence
from typing import TypeAlias

from everytick.domain.steps import Step
from everytick.errors import Contended, StoreGone, StoreUnavailable
from everytick.node.backoff import Backoff
from everytick.node.health import Health
from everytick.node.inbox import Inbox, StepWritten
from everytick.node.occurrence import OpenAttempt, OwnedOccurrence
from everytick.node.slots import AHEAD_SECONDS, Slots
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Claim, Commit

_log = logging.getLogger("everytick.executor")

BATCH = 500
"""So many steps are committed together at most."""

_PUT_OFF = 10_000
_PUT_OFF_FOR = 0.25
"""So many ends may wait for so many seconds while others start, where they may."""


class _Later:
    """Another session is in the way of this step: the others go on, and it is written after them."""


_LATER = _Later()
_Answer: TypeAlias = Commit | _Later | None


class Writer:
    """Commits steps in the order in which each occurrence made them, one of each at a time.

    There is no timer: what gathers while one commit is under way is the next one.
    """

    def __init__(
        self, store: AnyStore, health: Health, inbox: Inbox, slots: Slots, ready: Collection[OpenAttempt]
    ) -> None:
        self._store, self._health, self._inbox, self._slots, self._ready = store, health, inbox, slots, ready
        # In memory an end is not safer for being written at once, and others wait to start.
        self._gives_way = store.is_in_memory
        self._is_waited_for = False
        self._in_the_way = Backoff()
        self._queue: deque[OwnedOccurrence] = deque()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """How many occurrences have something to write."""
        return len(self._queue)

    @property
    def urgent(self) -> int:
        """How many of them are more than may be put off."""
        return self.waiting - (_PUT_OFF if self._gives_way else 0)

    def put(self, occurrence: OwnedOccurrence, step: Step) -> None:
        """Write the step behind those that wait."""
        occurrence.steps = (*occurrence.steps, step) if occurrence.steps else (step,)
        self._is_waited_for = self._is_waited_for or step.end is None
        if not occurrence.is_queued:
            occurrence.is_queued = True
            if not self._queue:
                self._idle.clear()
                self._work.set()
            self._queue.append(occurrence)

    async def flushed(self) -> None:
        """Return when nothing waits to be written."""
        await self._idle.wait()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._work.wait()
            while self._queue:
                if self._gives_way:
                    await self._let_others_start()
                await self._write_all()
            self._work.clear()
            self._idle.set()

    async def _let_others_start(self) -> None:
        """Let others start first, for a moment: but not if something is to begin once its step is written."""
        loop, calm = asyncio.get_running_loop(), 0
        until = loop.time() + _PUT_OFF_FOR
        # Twice: in one turn the claimer claims, in the next its claims begin.
        while calm < 2 and not self._is_waited_for and len(self._queue) < _PUT_OFF and loop.time() < until:
            await asyncio.sleep(0)
            calm = 0 if self._ready and self._slots.pace < AHEAD_SECONDS else calm + 1

    async def _write_all(self) -> None:
        """Write what waits now; what comes meanwhile is for the next round."""
        waiting, self._is_waited_for = len(self._queue), False
        for _ in range(0, waiting, BATCH):
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            await self._write(batch)
            # Not every store takes a turn of the loop to answer.
            await asyncio.sleep(0)

    async def _write(self, batch: list[OwnedOccurrence]) -> None:
        steps = [(occurrence.claim, occurrence.steps[0]) for occurrence in batch]
        commits = await self._commit(steps)
        for occurrence, (_, step), commit in zip(batch, steps, commits, strict=True):
            if isinstance(commit, _Later):
                self._queue.append(occurrence)
                continue
            occurrence.steps = occurrence.steps[1:]
            if occurrence.steps and commit is Commit.COMMITTED:
                self._queue.append(occurrence)
                self._is_waited_for = True
            else:
                occurrence.is_queued = False
                occurrence.steps = ()
            self._inbox.put(StepWritten(occurrence, step, commit))
        if all(commit is _LATER for commit in commits):
            await asyncio.sleep(self._in_the_way.failed())
        else:
            self._in_the_way.succeeded()

    async def _commit(self, steps: list[tuple[Claim, Step]]) -> Sequence[_Answer]:
        """Return what became of each step, None where it cannot be written; a silent store is asked again."""
        backoff = Backoff()
        while True:
            try:
                commits = await self._store.commit_steps(steps)
            except StoreGone as error:
                self._health.failed(error)
                return [None] * len(steps)
            except Contended as error:
                self._health.failed(error)
                if len(steps) == 1:
                    return [_LATER]
                return [(await self._commit([step]))[0] for step in steps]
            except StoreUnavailable as error:
                self._health.failed(error)
                await asyncio.sleep(backoff.failed(error))
            except Exception:  # noqa: BLE001, whatever a driver raises
                if len(steps) == 1:
                    self._tell_of_unwritable(*steps[0])
                    return [None]
                _log.exception("%d steps could not be written together: each is written alone", len(steps))
                return [(await self._commit([step]))[0] for step in steps]
            else:
                self._health.answered()
                return commits

    def _tell_of_unwritable(self, claim: Claim, step: Step) -> None:
        """One occurrence must not end the writing of all others: it stands still until its node is gone."""
        _log.exception("step %d of occurrence %s cannot be written", step.number, claim.snapshot.id)
