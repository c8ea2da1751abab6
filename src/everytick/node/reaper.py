"""The reaper: orphans → Lost → commit. It decides nothing; of many reapers one gets each orphan."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from everytick.deciding.advance import advance
from everytick.domain.job import Job
from everytick.domain.occurrence import Occurrence
from everytick.domain.outcome import Lost
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import Step
from everytick.errors import Contended, StoreUnavailable
from everytick.node.clock import NodeClock
from everytick.node.events import Event, Events, Happening
from everytick.node.settings import NodeSettings
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Claim, Commit

_log = logging.getLogger("everytick.reaper")

_AT_ONCE = 500
_NEVER = datetime.max.replace(tzinfo=UTC) - timedelta(days=366)


class Reaper:
    """Settles what silent nodes held."""

    def __init__(self, store: AnyStore, node: str, clock: NodeClock, events: Events, settings: NodeSettings) -> None:
        self._store, self._node, self._clock, self._events = store, node, clock, events
        # A name that never beats. What the node itself holds, its beat may hand it to run; what was taken over here
        # must never be run, and if this reaper fails before it has settled it, it is an orphan again at once.
        self._name = f"{node} reaper"
        self._silence, self._grace = settings.node_timeout, settings.grace_period

    async def round(self) -> int:
        """Take over one batch of orphans and settle each; return how many there were."""
        return await self.settle(await self._store.orphans(self._name, _AT_ONCE, self._silence))

    async def overtime(self) -> int:
        """Take over what living nodes hold past its deadline and the grace period; return how many there were.

        An owner ends what runs out of time itself. One that lives but does not, for its loop
        is held up by a task, must not keep the occurrence for ever.
        """
        found, cursor = 0, None
        while True:
            page = await self._store.history(statuses=(OccurrenceStatus.RUNNING,), limit=_AT_ONCE, cursor=cursor)
            found += await self._settle_overtime(page.occurrences)
            cursor = page.cursor
            if cursor is None:
                return found

    async def _settle_overtime(self, running: Sequence[Occurrence]) -> int:
        records = await self._store.get({each.job_id for each in running})
        now = self._clock.now()
        over = [
            each
            for each in running
            if each.owner != self._node
            and each.job_id in records
            # What runs under an older definition is judged by whoever knows that one: its owner.
            and each.version == records[each.job_id].job.version
            and _deadline(each, records[each.job_id].job) + self._grace < now
        ]
        if not over:
            return 0
        jobs, ids = {each.job_id for each in over}, {each.id for each in over}
        return await self.settle(await self._store.take(self._name, jobs, len(over), ids))

    async def take_over(self, job_ids: Collection[str], occurrence_ids: Collection[str], *, end: str = "") -> int:
        """Take what other nodes hold of these, silent or not, and settle each; return how many there were.

        With a reason to `end` them they are canceled; else `on_orphan` says what becomes of them.
        """
        found = 0
        while claims := await self._store.take(self._name, job_ids, _AT_ONCE, occurrence_ids):
            found += await self.settle([_asked_to_stop(claim, end) for claim in claims] if end else claims)
            if len(claims) < _AT_ONCE:
                break
        return found

    async def settle(self, claims: Sequence[Claim]) -> int:
        """Report the owner of each as lost, as any owner reports what happened."""
        if not claims:
            return 0
        now = self._clock.now()
        decided = [(claim, step) for claim in claims if (step := self._decided(claim, now)) is not None]
        steps = [each for each in decided if each[1].commits]
        for (claim, step), commit in zip(steps, await self._committed(steps), strict=True):
            if commit is Commit.COMMITTED:
                _log.warning(
                    "occurrence %s of job '%s' was lost with its node and is now %s",
                    claim.occurrence.id,
                    claim.job.name,
                    step.after.status,
                )
                if self._events.wanted:
                    occurrence = claim.occurrence
                    self._events.tell(
                        Event(
                            Happening.LOST,
                            now,
                            claim.job.name,
                            occurrence.id,
                            occurrence.scheduled_for,
                            status=step.after.status,
                        )
                    )
        return len(claims)

    def _decided(self, claim: Claim, now: datetime) -> Step | None:
        """Return what follows from the loss; None, told, where that cannot be decided."""
        try:
            return advance(claim.snapshot, Lost(), now)
        except Exception:  # noqa: BLE001, a mistake of ours about one must not keep all others from being settled
            _log.exception("what becomes of occurrence %s cannot be decided", claim.occurrence.id)
            return None

    async def _committed(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[Commit | None]:
        """Return what became of each step, None where it cannot be written: it is an orphan again at once."""
        if not steps:
            return []
        try:
            return await self._store.commit_steps(steps)
        except Contended as error:
            if len(steps) == 1:
                _log.warning("the loss of occurrence %s is written later: %s", steps[0][0].occurrence.id, error)
                return [None]
            return [each for step in steps for each in await self._committed([step])]
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001, whatever a driver raises about one of them
            if len(steps) == 1:
                _log.exception("the loss of occurrence %s cannot be written", steps[0][0].occurrence.id)
                return [None]
            return [each for step in steps for each in await self._committed([step])]


def _asked_to_stop(claim: Claim, reason: str) -> Claim:
    """The claim as if somebody had asked for its end before its owner was lost."""
    return replace(claim, snapshot=replace(claim.snapshot, cancel=reason))


def _deadline(running: Occurrence, job: Job) -> datetime:
    """When the occurrence is out of time; `job` is the definition it runs under."""
    own = running.overrides.get("execution_timeout") if running.overrides.items else None
    timeout = own if isinstance(own, timedelta) else job.settings.execution_timeout
    if timeout is None or running.started_at is None or timeout > _NEVER - running.started_at:
        return _NEVER
    return running.started_at + timeout
