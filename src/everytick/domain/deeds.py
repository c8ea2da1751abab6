"""Deeds: the audit. What a person did is told from the change itself, so that the two cannot disagree.

A store writes a deed in the transaction of its change. None is ever changed or deleted.
"""

from datetime import datetime
from typing import TypeAlias

from everytick.domain import people
from everytick.domain.backfills import BackfillStatus
from everytick.domain.changes import Edit, Put, Remove, Rename, Tell
from everytick.domain.facts import (
    Amend,
    Cancel,
    DropLimit,
    Fact,
    Fill,
    LookAgain,
    Move,
    Pause,
    PlanBackfill,
    PutBrake,
    ReleaseBrake,
    Replay,
    Reschedule,
    Resume,
    Rewind,
    SetLimit,
    Skip,
    SteerBackfill,
    Trigger,
    Undo,
    UndoReschedule,
)
from everytick.domain.people import Doer, SessionKind
from everytick.domain.values import value


@value(frozen=True)
class Deed:
    """Who did what to which, why, when and from where. `number` rises; `job_id` is the job that it is about, if any.

    `did`, `subject` and `detail` are words of a sentence: "paused", "job etl", "until 2026-05-01T06:00:00Z".
    """

    number: int
    at: datetime
    doer: Doer
    did: str
    subject: str
    detail: str = ""
    reason: str = ""
    job_id: str | None = None

    def __str__(self) -> str:
        said = " ".join(part for part in (self.doer.name, self.did, self.subject, self.detail) if part)
        return f"{said}: {self.reason}" if self.reason else said


@value(frozen=True)
class DeedFilter:
    """Which deeds: of one person, about one job, older than the number `before`."""

    by: str | None = None
    job_id: str | None = None
    before: int | None = None
    limit: int = 100


@value(frozen=True)
class DeedPage:
    """Deeds, newest first; `before` asks for the next page, None if this is the last."""

    deeds: tuple[Deed, ...]
    before: int | None = None


Said: TypeAlias = tuple[str, str, str]
"""What was done, in which way, and why."""


def said_of_fact(fact: Fact) -> Said:
    """Return what a deed says of a fact. A payload is not told: viewers read deeds too."""
    reason = getattr(fact, "reason", "")
    match fact:
        case Trigger():
            parts = [_at(fact.at), "with a payload of its own" if fact.payload is not None else ""]
            return "triggered", " ".join(filter(None, parts)), reason
        case Replay():
            return "replayed", f"occurrence {fact.of}", reason
        case Fill():
            return "filled", f"the instant {_time(fact.at)}", reason
        case PlanBackfill():
            order = fact.order
            did = "began a backfill of" if fact.approved else "planned a backfill of"
            return did, f"after {_time(order.after)} through {_time(order.through)}", order.reason
        case SteerBackfill():
            words = {
                BackfillStatus.RUNNING: "let run a backfill of",
                BackfillStatus.PAUSED: "paused a backfill of",
                BackfillStatus.CANCELED: "canceled a backfill of",
            }
            return words.get(fact.to, "steered a backfill of"), fact.id, reason
        case Pause():
            return "paused", "" if fact.until is None else f"until {_time(fact.until)}", reason
        case Resume():
            return "resumed", "" if fact.missed is None else f"with missed instants: {fact.missed}", reason
        case Skip():
            return "skipped a run of", _time(fact.at), reason
        case Move():
            return "moved a run of", f"from {_time(fact.at)} to {_time(fact.to)}", reason
        case Amend():
            return "amended a run of", _time(fact.at), reason
        case Undo():
            return "took back what was said of a run of", _time(fact.at), reason
        case Reschedule():
            return "rescheduled", f"to {_time(fact.to)}", reason
        case UndoReschedule():
            return "took back the rescheduling of", f"to {_time(fact.to)}", reason
        case LookAgain():
            return "had planned again", "", reason
        case Rewind():
            return "rewound", "", reason
        case Cancel():
            return "canceled", "", "" if fact.reason == "canceled" else fact.reason
        case SetLimit():
            rules = [] if fact.most is None else [f"to {fact.most} at once"]
            return "limited", ", ".join(rules if fact.rate is None else [*rules, f"to {fact.rate}"]), reason
        case DropLimit():
            return "took away the limit of", "", reason
        case PutBrake():
            parts = [
                "" if fact.since is None else f"from {_time(fact.since)}",
                "" if fact.until is None else f"until {_time(fact.until)}",
                "" if fact.begins is None else f"from each '{fact.begins}' to '{fact.ends}'",
            ]
            return "put a brake on", " ".join(filter(None, parts)), reason
        case ReleaseBrake():
            return "released the brake of", "at once" if fact.at_once else "", reason


def said_of_edit(change: Edit, version: int) -> Said:
    """Return what a deed says of a change of a definition that left the job at this version."""
    match change:
        case Put():
            return ("created", "", "") if version == 1 else ("edited", f"to version {version}", "")
        case Rename():
            return "renamed", f"to {change.to}", ""
        case Tell():
            return said_of_fact(change.fact)
        case Remove():
            return "removed", "", ""


def said_of_access(change: people.AccessChange, *, is_new: bool) -> tuple[str, str, str] | None:
    """Return what was done, to whom and in which way; None for what is only noted."""
    match change:
        case people.PutUser():
            grants = " ".join(map(str, change.grants))
            return (
                "added" if is_new else "changed",
                f"user {change.name}",
                f"{'as' if is_new else 'to'} {change.role}{' with ' if grants else ''}{grants}",
            )
        case people.AddFirstUser():
            return "added", f"user {change.name}", "as admin, by the link of the first start"
        case people.SetPassword():
            return "set the password of", f"user {change.name}", ""
        case people.RemoveUser():
            return "removed", f"user {change.name}", ""
        case people.AddToken():
            token = change.token
            until = "without an end" if token.expires_at is None else f"until {_time(token.expires_at)}"
            return "added", f"token {token.name}", f"to {token.role.scope} {until}"
        case people.RevokeToken():
            return "revoked", f"token {change.id}", ""
        case people.BeginSession():
            return None if change.session.kind is SessionKind.LINK else ("signed in", "", "")
        case people.EndSession():
            return "signed out", "", ""
        case _:
            return None


def _time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def _at(at: datetime | None) -> str:
    return "" if at is None else f"for {_time(at)}"
