"""Definers: a job that a start leaves out is removed once no living node defines it (C-42).

Starts and janitors ask the same question and let the same function decide. A start counts every other
node that has not said goodbye as living, and leaves what is in doubt to the janitors.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from everytick.deciding.notices import notice_job_name
from everytick.deciding.retiring import Definer, defined_by, retirable
from everytick.domain.changes import Remove
from everytick.domain.definers import hash_of
from everytick.domain.ids import job_id
from everytick.domain.lookups import UndefinedJobs
from everytick.domain.notices import OWNER, NoticeKind
from everytick.stores.base import REMEMBERED, Nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from everytick.domain.definers import Undefined
    from everytick.domain.snapshots import JobSnapshot
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import NodeRecord

_log = logging.getLogger("everytick.node")

_AT_ONCE = 250
"""Most jobs that are removed in one transaction: a node that plans them at the same time waits for it."""

_NAMES_SHOWN = 5
"""How many jobs a warning names before it counts the others."""


class DefinedNames:
    """The names of the jobs that this process defines, by where they come from: its code, its folder of files."""

    def __init__(self) -> None:
        self._node: str | None = None
        self._hashes: dict[str, str] = {}
        self._past: set[str] = set()

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hashes of all sets of names that the store was told of."""
        return tuple(sorted({*self._hashes.values()}))

    def belong_to(self, node: str) -> None:
        """Note that this process has this node, which is not asked what it defines."""
        self._node = node

    async def tell(
        self, store: AnyStore, source: str, names: Collection[str], left_out: Collection[str]
    ) -> frozenset[str]:
        """Tell the store what this source defines and leaves out; return the names of the jobs that it removed.

        The first time a warning names each other node that defines what was left out here.
        """
        is_first = source not in self._hashes
        await store.define(names, left_out)
        self._past |= {*self._hashes.values()}
        self._hashes[source] = hash_of(names)
        if not left_out:
            return frozenset()
        undefined = await store.ask(UndefinedJobs())
        nodes = [_definer(node, node.beats > 0) for node in await store.ask(Nodes()) if node.id != self._node]
        if is_first:
            _warn(undefined, [node for node in nodes if node.lives], left_out)
        past = self._past.difference(self._hashes.values())
        return await _retire(store, _without(undefined, past, nodes), nodes, by=source)


async def retire_undefined(store: AnyStore, lives: Callable[[NodeRecord], bool], by: str) -> frozenset[str]:
    """Remove every job that was left out and that no node defines which lives; return their names."""
    undefined = await store.ask(UndefinedJobs())
    if not undefined.jobs:
        return frozenset()
    return await _retire(store, undefined, [_definer(node, lives(node)) for node in await store.ask(Nodes())], by)


async def _retire(store: AnyStore, undefined: Undefined, nodes: Sequence[Definer], by: str) -> frozenset[str]:
    removed: set[str] = set()
    chosen = retirable(undefined, nodes)
    for first in range(0, len(chosen), _AT_ONCE):
        part = chosen[first : first + _AT_ONCE]
        gone = await store.retire({job.job_id: job.since for job in part}, after=REMEMBERED, by=by)
        removed |= {job.name for job in part if job.job_id in gone}
    await _remove_senders(store, removed, by)
    for name in sorted(removed):
        _log.info(
            "job '%s' is removed, since no living node defines it; what waits of it is canceled in %d minutes, "
            "unless a start defines it again",
            name,
            REMEMBERED.total_seconds() / 60,
        )
    return frozenset(removed)


async def _remove_senders(store: AnyStore, subjects: Collection[str], by: str) -> None:
    """Remove the jobs that have sent notices of these removed jobs. One that still has a notice to send stays."""
    wanted = {notice_job_name(name, kind) for name in subjects for kind in NoticeKind}
    records = (await store.get([job_id(name) for name in sorted(wanted)])).values() if wanted else ()
    senders = {
        record.job.id: record.job.name
        for record in records
        if record.job.owner == OWNER and record.job.name in wanted and record.removed_at is None
    }
    seen = await store.look(list(senders)) if senders else {}
    idle = [name for id_, name in senders.items() if id_ in seen and _is_idle(seen[id_])]
    if idle:
        await store.apply([Remove(name) for name in sorted(idle)], by)


def _is_idle(snapshot: JobSnapshot) -> bool:
    return not snapshot.busy_count and not snapshot.waiting_count and not snapshot.requests


def _without(undefined: Undefined, past: Collection[str], others: Sequence[Definer]) -> Undefined:
    """Drop the sets that this process stored before: they are no starts under way, unless others define the same."""
    dropped = set(past).difference(hash_ for node in others for hash_ in node.hashes)
    return replace(undefined, sets=tuple(names for names in undefined.sets if names.hash not in dropped))


def _warn(undefined: Undefined, living: Sequence[Definer], left_out: Collection[str]) -> None:
    """Say which other nodes define what this start has left out: they may be another service of the same name."""
    ours = replace(undefined, jobs=tuple(job for job in undefined.jobs if job.name in left_out))
    for node, jobs in defined_by(ours, living).items():
        more = f" and {len(jobs) - _NAMES_SHOWN} more" if len(jobs) > _NAMES_SHOWN else ""
        _log.warning(
            "node '%s' defines %s%s, which this program does not: they go on as long as that node lives, and are "
            "removed when it is gone; two services on one store need names of their own, Everytick(name=...)",
            node,
            ", ".join(f"'{name}'" for name in jobs[:_NAMES_SHOWN]),
            more,
        )


def _definer(node: NodeRecord, lives: bool) -> Definer:
    return Definer(node.id, () if node.facts is None else node.facts.defines, node.beat_at, lives)
