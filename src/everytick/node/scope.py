"""Scope: which jobs this node plans and claims.

They are those whose needs the node meets (`domain/needs.py`). A job whose code this node lacks is
left undecided for another node: its function is not in this program, or its call cannot be
imported. The node learns that when the job is due or claimed, and asks for it again later.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Protocol, cast

from everytick.domain.job import Job
from everytick.domain.needs import are_late, is_met, needs_in
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.texts import NOT_DISPATCHED
from everytick.node.settings import NodeSettings
from everytick.runners.base import Body, Repertoire
from everytick.stores.base import NodeScope

_log = logging.getLogger("everytick.node")

UNKNOWN_KEPT = 1_000
"""Most jobs that are passed over one by one. Beyond that, every job that needs the same is left to other nodes: each
question to the store carries the list."""

_RUNNABLE_KEPT = 100_000
"""Most versions of jobs that are remembered as runnable: some 20 megabytes."""


class Labels(Protocol):
    """What a node has of what jobs may need."""

    def has(self, label: str) -> bool:
        """Whether the node has what this label of needs names."""
        ...


class OwnLabels:
    """The labels that follow from a node's application and settings."""

    def __init__(self, application: str, settings: NodeSettings) -> None:
        self._application, self._settings = application, settings

    def has(self, label: str) -> bool:
        """Whether the node has what this label of needs names."""
        kind, _, name = label.partition(":")
        match kind:
            case "code":
                return name == self._application
            case "call":
                return any(allowed == name or allowed.startswith(f"{name}.") for allowed in self._settings.allow_calls)
            case "queue":
                return name in self._settings.queues
        return kind == "runner" and (name in self._runners or getattr(self._settings, name, None) is not None)

    @cached_property
    def _runners(self) -> frozenset[str]:
        # Looked up when a job needs one: it reads the metadata of everything that is installed.
        from importlib.metadata import entry_points

        return frozenset(entry_points(group="everytick.runners").names)


class Scope:
    """What one node asks its store about."""

    def __init__(
        self,
        node: str,
        application: str,
        settings: NodeSettings,
        catalogue: Repertoire,
        labels: Labels | None = None,
    ) -> None:
        self._application, self._settings, self._catalogue = application, settings, catalogue
        self._labels = OwnLabels(application, settings) if labels is None else labels
        # Until the store was heard: what this node would meet if a job needed it.
        own = ("", f"code:{application}") if application else ("",)
        expected = tuple(needs_in(labels, queue) for labels in own for queue in settings.queues)
        self.current = NodeScope(node, met=expected)
        """What to ask for now."""
        self.on_time, self.late = self.current, cast("NodeScope | None", None)
        """The scope without the lane `late`, and the scope of that lane alone; None while the lane is empty."""
        self.refused: dict[str, str] = {}
        """Why the last occurrence of a job that came could not be run here, by job id."""
        self._plans_unknown = False
        self._texts: tuple[str, ...] = ()
        self._expected = expected
        self._unknown: dict[str, str] = {}  # the needs of each job that cannot run here
        self._given_up: set[str] = set()  # needs that so many such jobs have that none of them is asked for
        self._told: dict[str, str] = {}  # what the log says of each of these jobs
        self._left: tuple[str, ...] = ()  # jobs that are never asked for
        self._runnable: set[tuple[str, int]] = set()  # ids and versions that can run here

    def of_another_store(self) -> "Scope":
        """Return what the same node asks a store about that has other jobs."""
        return Scope(self.current.node, self._application, self._settings, self._catalogue, self._labels)

    # ------------------------------------------------------------------------------------------------ met needs

    def hear(self, texts: tuple[str, ...]) -> bool:
        """Note all texts of needs that the store has; say whether the node meets more now."""
        before = self.current.met
        self._texts = texts or self._texts
        self._renew()
        return not set(before).issuperset(self.current.met)

    def _renew(self) -> None:
        texts = self._texts or self._expected
        met = tuple(text for text in texts if text not in self._given_up and is_met(text, self._labels.has))
        unknown = frozenset((*self._left, *self._unknown))
        self.current = replace(self.current, met=met, unknown=unknown, seen=len(self._texts))
        late = tuple(text for text in met if are_late(text))
        self.late = replace(self.current, met=late) if late else None
        on_time = tuple(text for text in met if text not in late)
        self.on_time = replace(self.current, met=on_time) if late else self.current

    def can_run(self, job: Job) -> bool:
        """Whether the node meets what the job needs, and knows what its tasks do."""
        return is_met(job.needs, self._labels.has) and self._why_not(job) is None

    # ------------------------------------------------------------------------------------------- unknown jobs

    def runnable(self, batch: Iterable[JobSnapshot]) -> list[JobSnapshot]:
        """Return those of the jobs that this node may plan; the others are left to other nodes from now on."""
        return [snapshot for snapshot in batch if self._may_plan(snapshot)]

    @contextmanager
    def planning_unknown(self) -> Iterator[None]:
        """Let the node also plan jobs that it cannot run, until the block ends."""
        self._plans_unknown = True
        try:
            yield
        finally:
            self._plans_unknown = False

    def _may_plan(self, snapshot: JobSnapshot) -> bool:
        if snapshot.retire_at is not None or self._plans_unknown:
            # One that retires only ends, for which nothing has to be known of it.
            return True
        # A node that can run the version in force plans the job. A version that is to come may need newer code.
        in_force = (edition for edition in reversed(snapshot.editions) if not edition.has_waited)
        job = next(in_force, snapshot.editions[0]).job
        if (job.id, job.version) in self._runnable:
            return True
        why = self._why_not(job)
        if why is not None:
            self.cannot_run(job, why)
            return False
        if len(self._runnable) >= _RUNNABLE_KEPT:
            self._runnable.clear()
        self._runnable.add((job.id, job.version))
        return True

    def _why_not(self, job: Job) -> str | None:
        """Return why this node cannot run the job; None if it knows what its tasks do."""
        try:
            return None if self._catalogue.bodies(job) is not None else self._catalogue.why(job)
        except Exception as error:  # noqa: BLE001, whatever a module raises when it is imported
            return str(error)

    def bodies(self, job: Job) -> tuple[Body, ...] | None:
        """Return what the tasks of a claimed job do. None if they cannot run here: then the job is left to others."""
        try:
            bodies = self._catalogue.bodies(job)
            if bodies is None:
                self.cannot_run(job, self._catalogue.why(job))
        except Exception as error:  # noqa: BLE001, one that cannot be made must not take the others with it
            text = "%s: what job '%s' calls cannot be made ready: its occurrence is left to other nodes"
            _log.exception(text, NOT_DISPATCHED, job.name, extra={"component": "node", "job": job.name})
            self.cannot_run(job, str(error))
            return None
        return bodies

    def cannot_run(self, job: Job, why: str) -> None:
        """Do not ask for this job again for a while: it is left to a node that knows what to call."""
        # Many occurrences of one job may come with one claim, and again with each look: it is told once.
        if self._told.get(job.id) != why:
            _log.warning("job '%s' cannot run here: %s; it is left to other nodes", job.name, why)
        for reasons in (self._told, self.refused):
            if len(reasons) >= UNKNOWN_KEPT:
                reasons.pop(next(iter(reasons)))
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
        self._unknown = {id_: others for id_, others in self._unknown.items() if others != needs}
        shown = ", ".join(needs.split("\n")) or "nothing"
        _log.error(
            "more than %d jobs that need %s cannot run here, '%s' among them: this node leaves all that need it to "
            "other nodes, and looks again in a minute",
            UNKNOWN_KEPT,
            shown,
            job.name,
        )

    def came(self, jobs: Iterable[str]) -> None:
        """Note that occurrences of these jobs came and can be run."""
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
