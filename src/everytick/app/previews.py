"""Previews: what a change of definitions means for the runs to come, with a hash by which exactly that is stored.

The hash is of what is to change and of what it was compared with: the versions of the jobs, the moments at which new
versions come into force, and what people said about their schedules. That time passes does not change it, unless it
moves such a moment.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from everytick.answers.values import Preview
from everytick.deciding.revise import Revision, resumed, revise, suspended, with_edit
from everytick.domain.durations import MICROSECOND
from everytick.domain.facts import Pause
from everytick.domain.lookups import Editions
from everytick.errors import Conflict, PlanMoved, shown
from everytick.stores.definitions import write_definition
from everytick.stores.storing_rules import under_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from everytick.domain.policies import UpdatePolicy
    from everytick.domain.snapshots import JobSnapshot
    from everytick.sources.drafting import Drafted
    from everytick.stores.addresses import AnyStore

__all__ = ["Preview", "Revision", "preview", "refuse_moved"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HASH = re.compile(r"([0-9a-f]{8,16})-([0-9a-f]{16})")


async def preview(store: AnyStore, drafts: Sequence[Drafted], policy: UpdatePolicy | None = None) -> Preview:
    """Return what the drafts would change."""
    now = await store.now()
    changing = [drafted for drafted in drafts if drafted.change.kind != "unchanged"]
    seen = await store.look([drafted.before.id for drafted in changing if drafted.before is not None])
    runs, parts = dict[str, Revision](), list[tuple[object, ...]]()
    for drafted in sorted(changing, key=lambda draft: draft.change.name):
        before = None if drafted.before is None else seen.get(drafted.before.id)
        found = runs[drafted.change.name] = revise(before, _after(drafted, before, now, policy), now)
        parts.append((*_wanted(drafted, policy), *_moments(drafted, policy, found), *_said(before)))
    digest = sha256(repr(parts).encode()).hexdigest()[:16]
    return Preview(tuple(draft.change for draft in drafts), runs, f"{(now - _EPOCH) // MICROSECOND:x}-{digest}")


def _after(
    drafted: Drafted, before: JobSnapshot | None, now: datetime, policy: UpdatePolicy | None
) -> JobSnapshot | None:
    """Return the snapshot of the job after the change, None if it is removed."""
    if drafted.change.kind == "removed":
        return None
    after = before
    if drafted.job is not None:
        job = drafted.job if drafted.before is None else under_id(drafted.job, drafted.before.id)
        after = with_edit(before, job, now, policy)
    if after is None or drafted.fact is None:
        return after
    return suspended(after, now) if isinstance(drafted.fact, Pause) else resumed(after, now)


def _wanted(drafted: Drafted, policy: UpdatePolicy | None) -> tuple[object, ...]:
    """What is to change, and from which version."""
    job, version = drafted.job, 0 if drafted.before is None else drafted.before.version
    text = "" if job is None else write_definition(job)
    fact = "" if drafted.fact is None else type(drafted.fact).__name__
    return drafted.change.name, drafted.change.kind, version, text, fact, str(policy or "")


def _moments(drafted: Drafted, policy: UpdatePolicy | None, found: Revision) -> tuple[object, ...]:
    """When its versions come into force, unless that is counted from now."""
    own = None if drafted.job is None else drafted.job.settings.update_policy
    used = policy or own
    return () if used is None or used.duration is not None else tuple(at.isoformat() for at in found.moments)


def _said(before: JobSnapshot | None) -> tuple[object, ...]:
    """What people said about its schedule."""
    if before is None:
        return ()
    pauses = [(pause.since.isoformat(), str(pause.until), str(pause.missed)) for pause in before.pauses]
    single = sorted(
        (adjustment.at.isoformat(), str(adjustment.kind), str(adjustment.to)) for adjustment in before.adjustments
    )
    return pauses, single, "" if before.reschedule is None else str(before.reschedule.to)


# --------------------------------------------------------------------------------------------------- what has moved


async def refuse_moved(
    store: AnyStore, plan: str, drafts: Sequence[Drafted], policy: UpdatePolicy | None = None
) -> None:
    """Return if the drafts are what the plan of this hash has shown; else say what has moved since.

    Where nothing is left to change, the plan was stored before: its answer may have been lost.
    """
    read = _HASH.fullmatch(plan.strip())
    if read is None:
        raise Conflict(f"'{shown(plan)}' is the hash of no plan: give one that everytick diff or --dry-run has shown")
    if all(drafted.change.kind == "unchanged" for drafted in drafts):
        return
    seen_now = await preview(store, drafts, policy)
    if seen_now.hash.partition("-")[2] != read[2]:
        shown_at = _EPOCH + int(read[1], 16) * MICROSECOND
        moved = [sentence async for sentence in _moved(store, drafts, shown_at)]
        raise PlanMoved(plan.strip(), seen_now.hash, tuple(moved))


async def _moved(store: AnyStore, drafts: Sequence[Drafted], since: datetime) -> AsyncIterator[str]:
    """Give a sentence for each job of the drafts that was edited, paused or resumed after this moment."""
    known = [drafted.before for drafted in drafts if drafted.before is not None]
    seen = await store.look([job.id for job in known])
    for job in known:
        if job.updated_at is not None and job.updated_at > since:
            [edition] = await store.ask(Editions(job.id, [job.version]))
            by = f" by {edition.by}" if edition.by else ""
            yield f"job '{shown(job.name)}' is at version {job.version}: edited at {job.updated_at.isoformat()}{by}"
        for pause in seen[job.id].pauses if job.id in seen else ():
            if pause.told_at > since:
                word = "paused" if pause.resumed_by is None else "resumed"
                yield f"job '{shown(job.name)}' was {word} at {pause.told_at.isoformat()}"
