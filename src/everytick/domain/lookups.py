"""What nodes and people ask a store about its jobs: their versions, requests, promises, limits and backfills.

Each is a question of `ask`, as those about occurrences in `domain.questions` are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.domain.question import Question
from everytick.domain.values import value

if TYPE_CHECKING:
    # The names that only the quoted bases use: ruff does not look into them.
    from collections.abc import Collection, Mapping, Sequence  # noqa: F401
    from datetime import datetime

    from everytick.domain.backfills import BackfillRecord  # noqa: F401
    from everytick.domain.decisions import Span  # noqa: F401
    from everytick.domain.definers import Undefined  # noqa: F401
    from everytick.domain.limits import Limits  # noqa: F401
    from everytick.domain.promises import BreachRecord, PromiseRecord  # noqa: F401
    from everytick.domain.snapshots import Edition, Request  # noqa: F401
    from everytick.domain.statuses import OccurrenceStatus  # noqa: F401
    from everytick.domain.upcoming import Coming  # noqa: F401


@value
class ParkedJobs(Question["Mapping[str, str]"]):
    """Why is each parked job in service parked? By name, with its `JobRecord.parked_reason`.

    The answer includes jobs whose definition this process cannot read; `list` leaves those out.
    """


@value
class Editions(Question["Sequence[Edition]"]):
    """What are these versions of a job's definition, and the version in force at `at`? In order.

    A version never changes and is kept as long as its job. A version that this process cannot read is left out.
    """

    job_id: str
    versions: Collection[int] = ()
    at: datetime | None = None


@value
class LaterRequests(Question["Sequence[tuple[str, Request]]"]):
    """Which open requests of these jobs were asked for at a time? Soonest first, each with the id of its job."""

    job_ids: Collection[str]
    limit: int


@value
class ComingRuns(Question["dict[str, Coming]"]):
    """Which runs to come have the last plans of these jobs written down? By the id of the job.

    A job is in the answer if its definition has a horizon and something is to come. No plan looks at them.
    """

    job_ids: Collection[str]


@value
class NewestBackfills(Question["Sequence[BackfillRecord]"]):
    """Which are the newest backfills, of one job or of all, and what became of their occurrences?"""

    job_id: str | None = None
    limit: int = 100


@value
class Spans(Question["Sequence[Span]"]):
    """Which spans of instants did not run and overlap `(after, through]`? In order."""

    job_id: str
    after: datetime
    through: datetime


@value
class SpansOfJobs(Question["dict[str, tuple[Span, ...]]"]):
    """Which spans of instants did not run, of these jobs, and overlap `(after, through]`? In order, by job id."""

    job_ids: Collection[str]
    after: datetime
    through: datetime


@value
class MissedSpans(Question["Sequence[tuple[str, Span]]"]):
    """Which spans of missed instants, of all jobs, overlap `(after, through]`? Newest first, each with its job's id."""

    after: datetime
    through: datetime
    limit: int = 10_000


@value
class OccurrenceStatuses(Question["Mapping[str, OccurrenceStatus]"]):
    """In which status is each of these occurrences? By id. One that retention has deleted is not in the answer."""

    occurrence_ids: Collection[str]


@value
class Promises(Question["Sequence[PromiseRecord]"]):
    """Where do the promises of these jobs, or of all in service, stand? Soonest check first."""

    job_ids: Collection[str] | None = None
    limit: int = 1000


@value
class Breaches(Question["Sequence[BreachRecord]"]):
    """Which promises were broken, of one job or of all? Newest first; with `is_open` only breaches that go on.

    Breaches are kept for `BREACHES_KEPT` after their end.
    """

    job_id: str | None = None
    is_open: bool = False
    limit: int = 100


@value
class LimitsAndBrakes(Question["Limits"]):
    """Which reaches have a limit or brake? By name, and the newest changes."""


@value
class UndefinedJobs(Question["Undefined"]):
    """Which jobs in service are marked as defined by no process? By name.

    If there is one, the answer has every stored set of names too.
    """


@value
class ExistingIds(Question[frozenset[str]]):
    """Which of these ids have an occurrence, whatever its status?

    A page of the history cannot tell: a moved instant keeps its id, but not its time.
    """

    occurrence_ids: Collection[str]


@value
class IdRange(Question[frozenset[str]]):
    """Which ids from `first` through `last` have an occurrence, or an open request that asks for one?

    People type the beginning of both. The answer has at most `limit` ids.
    """

    first: str
    last: str
    limit: int = 100
