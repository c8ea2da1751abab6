"""A repertoire in other hands: everything can be run by it, and its owner closes it."""

from everytick.domain.job import Job
from everytick.runners.base import Body, Repertoire


class Lent:
    """What a node can run, for another one beside it."""

    def __init__(self, own: Repertoire) -> None:
        self._own = own

    def bodies(self, job: Job) -> tuple[Body, ...] | None:
        """Return what the tasks of the job do, in their order; None if this node cannot run all of them."""
        return self._own.bodies(job)

    def why(self, job: Job) -> str:
        """Say why the job cannot run here."""
        return self._own.why(job)

    def forget(self, occurrence_id: str) -> None:
        """Remove what was kept for the occurrence, which is over here."""
        self._own.forget(occurrence_id)

    def close(self) -> None:
        """Return: it is its owner's to close."""
