"""The watch over promises: due promises → judge → commit → tell. It decides nothing; one of many nodes tells."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from everytick.deciding.promises import begun, ended, judge
from everytick.domain.limits import Limits, reaches_of_job
from everytick.domain.lookups import LimitsAndBrakes
from everytick.domain.promises import Breach, Judgement, OwedBreach, PromiseSnapshot
from everytick.errors import StoreUnavailable
from everytick.node.events import Event, Happening, Listeners
from everytick.node.notifier import Notifier
from everytick.node.scope import Scope
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Commit

_log = logging.getLogger("everytick.promises")

_JUDGED_AT_ONCE = 100
"""Largest number of promises in one question."""

_PUT_OFF = timedelta(minutes=1)
"""When a promise is judged again that could not be: an edit may have mended its job by then."""


class PromiseWatch:
    """Looks after the promises of all jobs in the store, whichever application they belong to.

    It imports no job's code and plans nothing. Promises and past runs are read from the store.
    """

    def __init__(
        self, store: AnyStore, scope: Scope, notifier: Notifier, listeners: Listeners, queues: Sequence[str]
    ) -> None:
        self._store, self._scope, self._notifier, self._listeners = store, scope, notifier, listeners
        self._queue = "default" if "default" in queues or not queues else queues[0]

    async def round(self) -> int:
        """Judge one batch of promises and ask for the notices; return how many there were."""
        due = await self._store.promises(self._scope.current, _JUDGED_AT_ONCE)
        owed = [*due.owed, *await self._judge(due.snapshots, due.now)]
        if owed:
            for breach in owed:
                await self._notify(breach)
            await self._store.commit_promises((), owed)
        return len(due.snapshots)

    async def _judge(self, snapshots: Sequence[PromiseSnapshot], now: datetime) -> list[OwedBreach]:
        """Commit what is decided about each promise, tell of it, and return what the receivers have to be told."""
        if not snapshots:
            return []
        limits = await self._store.ask(LimitsAndBrakes())
        snapshots = [_braked(snapshot, limits) for snapshot in snapshots]
        judgements = [_judged(snapshot, now) for snapshot in snapshots]
        answers, breaches = await self._store.commit_promises(judgements), list[OwedBreach]()
        for snapshot, judgement, answer in zip(snapshots, judgements, answers, strict=True):
            if answer is Commit.COMMITTED:
                self._tell(snapshot, judgement, now)
                breaches += _owed(snapshot, judgement)
        return breaches

    def _tell(self, snapshot: PromiseSnapshot, judgement: Judgement, now: datetime) -> None:
        name = snapshot.seen.editions[-1].job.name
        for breach in begun(judgement, snapshot.state):
            self._listeners.tell(_event(Happening.PROMISE_BROKEN, now, name, breach, str(breach)))
        for breach in ended(judgement):
            assert breach.ended_at is not None, "it has ended"
            text = (
                f"{breach.kind}: since {breach.ended_at.isoformat()}; it was broken from {breach.due_at.isoformat()} on"
            )
            self._listeners.tell(_event(Happening.PROMISE_KEPT, now, name, breach, text))

    async def _notify(self, owed: OwedBreach) -> None:
        try:
            await self._notifier.tell_breach(owed, self._scope.current.met, self._queue)
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001, asked again it would fail again, and keep the others waiting
            _log.exception("no notice is sent of a breach of job %s, and none will be: this is a fault", owed.job_id)


def _braked(snapshot: PromiseSnapshot, limits: Limits) -> PromiseSnapshot:
    """Return the snapshot with the brake that holds the starts of its job now."""
    if not limits.reaches:
        return snapshot
    job = snapshot.seen.editions[-1].job
    names = reaches_of_job(job.settings.tags, job.name, job.settings.queue)
    brakes = (state.reach.brake(limits.now) for state in limits.reaches if state.reach.name in names)
    return replace(snapshot, brake=next((brake for brake in brakes if brake is not None), None))


def _judged(snapshot: PromiseSnapshot, now: datetime) -> Judgement:
    """Return what is decided; if that fails, look again in a minute: one job must not keep all others waiting."""
    try:
        return judge(snapshot, now)
    except Exception:  # noqa: BLE001, a schedule of a user's own may raise anything
        name, kind = snapshot.seen.editions[-1].job.name, snapshot.state.kind
        _log.exception("%s of job '%s' cannot be judged; it is tried again in a minute", kind, name)
        return Judgement(snapshot.job_id, replace(snapshot.state, check_at=now + _PUT_OFF))


def _owed(snapshot: PromiseSnapshot, judgement: Judgement) -> Iterator[OwedBreach]:
    """Give what the receivers have to be told of a judgement that was committed."""
    begins, ends = set(begun(judgement, snapshot.state)), set(ended(judgement))
    for breach in judgement.breaches:
        if breach in begins or breach in ends:
            yield OwedBreach(judgement.job_id, breach, breach in begins, breach in ends)


def _event(kind: Happening, now: datetime, name: str, breach: Breach, text: str) -> Event:
    return Event(kind, now, name, breach.occurrence_id, breach.broken_for, text=text, count=breach.count)
