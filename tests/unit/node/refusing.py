"""A store in memory that refuses to write some plans or steps, as a database may that cannot write their rows."""

from collections.abc import Callable
from datetime import datetime

from everytick.domain.decisions import Plan
from everytick.domain.steps import Step
from everytick.stores.base import Claim, Commit
from everytick.stores.memory import MemoryStore
from everytick.stores.memory.occurrences import Occurrences
from everytick.stores.memory.planning import PlanCommits, PlanRows
from everytick.stores.memory.rows import JobRow
from everytick.stores.memory.running import Execution


class RefusingStore(MemoryStore):
    """Raises what `look_at_plan` and `look_at_step` raise, before anything of the plan or step is written."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(clock)
        occurrences = Occurrences(self._shared)
        self._execution = _RefusingExecution(self, occurrences)
        rows = _RefusingRows(self, occurrences)
        self._plans = PlanCommits(self._shared, rows, self._execution, self.check_writable)

    def look_at_plan(self, job: str, plan: Plan) -> None:
        """Raise if this plan of the job cannot be written."""

    def look_at_step(self, job: str, step: Step) -> None:
        """Raise if this step of an occurrence of the job cannot be written."""


class _RefusingRows(PlanRows):
    def __init__(self, store: RefusingStore, occurrences: Occurrences) -> None:
        super().__init__(store._shared, occurrences)
        self._store = store

    def write(self, row: JobRow, plan: Plan, token: int, now: datetime) -> None:
        self._store.look_at_plan(row.name, plan)
        super().write(row, plan, token, now)


class _RefusingExecution(Execution):
    def __init__(self, store: RefusingStore, occurrences: Occurrences) -> None:
        super().__init__(store._shared, occurrences, store._limits)
        self._store = store

    def commit_step(self, claim: Claim, step: Step, now: datetime) -> Commit:
        self._store.look_at_step(claim.job.name, step)
        return super().commit_step(claim, step, now)
