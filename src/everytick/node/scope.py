"""Scope: which jobs this node plans and claims.

They are those whose needs the node meets (`domain/needs.py`). What it cannot run all the same
stays undecided for a node that can: a function that is not in this program, a call that cannot
be imported. Such a job is found when it is due or claimed, and is left alone for a while.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from everytick.domain.job import Job
from everytick.domain.needs import is_met, needs_in
from everytick.domain.snapshots import JobSnapshot
from everytick.node.settings import NodeSettings
from everytick.stores.base import NodeScope

_log = logging.getLogger("everytick.node")

UNKNOWN_KEPT = 1_000
"""So many jobs are passed over one by one. Beyond that, every job that needs the same is left to other nodes: each
question to the store carries the list."""

_RUNNABLE_KEPT = 100_000


class Scope:
    """What one node asks its store about."""

    def __init__(self, node: str, application: str, settings: NodeSettings, why: Callable[[Job], str | None]) -> None:
        self._application, self._settings, self._why = application, settings, why
        # Until the store was heard: what this node would meet if a job needed it.
        own = ("", f"code:{application}") if application else ("",)
        expected = tuple(needs_in(labels, queue) for labels in own for queue in settings.queues)
        self.current = NodeScope(node, met=expected)
        """What to ask for now."""
        self.has: Callable[[str], bool] = self._has
        """Whether the node has what a label of needs names."""
        self.refused: dict[str, str] = {}
        """Why the last that came of which job could not be run here."""
        self.plans_unknown = False
        """Whether also jobs are planned of which this node does not know what to call."""
        self._texts: tuple[str, ...] = ()
        self._expected = expected
        self._unknown: dict[str, str] = {}  # the needs of each job that cannot run here
        self._given_up: set[str] = set()
        self._told: dict[str, str] = {}
        self._left: tuple[str, ...] = ()
        self._runnable: set[tuple[str, int]] = set()

    # ------------------------------------------------------------------------------------------------ what it meets

    def hear(self, texts: tuple[str, ...]) -> bool:
        """Note all texts of needs that the store has; say whether the node meets more now."""
        before = self.current.met
        self._texts = texts or self._texts
        self._renew()
        return not set(before).issuperset(self.current.met)

    def _renew(self) -> None:
        texts = self._texts or self._expected
        met = tuple(text for text in texts if text not in self._given_up and is_met(text, self.has))
        unknown = frozenset((*self._left, *self._unknown))
        self.current = replace(self.current, met=met, unknown=unknown, seen=len(self._texts))

    def _has(self, label: str) -> bool:
        kind, _, name = label.partition(":")
        match kind:
            case "code":
                return name == self._application
            case "call":
                return any(allowed == name or allowed.startswith(f"{name}.") for allowed in self._settings.allow_calls)
            case "queue":
                return name in self._settings.queues
        return kind == "runner" and name in self._runners

    @cached_property
    def _runners(self) -> frozenset[str]:
        # Looked up when a job needs one: it reads the metadata of everything that is installed.
        from importlib.metadata import entry_points

        return frozenset(entry_points(group="everytick.runners").names)

    # ------------------------------------------------------------------------------------------- what it cannot run

    def runnable(self, batch: Iterable[JobSnapshot]) -> list[JobSnapshot]:
        """Return those of the jobs that this node may plan; the others are left to other nodes from now on."""
        return [snapshot for snapshot in batch if self._may_plan(snapshot)]

    def _may_plan(self, snapshot: JobSnapshot) -> bool:
        if snapshot.retire_at is not None or self.plans_unknown:
            # One that retires only ends, for which nothing has to be known of it.
            return True
        job = snapshot.editions[-1].job
        if (job.id, job.version) in self._runnable:
            return True
        why = self._why(job)
        if why is not None:
            self.cannot_run(job, why)
            return False
        if len(self._runnable) >= _RUNNABLE_KEPT:
            self._runnable.clear()
        self._runnable.add((job.id, job.version))
        return True

    def cannot_run(self, job: Job, why: str) -> None:
        """Do not ask for this job again for a while: it is left to a node that knows what to call."""
        # Many occurrences of one job may come with one claim, and again with each look: it is told once.
        if self._told.get(job.id) != why:
            _log.warning("job '%s' cannot run here and is left to other nodes: %s", job.name, why)
        for kept in (self._told, self.refused):
            if len(kept) >= UNKNOWN_KEPT:
                kept.pop(next(iter(kept)))
        self._told[job.id] = self.refused[job.id] = why
        self._runnable.discard((job.id, job.version))
        if len(self._unknown) >= UNKNOWN_KEPT:
            self._give_up(job)
        else:
            self._unknown[job.id] = job.needs
        self._renew()

    def _give_up(self, job: Job) -> None:
        needs = job.needs
        self._given_up.add(needs)
        self._unknown = {id_: each for id_, each in self._unknown.items() if each != needs}
        shown = ", ".join(needs.split("\n")) or "nothing"
        _log.error(
            "more than %d jobs that need %s cannot run here, '%s' among them: this node leaves all that need it to "
            "other nodes, and looks again in a minute",
            UNKNOWN_KEPT,
            shown,
            job.name,
        )

    def came(self, jobs: Iterable[str]) -> None:
        """Occurrences of these jobs came and can be run."""
        for job_id in jobs:
            self.refused.pop(job_id, None)

    def leave(self, job_ids: Sequence[str]) -> None:
        """Never ask for these jobs: this process will not learn what to call."""
        self._left = tuple(job_ids)
        self.learn_again()

    def learn_again(self) -> None:
        """Forget what could not be run: definitions may have changed."""
        self._unknown.clear()
        self._given_up.clear()
        self._renew()
