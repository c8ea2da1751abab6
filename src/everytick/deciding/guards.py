"""Guards: what an operation needs before it is carried out: nothing, a confirmation, or a second person."""

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum

from everytick.deciding.recovery import due
from everytick.domain.durations import format_duration
from everytick.domain.job import Job
from everytick.domain.policies import Protected
from everytick.domain.proposals import Proposal
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.values import value
from everytick.errors import shown

CONFIRM_ABOVE = 1000
"""How many runs one operation may create without a confirmation, unless the application says otherwise."""


class Consent(StrEnum):
    """Who has to agree to an operation."""

    AUTO = "auto"
    CONFIRM = "confirm"
    TWO_PEOPLE = "two_people"


@value(frozen=True)
class Cost:
    """The runs that an operation creates, and how long they take one after another; None where that is not known.

    With `more` there are more runs than were counted.
    """

    runs: int = 0
    busy: timedelta | None = timedelta(0)
    more: bool = False

    def __str__(self) -> str:
        count = f"{self.runs:,}{' or more' if self.more else ''} run{'' if self.runs == 1 else 's'}"
        if not self.runs:
            return count
        if self.busy is None:
            return f"{count}, of unknown length"
        return f"{count}, about {format_duration(_rounded(self.busy))} one after another"


@value
class ConsentNeeded:
    """Who has to agree, and why."""

    consent: Consent
    reasons: tuple[str, ...] = ()


def judge(jobs: Collection[Job], cost: Cost, confirm_above: int) -> ConsentNeeded:
    """Return who has to agree to an operation on these stored jobs that creates this many runs."""
    reasons = [f"job '{shown(job.name)}' is protected{_by_two(job)}" for job in jobs if job.is_protected]
    consent = Consent.CONFIRM if reasons else Consent.AUTO
    if any(job.settings.protected is Protected.TWO_PEOPLE for job in jobs):
        consent = Consent.TWO_PEOPLE
    if cost.runs > confirm_above:
        consent = max(consent, Consent.CONFIRM, key=list(Consent).index)
        reasons.append(f"it would create {cost}: more than {confirm_above:,}")
    return ConsentNeeded(consent, tuple(reasons))


def created_at_once(before: JobSnapshot | None, after: JobSnapshot | None, now: datetime) -> int:
    """Return how many runs of late instants follow from a change now: those that are due after it and not before."""
    return max(0, _due(after, now) - _due(before, now))


def why_not_approved(proposal: Proposal, by: str, now: datetime) -> str | None:
    """Return why this person cannot approve the proposal now, None if they can."""
    if now >= proposal.expires_at:
        return f"it has expired at {proposal.expires_at.isoformat()}: propose it again"
    if _person_of(by) == _person_of(proposal.by):
        return f"{shown(proposal.by, 60)} has proposed it: another person must approve it"
    return None


def _person_of(by: str) -> str:
    """Return whose name this is: `ann/deploy` is a token of ann, and no name of a user has a slash."""
    return by.partition("/")[0]


def _due(snapshot: JobSnapshot | None, now: datetime) -> int:
    if snapshot is None or any(pause.holds(now) for pause in snapshot.pauses):
        return 0
    instants = due(snapshot, snapshot.editions[-1].job, now)
    return sum(candidate.refusal is None for candidate in instants.candidates)


def _by_two(job: Job) -> str:
    return " by two people" if job.settings.protected is Protected.TWO_PEOPLE else ""


def _rounded(length: timedelta) -> timedelta:
    """Return the length in whole minutes, a short one in whole seconds: it is an estimate."""
    unit = timedelta(minutes=1) if length >= timedelta(minutes=2) else timedelta(seconds=1)
    return max(unit, round(length / unit) * unit)
