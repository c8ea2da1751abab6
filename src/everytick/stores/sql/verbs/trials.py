"""What plans read of a version on trial."""

from collections.abc import Iterable

from everytick.domain.rollouts import TrialCounts
from everytick.domain.snapshots import Edition
from everytick.domain.upcoming import trial_of
from everytick.stores.sql.commands import PlainVerb
from everytick.stores.sql.queries import ColdQueries


def trials(q: ColdQueries, jobs: Iterable[tuple[int, tuple[Edition, ...]]]) -> PlainVerb[dict[int, TrialCounts]]:
    """Return what became of the occurrences of each job whose newest version is on trial, by its key."""
    found = {}
    for job_key, editions in jobs:
        trial = trial_of(editions)
        if trial is not None:
            since = trial.job.updated_at
            assert since is not None, "a stored version has its time"
            [row] = yield q.trial_counts(job_key=job_key, version=trial.job.version, left_after=since)
            found[job_key] = TrialCounts(row["well"], row["failed"], row["created"])
    return found
