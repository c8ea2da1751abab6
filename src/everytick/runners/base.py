"""The seam between node and task.

A Body is made once for every task of a definition and run once for every attempt. The node stops an attempt by
canceling the coroutine that runs it. Before that, `halt` in `runners/context.py` sets `context._halt` to the reason and
`context._grace_seconds` to the time that the body has to end. Each body decides how it ends its thread or process.
"""

from typing import Protocol

from everytick.domain.job import Job
from everytick.domain.outcome import Outcome
from everytick.runners.context import Context


class Body(Protocol):
    """Carries out the attempts of one task."""

    wants_previous: bool
    """Whether the node must look up, before an attempt begins, which occurrence ended last."""

    begins_later: bool
    """Whether it may wait for a thread or process first. It then calls `context._begin()`, which starts its timeout."""

    async def run(self, context: Context) -> Outcome:
        """Carry out one attempt and return its outcome. An exception of the task is an outcome too.

        When canceled, it ends its thread or process within `context._grace_seconds` and raises CancelledError. If the
        task had ended on its own, it returns the outcome.
        """
        ...


class Repertoire(Protocol):
    """The bodies of the tasks that a node can run."""

    def bodies(self, job: Job) -> tuple[Body, ...] | None:
        """Return a body for each task of the job, in their order. None if this node cannot run all of them."""
        ...

    def why(self, job: Job) -> str:
        """Return why the job cannot run here."""
        ...

    def forget(self, occurrence_id: str) -> None:
        """Remove the files of an occurrence that has ended on this node."""
        ...

    def close(self) -> None:
        """End the threads and processes. A second call does nothing."""
        ...
