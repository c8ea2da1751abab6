"""Override resolution: the kind of each registration, and the changes that follow from it (S2-058…062).

Pure: records and registrations in, definitions to put out. The same inputs give the same answer.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

from everytick.declarative.documents import document_of, document_on
from everytick.declarative.jobs import job_of, unscheduled
from everytick.declarative.registrations import Registration
from everytick.domain.changes import Put
from everytick.domain.job import Job, same_definition
from everytick.domain.values import value
from everytick.stores.base import JobRecord


class Kind(StrEnum):
    """The kind of a registration, by the stored job of its name."""

    NEW = "New"
    PRESERVED = "Preserved"
    OVERRIDDEN = "Overridden"
    ORPHANED = "Orphaned"


@value
class Resolution:
    """The jobs to store, and the definitions before them, to restore if anything fails.

    `edited` names the tasks whose definition was another one; `created` those that had none.
    """

    kinds: Mapping[str, Kind]
    puts: tuple[Job, ...]
    before: tuple[Job, ...]
    created: tuple[str, ...]
    edited: frozenset[str]

    @property
    def changes(self) -> list[Put]:
        """The changes of one transaction. A new job must not exist; of several edits of a job the last one wins."""
        known = {job.name for job in self.before}
        return [Put(job, None if job.name in known else 0) for job in self.puts]


def resolve(
    scheduler: str,
    registrations: Mapping[str, Registration],
    records: Mapping[str, JobRecord],
    orphaned: Collection[str],
    identifier: str,
) -> Resolution:
    """Sort every task into its kind; `records` and `orphaned` are by task name.

    What is stored and not registered is kept, and takes no further part.
    """
    kinds: dict[str, Kind] = {}
    puts: list[Job] = []
    before: list[Job] = []
    edited: set[str] = set()
    for name, registration in registrations.items():
        record = records.get(name)
        if record is None:
            kinds[name] = Kind.NEW
            puts.append(job_of(scheduler, registration, document_of(registration, identifier)))
            continue
        document = document_on(record.job, name, name.__eq__)
        same = document.says_the_same(registration)
        kinds[name] = Kind.ORPHANED if name in orphaned else Kind.PRESERVED if same else Kind.OVERRIDDEN
        wanted = document if same else document_of(registration, identifier)
        job = job_of(scheduler, registration, wanted)
        if not same_definition(job, record.job):
            puts.append(job)
            before.append(record.job)
            edited.add(name)
    for name, record in records.items():
        if name not in registrations and record.job.enabled:
            puts.append(unscheduled(record.job))
            before.append(record.job)
    created = tuple(name for name, kind in kinds.items() if kind is Kind.NEW)
    return Resolution(kinds, tuple(puts), tuple(before), created, frozenset(edited))
