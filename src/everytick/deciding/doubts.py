"""Promises of a job that cannot be kept, or that promise nothing: each with what to write instead."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from operator import itemgetter

from everytick.domain.durations import format_duration
from everytick.domain.job import Job
from everytick.domain.promise_policies import PromiseKind
from everytick.domain.promises import promises_of
from everytick.domain.schedule import is_on_request, waits_for_end
from everytick.schedules.deadlines import deadlines

_LOOKED_AT = 1_000
"""How many instants to come are compared: two and a half years of a daily job."""


def promise_doubts(job: Job, now: datetime) -> Iterator[str]:
    """Give a sentence for each promise that the schedule or another policy contradicts."""
    settings, promised = job.settings, promises_of(job.settings)
    if not promised:
        return
    of_instants = [str(kind) for kind in promised if kind is not PromiseKind.SUCCESS_WITHIN]
    if is_on_request(job.schedule) and of_instants:
        yield f"{' and '.join(of_instants)} promise nothing: the job runs on request and has no instants"
    if settings.start_by is not None and settings.start_by < settings.grace:
        start_by = format_duration(settings.start_by)
        yield (
            f"start_by {start_by} is shorter than grace {format_duration(settings.grace)}: a run between the two "
            f'counts as on time and breaks the promise; grace="{start_by}" makes both say the same'
        )
    if not waits_for_end(job.schedule):
        end = datetime.max.replace(tzinfo=UTC)
        yield from _against_the_schedule(job, job.bound(None).instants(now, end, _LOOKED_AT))


def _against_the_schedule(job: Job, instants: Sequence[datetime]) -> Iterator[str]:
    settings = job.settings
    gaps = [(after - before, before, after) for before, after in pairwise(instants)]
    if not gaps:
        return
    if settings.success_within is not None:
        gap, before, after = max(gaps, key=itemgetter(0))
        if settings.success_within <= gap:
            within, longest = format_duration(settings.success_within), format_duration(gap)
            enough = format_duration(gap + timedelta(hours=1))
            yield (
                f"success_within {within} is not longer than the schedule's longest gap, {longest} from "
                f"{before.isoformat()} to {after.isoformat()}: it is broken although every run ends well; write at "
                f'least success_within="{enough}", more if runs take longer than an hour'
            )
    if settings.finish_by is not None:
        clock = deadlines(settings.finish_by, job)
        late = next(((before, after) for _, before, after in gaps if clock.of(before) > after), None)
        if late is not None:
            shortest = format_duration(min(gap for gap, _, _ in gaps))
            yield (
                f"finish_by {clock} of {late[0].isoformat()} lies beyond the next instant, {late[1].isoformat()}: "
                f"several runs are owed at once; a length of at most {shortest} owes one"
            )
