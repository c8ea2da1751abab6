"""The writer: steps of many occurrences in one commit, whenever the last commit is through."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from everytick.domain.steps import Step
from everytick.errors import StoreGone, StoreUnavailable
from everytick.node.backoff import Backoff
from everytick.node.health import Health
from everytick.node.inbox import Inbox, StepWritten
from everytick.node.occurrence import OwnedOccurrence
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Claim, Commit, CommitAnswer, CommitAway, CommitFailed

_log = logging.getLogger("everytick.executor")

BATCH = 500
"""So many steps are committed together at most."""


class Writer:
    """Commits steps in the order in which each occurrence made them, one of each at a time.

    There is no timer: what gathers while one commit is under way is the next one.
    """

    def __init__(self, store: AnyStore, health: Health, inbox: Inbox) -> None:
        self._store, self._health, self._inbox = store, health, inbox
        self._in_the_way = Backoff()
        self._queue: deque[OwnedOccurrence] = deque()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def waiting(self) -> int:
        """How many occurrences have something to write."""
        return len(self._queue)

    def put(self, occurrence: OwnedOccurrence, step: Step) -> None:
        """Write the step behind those that wait."""
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
        """Write for ever."""
        while True:
            await self._work.wait()
            while self._queue:
                await self._write_all()
            self._work.clear()
            self._idle.set()

    async def _write_all(self) -> None:
        """Write what waits now; what comes meanwhile is for the next round."""
        for _ in range(0, len(self._queue), BATCH):
            batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
            await self._write(batch)
            # Not every store takes a turn of the loop to answer.
            await asyncio.sleep(0)

    async def _write(self, batch: list[OwnedOccurrence]) -> None:
        steps = [(occurrence.claim, occurrence.steps[0]) for occurrence in batch]
        commits = await self._commit(steps)
        for occurrence, (_, step), commit in zip(batch, steps, commits, strict=True):
            if isinstance(commit, CommitAway):
                self._queue.append(occurrence)
                continue
            occurrence.steps = occurrence.steps[1:]
            if occurrence.steps and commit is Commit.COMMITTED:
                self._queue.append(occurrence)
            else:
                occurrence.is_queued = False
                occurrence.steps = ()
            self._inbox.put(StepWritten(occurrence, step, commit if isinstance(commit, Commit) else None))
        if all(isinstance(commit, CommitAway) for commit in commits):
            await asyncio.sleep(self._in_the_way.failed())
        else:
            self._in_the_way.succeeded()

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
                _log_refused(steps, answers)
                return answers


def _log_refused(steps: Sequence[tuple[Claim, Step]], answers: Sequence[CommitAnswer]) -> None:
    for (claim, step), answer in zip(steps, answers, strict=True):
        if isinstance(answer, CommitFailed):
            text = "step %d of occurrence %s cannot be written: %s; the occurrence is settled as lost"
            _log.error(text, step.number, claim.header.id, answer.reason)
