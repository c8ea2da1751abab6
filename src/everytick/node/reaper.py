"""The reaper: orphans → Lost → commit. It decides nothing; of many reapers one gets each orphan.

An attempt that an engine carries out is not lost with its node: the reaper's own node waits for its end, if it can.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from everytick.deciding.advance import advance
from everytick.domain.outcome import Lost
from everytick.domain.steps import Step, deadline_of
from everytick.domain.texts import SILENT_NODE
from everytick.node.clock import NodeClock
from everytick.node.events import Event, Happening, Listeners
from everytick.node.inbox import Arrived, Inbox, Unwritable
from everytick.node.scope import Scope
from everytick.node.settings import NodeSettings
from everytick.node.silence import Silence
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Claim, ClaimKey, Commit, CommitAnswer, CommitAway, CommitFailed, NodeRecord, Nodes

_log = logging.getLogger("everytick.reaper")

_TAKEN_AT_ONCE = 500
"""Largest number of claims that one question takes over: as many as the writer puts into one commit."""


class Reaper:
    """Settles what silent nodes held."""

    def __init__(
        self,
        store: AnyStore,
        node: str,
        clock: NodeClock,
        listeners: Listeners,
        settings: NodeSettings,
        scope: Scope | None = None,
        inbox: Inbox | None = None,
    ) -> None:
        self._store, self._node, self._clock, self._listeners = store, node, clock, listeners
        # This name never beats. So claims taken over here are never adopted and run; if the reaper fails, they are
        # orphans again at once.
        self._name = f"{node} reaper"
        self._silence = Silence(node, settings)
        self._scope, self._inbox = scope, inbox
        self._unwritable: set[ClaimKey] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def round(self) -> int:
        """Take over one batch: claims of silent nodes, overdue claims, and claims whose steps this node cannot write.

        Return how many there were. An owner itself ends an occurrence past its deadline. If its loop is blocked by a
        task it cannot, and must not keep the occurrence for ever.
        """
        nodes, clock = await self._store.ask(Nodes()), self._clock
        dead = self._silence.look(nodes, clock.now(), clock.monotonic(), clock.stepped)
        if dead.silent:
            await self._reattach(dead.silent)
        return await self._take(dead.silent, dead.overdue)

    async def _reattach(self, silent: Mapping[str, int]) -> None:
        """Let this node go on with what silent ones have handed over to engines that it can ask."""
        if self._scope is None or self._inbox is None:
            return
        asked_at = self._clock.monotonic()
        claims = await self._store.reattach(self._scope.current, _TAKEN_AT_ONCE, silent)
        if claims:
            self._inbox.put(Arrived(tuple(claims), asked_at))

    def lives(self, node: NodeRecord) -> bool:
        """Say whether the node beats, as this reaper has seen it; one that it has not looked at yet lives."""
        return node.id == self._node or not self._silence.is_silent(node, self._clock.now())

    def settle_soon(self, unwritable: Unwritable) -> None:
        """Settle a claim of this node's own as if it were lost: the store refuses what the node says about it.

        If the store does not answer now, the next round tries again.
        """
        self._unwritable.add(unwritable.key)
        task = asyncio.get_running_loop().create_task(self._settle_now(unwritable))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle_now(self, unwritable: Unwritable) -> None:
        try:
            await self._take({})
        except Exception as error:  # noqa: BLE001, whatever a driver raises
            text = "occurrence %s cannot be settled now: %s; the next round of the reaper tries again"
            _log.warning(text, unwritable.occurrence_id, error)

    async def _take(self, silent: Mapping[str, int], overdue: Collection[ClaimKey] = ()) -> int:
        """Take over what these nodes hold, if they have not beaten since, and these claims; return how many."""
        unwritable = list(self._unwritable)
        if not silent and not overdue and not unwritable:
            return 0
        claims = await self._store.orphans(self._name, _TAKEN_AT_ONCE, silent, [*overdue, *unwritable])
        if len(claims) < _TAKEN_AT_ONCE:
            self._unwritable.difference_update(unwritable)
        return await self.settle(claims, {key.handle for key in overdue})

    async def take_over(self, dead: Collection[str], ends: Collection[str] = (), reason: str = "") -> int:
        """Settle what these nodes hold without waiting for their silence: they are known to be dead.

        One that beats meanwhile keeps what it holds. The occurrences in `ends` are canceled with the
        reason; `on_orphan` says what becomes of the others. Return how many there were.
        """
        beats, settled = {node.id: node.beats for node in await self._store.ask(Nodes()) if node.id in dead}, 0
        while beats and (claims := await self._store.orphans(self._name, _TAKEN_AT_ONCE, beats)):
            ended = [_asked_to_stop(claim, reason) if claim.occurrence.id in ends else claim for claim in claims]
            settled += await self.settle(ended)
            if len(claims) < _TAKEN_AT_ONCE:
                break
        return settled

    async def settle(self, claims: Sequence[Claim], overdue: Collection[int] = ()) -> int:
        """Report the owner of each as lost, as any owner reports what happened.

        Of those named as overdue the store's clock said that their deadline has passed.
        """
        if not claims:
            return 0
        now = self._clock.now()
        moments = [_no_earlier(claim, now) if claim.handle in overdue else now for claim in claims]
        told = [(claim, self._decided(claim, at)) for claim, at in zip(claims, moments, strict=True)]
        decided = [(claim, step) for claim, step in told if step is not None]
        steps = [(claim, step) for claim, step in decided if step.commits]
        for (claim, step), commit in zip(steps, await self._committed(steps), strict=True):
            if commit is Commit.COMMITTED:
                self._listeners.meter.step(claim, step)
                self._listeners.meter.lost(claim.job)
                occurrence = claim.occurrence
                about = partial(Event, Happening.LOST, now, claim.job.name, occurrence.id, occurrence.scheduled_for)
                self._listeners.tell(about(status=step.after.status, text=occurrence.node or ""))
        return len(claims)

    def _decided(self, claim: Claim, now: datetime) -> Step | None:
        """Return the step that follows from the loss. None, with an event, if it cannot be decided."""
        try:
            return advance(claim.header, claim.life, Lost(SILENT_NODE.format(node=claim.occurrence.node)), now)
        except Exception:  # noqa: BLE001, a mistake of ours about one must not keep all others from being settled
            text = "what becomes of occurrence %s cannot be decided; the reaper tries again in its next round"
            _log.exception(text, claim.occurrence.id)
            return None

    async def _committed(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Return what became of each step; an occurrence whose loss cannot be written is an orphan again at once."""
        answers = await self._store.commit_steps(steps) if steps else []
        for (claim, _), answer in zip(steps, answers, strict=True):
            if isinstance(answer, CommitAway):
                text = "the loss of occurrence %s cannot be written yet: %s; the reaper tries again in its next round"
                _log.warning(text, claim.occurrence.id, answer.reason)
            elif isinstance(answer, CommitFailed):
                text = "the loss of occurrence %s cannot be written: %s; the reaper tries again in its next round"
                _log.error(text, claim.occurrence.id, answer.reason)
        return answers


def _no_earlier(claim: Claim, now: datetime) -> datetime:
    """Return the moment, or the claim's deadline if that is later: this node's clock may be a little behind."""
    until = deadline_of(claim.header, claim.life)
    return now if until is None else max(now, until)


def _asked_to_stop(claim: Claim, reason: str) -> Claim:
    """Return the claim as if its end had been asked for before its owner was lost."""
    return replace(claim, life=replace(claim.life, cancel=reason))
