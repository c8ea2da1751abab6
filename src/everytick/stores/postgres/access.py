"""`store.access` in PostgreSQL: requests hold their key first, and edits are tried at once."""

from collections.abc import Sequence

from everytick.domain.changes import Edit
from everytick.domain.facts import ASKS, Fact, request_of
from everytick.domain.people import Doer
from everytick.domain.snapshots import ASKED_NOW
from everytick.stores.base import Receipt, Stored
from everytick.stores.postgres.asking import Asking
from everytick.stores.postgres.due import DueJobs
from everytick.stores.sql.access import CarryOut, SqlAccess
from everytick.stores.sql.access_queries import AccessQueries
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.verbs.access import sign


class PostgresAccess(SqlAccess):
    """What both SQL stores do, by the ways of this one."""

    def __init__(
        self,
        cold: ColdQueries,
        queries: AccessQueries,
        transact: CarryOut,
        question: CarryOut,
        asking: Asking,
        jobs_due: DueJobs,
    ) -> None:
        super().__init__(cold, queries, transact, question)
        self._asking, self._jobs_due = asking, jobs_due

    async def request(self, subject: str, fact: Fact, doer: Doer) -> Receipt:
        """Write one fact, as `JobStore.request` does, and its deed in the same transaction."""
        if not isinstance(fact, ASKS):
            return await super().request(subject, fact, doer)
        asked = request_of(fact, ASKED_NOW)
        return await self._asking.ask(subject, asked, lambda receipt: sign(self._q, receipt, subject, fact, doer))

    async def apply(self, changes: Sequence[Edit], by: str, doer: Doer) -> list[Stored]:
        """Make every change, as `JobStore.apply` does, and its deed in the same transaction."""
        stored = await super().apply(changes, by, doer)
        if any(result.changed for result in stored):
            self._jobs_due.take_all_in()
        return stored
