"""Changes of definitions: `apply` of a store does all that it is given in one transaction, or nothing.

Each names one job. `expected` is the version the job was at when the change was made up, 0 for one that was not in
service; None takes any. It is compared with what is there before the first change.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Literal, TypeAlias

from everytick.domain.facts import Pause, Resume, Trigger
from everytick.domain.job import Job
from everytick.domain.policies import UpdatePolicy
from everytick.domain.rollouts import RolloutVerdict
from everytick.domain.values import value
from everytick.errors import VersionConflict


@value
class Rename:
    """Give the job another name; its id and history stay."""

    name: str
    to: str
    expected: int | None = None


@value
class Put:
    """Create the job or make this its next version; an equal definition changes nothing.

    `policy` says when this version comes into force, instead of the definition's own `update_policy`. A `verdict`
    says that it comes of a rollout.
    """

    job: Job
    expected: int | None = None
    policy: UpdatePolicy | None = None
    verdict: RolloutVerdict | None = None

    @property
    def name(self) -> str:
        """The name of the job."""
        return self.job.name


@value
class Tell:
    """Hold the schedule of the job, let it go, or ask for a run of it: what follows from an edit comes with it."""

    name: str
    fact: Pause | Resume | Trigger
    expected: int | None = None


@value
class Remove:
    """Take the job out of service: nothing new is created, and `retire_after` from now the unclaimed is canceled."""

    name: str
    retire_after: timedelta = timedelta(0)
    expected: int | None = None


Edit: TypeAlias = Rename | Put | Tell | Remove

ORDER: tuple[type[Edit], ...] = (Rename, Put, Tell, Remove)
"""Renames come first, so that what follows names each job as it is called then; no job is put twice."""


def in_order(changes: Sequence[Edit]) -> list[tuple[int, Edit]]:
    """Return the changes in the order in which they are done, each with its place in the answer."""
    return sorted(enumerate(changes), key=lambda place_and_change: ORDER.index(type(place_and_change[1])))


def refuse_unexpected(changes: Sequence[Edit], versions: Mapping[str, int]) -> None:
    """Return if every job is at the version its change expects, by these versions of the jobs in service."""
    for change in changes:
        version = versions.get(change.name, 0)
        if change.expected is not None and change.expected != version:
            raise VersionConflict(change.name, change.expected, version)


@value(frozen=True)
class Change:
    """The change of one job, made or drafted: added, changed, unchanged, removed or kept.

    `parts` names what differs in a changed one. A sync keeps a job that this code or folder no
    longer defines as long as another living node does.
    """

    name: str
    kind: Literal["added", "changed", "unchanged", "removed", "kept"]
    version: int | None
    parts: tuple[str, ...] = ()
