"""The writer: steps of many occurrences in one commit, whenever the last commit is through."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from everytick.domain.steps import Step
from everytick.errors import StoreGone, StoreUnavailable
from everytick.node.health import Backoff, Health
from everytick.node.inbox import Inbox, StepsWritten
from everytick.node.occurrence import OwnedOccurrence
from everytick.stores.base import Claim, Commit, CommitAnswer, CommitAway, CommitFailed
from everytick.stores.protocols import RunStore

_log = logging.getLogger("everytick.node")

# Bound once: to look a member up in its class takes as long as to call a function.
_COMMITTED = Commit.COMMITTED

BATCH = 500
"""Largest number of steps that one commit carries; 500 keeps its locks short."""


class Writer:
    """Commits the steps of each occurrence in order, one step of an occurrence in each commit.

    One commit is under way at a time; the steps that gather meanwhile are the next one. Steps that
    the store answers with AWAY wait in a second queue, with a back-off of their own: no other step
    waits for them.
    """

    def __init__(self, store: RunStore, health: Health, inbox: Inbox) -> None:
        self._store, self._health, self._inbox = store, health, inbox
        self._queue: deque[OwnedOccurrence] = deque()
        self._away: list[OwnedOccurrence] = []
        self._away_until, self._away_backoff = 0.0, Backoff()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """How many occurrences have something to write."""
        return len(self._queue) + len(self._away)

    def put(self, occurrence: OwnedOccurrence, step: Step) -> None:
        """Write the step behind those of the same occurrence that wait."""
        occurrence.steps = (*occurrence.steps, step) if occurrence.steps else (step,)
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
        """Write until stopped."""
        while True:
            await self._wait_for_steps()
            while self._queue:
                await self._write_all()
                self._try_again()
            self._work.clear()
            if not self._away:
                self._idle.set()

    async def _wait_for_steps(self) -> None:
        """Return when there is a step to write, or when it is time to try those again that were answered with AWAY."""
        try:
            async with asyncio.timeout_at(self._away_until if self._away else None):
                await self._work.wait()
        except TimeoutError:
            self._try_again()

    def _try_again(self) -> None:
        """Put the steps that were answered with AWAY back into the queue, if they have waited for their time."""
        if self._away and asyncio.get_running_loop().time() >= self._away_until:
            self._queue.extend(self._away)
            self._away.clear()

    async def _write_all(self) -> None:
        """Write the waiting steps. Steps that come in between are for the next round."""
        for _ in range(0, len(self._queue), BATCH):
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            await self._write(batch)
            # Not every store takes a turn of the loop to answer.
            await asyncio.sleep(0)

    async def _write(self, batch: list[OwnedOccurrence]) -> None:
        steps = [(occurrence.claim, occurrence.steps[0]) for occurrence in batch]
        away: list[OwnedOccurrence] = []
        try:
            answers = await self._commit(steps)
        except Exception:
            # A mistake in a store: its steps stay in the queue, and are written when this loop begins again.
            self._queue.extendleft(reversed(batch))
            raise
        written: list[tuple[OwnedOccurrence, Step, Commit | None]] = []
        for occurrence, (_, step), answer in zip(batch, steps, answers, strict=True):
            if isinstance(answer, CommitAway):
                away.append(occurrence)
                continue
            if answer is _COMMITTED and len(occurrence.steps) > 1:
                occurrence.steps = occurrence.steps[1:]
                self._queue.append(occurrence)
            else:
                occurrence.steps, occurrence.is_queued = (), False
            written.append((occurrence, step, answer if isinstance(answer, Commit) else None))
        self._set_aside(away)
        self._inbox.put(StepsWritten(written))

    def _set_aside(self, away: list[OwnedOccurrence]) -> None:
        """Try these again later."""
        if away and not self._away:
            self._away_until = asyncio.get_running_loop().time() + self._away_backoff.failed()
        elif not away and not self._away:
            self._away_backoff.succeeded()
        self._away += away

    async def _commit(self, steps: list[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Return what became of each step; a store that is away is asked again."""
        backoff = Backoff()
        while True:
            try:
                answers = await self._store.commit_steps(steps)
            except StoreGone as error:
                self._health.failed(error)
                return [CommitFailed(str(error))] * len(steps)
            except StoreUnavailable as error:
                self._health.failed(error)
                await asyncio.sleep(backoff.failed(error))
            else:
                self._health.answered()
                if answers.count(Commit.COMMITTED) != len(answers):
                    _log_refused(steps, answers)
                return answers


def _log_refused(steps: Sequence[tuple[Claim, Step]], answers: Sequence[CommitAnswer]) -> None:
    for (claim, step), answer in zip(steps, answers, strict=True):
        if isinstance(answer, CommitFailed):
            text = "step %d of occurrence %s cannot be written: %s; the occurrence is settled as lost"
            _log.error(text, step.number, claim.header.id, answer.reason)
