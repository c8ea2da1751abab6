"""The reaper: orphans → Lost → commit. It decides nothing; of many reapers one gets each orphan."""

import logging
from collections.abc import Sequence
from datetime import timedelta

from everytick.deciding.advance import advance
from everytick.domain.outcome import Lost
from everytick.node.clock import NodeClock
from everytick.node.events import Event, Events, Happening
from everytick.stores.base import Claim, Commit, RunStore

_log = logging.getLogger("everytick.reaper")

_AT_ONCE = 500


class Reaper:
    """Settles what silent nodes held."""

    def __init__(self, store: RunStore, node: str, clock: NodeClock, events: Events, silence: timedelta) -> None:
        self._store, self._node, self._clock, self._events, self._silence = store, node, clock, events, silence

    async def round(self) -> int:
        """Take over one batch of orphans and settle each; return how many there were."""
        return await self.settle(await self._store.orphans(self._node, _AT_ONCE, self._silence))

    async def settle(self, claims: Sequence[Claim]) -> int:
        """Report the owner of each as lost, as any owner reports what happened."""
        if not claims:
            return 0
        now = self._clock.now()
        steps = [(claim, advance(claim.snapshot, Lost(), now)) for claim in claims]
        commits = await self._store.commit_steps([each for each in steps if each[1].commits])
        for (claim, step), commit in zip((each for each in steps if each[1].commits), commits, strict=True):
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
