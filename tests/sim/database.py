"""What the database behind the simulated store refuses: everything, every write, one batch, or single items."""

from collections.abc import Callable, Sequence

from everytick.domain.decisions import Plan
from everytick.domain.steps import Step
from everytick.errors import StoreBroken, StoreUnavailable
from everytick.stores.base import Claim

READS = frozenset({"now", "bell", "ahead", "due", "look", "get", "list", "history", "whole", "ask", "reports"})
"""Verbs that change nothing: a database that is read only answers them."""

WITHOUT_TABLES = frozenset({"now", "bell"})
"""Verbs that read no table: a database with a broken schema answers them."""


class Refused(Exception):
    """An SQL error that a driver raises about the statement that it was given."""


class Database:
    """Whether it takes a statement now, by the loop's clock."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self.read_only_until = self.broken_until = 0.0
        self.refused_until: dict[str, float] = {}
        """Until when nothing that is about a job can be written, by the job's id."""
        self.takes_little = False
        """Whether a refused job still takes what says nothing: a plan that only puts it off, the loss of an attempt."""
        self.failing_batches = 0
        """How many of the next batches fail, each once; what is written alone does not."""

    def require(self, verb: str) -> None:
        """Return if the database answers this verb now."""
        if self._seconds() < self.broken_until and verb not in WITHOUT_TABLES:
            raise StoreBroken("the simulated store", "a table is missing")
        if self._seconds() < self.read_only_until and verb not in READS:
            raise StoreUnavailable("the simulated store", "cannot write in a read-only transaction")

    def require_writable_plans(self, plans: Sequence[Plan]) -> None:
        """Return if all of these plans can be written together."""
        self._fail_batch(len(plans))
        for plan in plans:
            says_something = plan.creations or plan.releases or plan.endings or plan.spans or plan.answers
            if self.refuses(plan.job_id) and (says_something or not self.takes_little):
                raise Refused(f"a plan of {plan.job_id}")

    def require_writable_steps(self, steps: Sequence[tuple[Claim, Step]]) -> None:
        """Return if all of these steps can be written together."""
        self._fail_batch(len(steps))
        for claim, step in steps:
            tells_of_bodies = any(row.attempt in ("success", "failed") for row in step.rows)
            if self.refuses(claim.job.id) and (tells_of_bodies or not self.takes_little):
                raise Refused(f"step {step.number} of {claim.header.id}")

    def refuses(self, job_id: str) -> bool:
        """Tell whether nothing that is about this job can be written now."""
        return self._seconds() < self.refused_until.get(job_id, 0.0)

    def _fail_batch(self, size: int) -> None:
        if size > 1 and self.failing_batches:
            self.failing_batches -= 1
            raise Refused(f"a batch of {size}, once")

    def mend(self) -> None:
        """Take everything again."""
        self.read_only_until = self.broken_until = 0.0
        now = self._seconds()
        self.refused_until = {job_id: min(until, now) for job_id, until in self.refused_until.items()}
        self.failing_batches = 0
