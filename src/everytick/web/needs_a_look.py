"""What needs a look: one line for each cause, not for each job, made from what the board knows."""

from __future__ import annotations

import re
from dataclasses import field
from datetime import timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING

from everytick.app.proposals import read_proposal
from everytick.domain.decisions import Why
from everytick.domain.headlines import fingerprint
from everytick.domain.names import kept_once
from everytick.domain.values import value
from everytick.errors import shown
from everytick.web import words
from everytick.web.job_standing import late_by
from everytick.web.job_troubles import late_runs, not_run, overrunning, unplanned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from everytick.domain.questions import FailureKind, Glance
    from everytick.stores.base import JobRecord
    from everytick.web.now_board import FleetState

WRONG, LOOK = "wrong", "look"
_SILENT_SHOWN = timedelta(days=1)
"""How long a silent node is told of: after a day it is known, or gone for good."""

_MOST_OF_A_KIND = 50
"""Most lines of one kind: a person reads no more."""

_MOST_APART = 4
"""So many late jobs have a line each. More have one cause: too few slots, a slow host, or a slow service."""

_PLACE = re.compile(r"(\d+):(\d+): (.*)", re.DOTALL)
"""How a mistake in a file is said behind the name of the file: the line, the column, and what is wrong."""

_BY_TASK = re.compile(r"task (\S+) failed(?:, aborting due to fail-fast)?: ")
"""How the error of an occurrence begins that a task ended. What the task raised is what people look for."""


@value(frozen=True)
class LookLine:
    """One line: who, what is the matter, since when, where to look, and what can be done at once.

    `fact` stands out, `detail` is an error or a name as it was written. `path` and its `parts` lead to the page that
    says more; `deed` is a verb with the path of its confirm page. `jobs` are the ids of the jobs it is about, `kind`
    what it is counted as.
    """

    mark: str
    subject: str
    fact: str
    path: str
    what: str = ""
    detail: str = ""
    after: str = ""
    at: datetime | None = None
    is_since: bool = False
    parts: tuple[str, ...] = ()
    deed: str = ""
    deed_path: str = ""
    deed_parts: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    kind: str = "job"
    tone: str = field(default=LOOK)


def looks(fleet: FleetState) -> list[LookLine]:
    """Return what needs a look, what is wrong first, then the newest first."""
    found = [
        *_no_node(fleet),
        *_ended(fleet, fleet.bad, _FAILED),
        *_ended(fleet, fleet.with_errors, _WITH_ERRORS),
        *_breaches(fleet),
        *_overruns(fleet),
        *_late(fleet),
        *_unplanned(fleet),
        *_missed(fleet),
        *_silent_nodes(fleet),
        *_files(fleet),
        *_held(fleet),
        *_parked(fleet),
        *_proposals(fleet),
    ]
    return sorted(found, key=lambda look: (look.tone != WRONG, _age(look, fleet.now)))


def _age(look: LookLine, now: datetime) -> timedelta:
    return timedelta(0) if look.at is None else now - look.at


def _no_node(fleet: FleetState) -> Iterator[LookLine]:
    if fleet.living or not fleet.records:
        return
    last = max((node.beat_at for node in fleet.nodes), default=None)
    yield LookLine(
        "lost",
        "no node",
        "nothing runs: no node is live",
        "/nodes",
        after="; start one with everytick run",
        at=last,
        is_since=True,
        kind="fleet",
        tone=WRONG,
    )


@value(frozen=True)
class EndKind:
    """How jobs ended last that need a look: the status as its mark, and the same in words, of one and of several."""

    status: str
    said: str
    said_alike: str
    tone: str


_FAILED = EndKind("failed", "failed", "failed alike", WRONG)
_WITH_ERRORS = EndKind("completed_with_errors", "completed with errors", "completed with errors alike", LOOK)


def _ended(fleet: FleetState, jobs: Collection[str], end: EndKind) -> Iterator[LookLine]:
    """One line for each fingerprint with which these jobs ended last, and for each older end of a job."""
    told: set[str] = set()
    for kind, own in _by_kind(fleet, jobs) if jobs else ():
        told.update(own)
        yield _ended_alike(fleet, kind, own, end) if len(own) > 1 else _ended_so(fleet, kind, own[0], end)
    older = sorted((id_ for id_ in set(jobs) - told if id_ in fleet.records), key=fleet.name_of)
    for id_ in older[:_MOST_OF_A_KIND]:
        yield _ended_before(fleet, fleet.records[id_], end)
    yield from _others(older[_MOST_OF_A_KIND:], end.status, f"{end.said} before", end.status, end.tone)


def _by_kind(fleet: FleetState, jobs: Collection[str]) -> Iterator[tuple[FailureKind, list[str]]]:
    """Give each kind of failure with those of the jobs that ended so last, the newest kind first.

    A kind names all jobs that ever ended so in 24 hours. Of a job with several, its last error says which one it is.
    """
    newest = sorted(fleet.failures, key=lambda kind: kind.last_at, reverse=True)
    kinds: dict[str, list[FailureKind]] = {}
    for kind in newest:
        for id_ in kind.job_ids:
            if id_ in jobs:
                kinds.setdefault(id_, []).append(kind)
    own: dict[str, list[str]] = {}
    for id_, several in kinds.items():
        last = several[0]
        if len(several) > 1 and (error := fleet.records[id_].last_error) is not None:
            named = fingerprint(error)
            last = next((kind for kind in several if kind.fingerprint == named), last)
        own.setdefault(last.fingerprint, []).append(id_)
    for kind in newest:
        if kind.fingerprint in own:
            yield kind, own[kind.fingerprint]


def _ended_so(fleet: FleetState, kind: FailureKind, job_id: str, end: EndKind) -> LookLine:
    record = fleet.records[job_id]
    last_id, last_at, times = kind.last_id, kind.last_at, ""
    if len(kind.job_ids) > 1 and record.last_end is not None:
        # The newest of this kind may be of another job, which is good again.
        last = fleet.failed_runs.get(job_id, record.last_end)
        last_id, last_at = last.id, last.ended_at or kind.last_at
    elif kind.count > 1:
        times = f" {kind.count} times, last"
    by_task = _BY_TASK.match(kind.headline)
    task, headline = (f" in {by_task[1]}", kind.headline[by_task.end() :]) if by_task else ("", kind.headline)
    return LookLine(
        end.status,
        record.job.name,
        end.said,
        "/occurrences/{}",
        what=f"{times}{task}: " if headline else times,
        detail=words.cut(headline),
        at=last_at,
        parts=(last_id,),
        deed="Replay",
        deed_path="/occurrences/{}/do/replay",
        deed_parts=(last_id,),
        jobs=(job_id,),
        tone=end.tone,
    )


def _ended_alike(fleet: FleetState, kind: FailureKind, own: Sequence[str], end: EndKind) -> LookLine:
    again = sum(id_ in fleet.records and id_ not in fleet.troubles for id_ in kind.job_ids)
    names = sorted(fleet.name_of(id_) for id_ in own)
    return LookLine(
        end.status,
        words.count(len(own), "job"),
        end.said_alike,
        f"/history?status={end.status}",
        what=f", {words.count(kind.count, 'time')}: ",
        detail=words.cut(kind.headline, 120),
        after=f"; {words.listed(names, 2)}"
        + (f"; {again} {'is' if again == 1 else 'are'} good again" if again else ""),
        at=kind.first_at,
        is_since=True,
        jobs=tuple(own),
        tone=end.tone,
    )


def _ended_before(fleet: FleetState, record: JobRecord, end: EndKind) -> LookLine:
    last = fleet.failed_runs.get(record.job.id, record.last_end)
    place = ("/jobs/{}", (record.job.name,)) if last is None else ("/occurrences/{}", (last.id,))
    return LookLine(
        end.status,
        record.job.name,
        end.said,
        place[0],
        what=": " if record.last_error else "",
        detail=words.cut((record.last_error or "").strip().splitlines()[-1] if record.last_error else ""),
        at=record.last_failure_at if last is None else last.ended_at,
        parts=place[1],
        jobs=(record.job.id,),
        tone=end.tone,
    )


def _breaches(fleet: FleetState) -> Iterator[LookLine]:
    for record in fleet.breaches[:_MOST_OF_A_KIND]:
        breach = record.breach
        more = f", {breach.count} times" if breach.count > 1 else ""
        place = ("/jobs/{}", (record.job,))
        if breach.occurrence_id is not None:
            place = ("/occurrences/{}", (breach.occurrence_id,))
        yield LookLine(
            "promise",
            record.job,
            f"broke its promise {str(breach.kind).replace('_', ' ')}",
            place[0],
            what=f"{more}: {words.cut(breach.reason, 120)}" if breach.reason else more,
            at=breach.due_at,
            is_since=True,
            parts=place[1],
            jobs=(record.job_id,),
            tone=WRONG,
        )
    told = {record.job_id for record in fleet.breaches[:_MOST_OF_A_KIND]}
    rest = dict.fromkeys(record.job_id for record in fleet.breaches[_MOST_OF_A_KIND:] if record.job_id not in told)
    yield from _others(list(rest), "promise", "behind a promise", "promise_broken", WRONG)


def _overruns(fleet: FleetState) -> Iterator[LookLine]:
    runs = overrunning(fleet)
    if len(runs) > _MOST_APART:
        longest = min(runs.values(), key=_begun)
        yield LookLine(
            "late",
            words.count(len(runs), "job"),
            "run far longer than usual",
            "/jobs?state=overrunning",
            what=f"; the longest is {fleet.name_of(longest.job_id)}, for {words.length(fleet.now - _begun(longest))}",
            at=_begun(longest),
            is_since=True,
            jobs=tuple(runs),
        )
        return
    for job_id, run in runs.items():
        usual, limit = fleet.lengths[job_id], fleet.records[job_id].job.settings.task_timeout
        yield LookLine(
            "late",
            fleet.name_of(job_id),
            f"running for {words.length(fleet.now - _begun(run))}",
            "/occurrences/{}",
            what=f"; {words.usually(usual.p50, usual.p95)}" + (". No timeout is set" if limit is None else ""),
            at=run.started_at,
            is_since=True,
            parts=(run.id,),
            deed="Cancel",
            deed_path="/occurrences/{}/do/cancel",
            deed_parts=(run.id,),
            jobs=(job_id,),
        )


def _begun(run: Glance) -> datetime:
    return run.started_at or run.scheduled_for


def _late(fleet: FleetState) -> Iterator[LookLine]:
    """One line for each job of which something waits or began late and has not ended; of many jobs, one for all."""
    by_job = late_runs(fleet)
    if len(by_job) > _MOST_APART:
        worst = max((run for runs in by_job.values() for run in runs), key=lambda run: late_by(run, fleet.now))
        yield LookLine(
            "late",
            words.count(len(by_job), "job"),
            "are late",
            "/jobs?state=late",
            what=f"; the worst is {fleet.name_of(worst.job_id)}, by {words.length(late_by(worst, fleet.now))}",
            at=worst.scheduled_for,
            is_since=True,
            jobs=tuple(by_job),
        )
        return
    for job_id, runs in by_job.items():
        yield _late_job(fleet, job_id, runs)


def _late_job(fleet: FleetState, job_id: str, runs: Sequence[Glance]) -> LookLine:
    run = runs[0]
    late = words.length(late_by(run, fleet.now))
    if run.started_at is not None:
        fact = f"started {late} late"
    else:
        fact = f"{len(runs)} wait, the first for {late}" if len(runs) > 1 else f"waits for {late}"
    return LookLine(
        "late",
        fleet.name_of(job_id),
        fact,
        "/occurrences/{}",
        what=f": {words.cut(run.why, 120)}" if run.why and run.why != Why.ON_TIME else "",
        at=run.scheduled_for,
        is_since=run.started_at is None,
        parts=(run.id,),
        deed="Why",
        deed_path="/occurrences/{}",
        deed_parts=(run.id,),
        jobs=(job_id,),
    )


def _unplanned(fleet: FleetState) -> Iterator[LookLine]:
    """One line for all jobs that are due and that no node has planned."""
    due = unplanned(fleet)
    if not due:
        return
    first = min(due, key=due.__getitem__)
    one = fleet.name_of(first) if len(due) == 1 else ""
    yield LookLine(
        "late",
        one or words.count(len(due), "job"),
        f"{'is' if one else 'are'} due, and no node has planned {'it' if one else 'them'}",
        "/jobs/{}" if one else "/jobs?state=late",
        at=due[first],
        is_since=True,
        parts=(one,) if one else (),
        jobs=tuple(due),
    )


def _missed(fleet: FleetState) -> Iterator[LookLine]:
    """One line for all instants that were missed lately: they have one cause, no node was up."""
    missed = fleet.missed
    if not missed:
        return
    jobs = sorted(missed, key=lambda id_: missed[id_].last_at, reverse=True)
    more = " or more" if any(instants.is_more for instants in missed.values()) else ""
    one = fleet.name_of(jobs[0]) if len(jobs) == 1 else ""
    yield LookLine(
        "missed",
        one or words.count(len(jobs), "job"),
        f"missed {words.count(sum(instants.count for instants in missed.values()), 'instant')}{more}",
        "/jobs/{}" if one else "/jobs?state=missed",
        what=": no node was up in time, and their recovery makes up for none",
        at=missed[jobs[0]].last_at,
        parts=(one,) if one else (),
        jobs=tuple(jobs),
    )


def _silent_nodes(fleet: FleetState) -> Iterator[LookLine]:
    for node in fleet.nodes:
        is_silent = node.beats > 0 and not node.is_alive(fleet.now, fleet.silence)
        if is_silent and fleet.now - node.beat_at < _SILENT_SHOWN and fleet.living:
            held = f"; it held {words.count(node.holds, 'occurrence')}" if node.holds else ""
            yield LookLine(
                "lost",
                node.id,
                "is silent",
                "/nodes",
                what=f": no beat was seen, others take over its work{held}",
                at=node.beat_at,
                is_since=True,
                kind="node",
                tone=WRONG if node.holds else LOOK,
            )


def _files(fleet: FleetState) -> Iterator[LookLine]:
    told: dict[str, tuple[str, int]] = {}
    for node in fleet.living:
        if node.facts is None:
            continue
        of_files = [file for _, file in node.facts.stale_jobs]
        for file, reason in node.facts.broken_files:
            told.setdefault(file, (reason, of_files.count(file)))
    for file, (reason, jobs) in told.items():
        after = f"; {words.count(jobs, 'job')} {'goes' if jobs == 1 else 'go'} on as before" if jobs else ""
        what = f": {words.cut(_mistake_said(file, reason))}"
        name = kept_once(_short_path(file, fleet.folder))
        yield LookLine("file", name, "cannot be read", "/files", what=what, after=after, kind="file")


def _short_path(file: str, folder: str | None) -> str:
    """Return the path of a file within the folder that is watched here; of a file of another host, its name."""
    path = PurePath(file)
    if folder is not None and path.is_relative_to(folder):
        return str(path.relative_to(folder))
    return path.name if path.is_absolute() else file


def _mistake_said(file: str, reason: str) -> str:
    """Return the first mistake of a file with its place, and how many more there are. The line names the file."""
    first, *more = reason.split("\n")
    place = _PLACE.match(first.removeprefix(f"{shown(file, 1000)}:"))
    said = f"line {place[1]}, column {place[2]}: {place[3]}" if place else first
    return f"{words.count(len(more) + 1, 'mistake')}, {said}" if more else said


def _held(fleet: FleetState) -> Iterator[LookLine]:
    """Brakes that hold, and limits for which something waits."""
    for record in fleet.limits.reaches:
        brake = record.reach.brake(fleet.now)
        waiting = f"; {words.count(record.waiting, 'occurrence')} wait{'s' * (record.waiting == 1)}"
        if brake is not None:
            by = " ".join(filter(None, (brake.by and f"by {brake.by}", brake.reason and f"({brake.reason})")))
            yield LookLine(
                "brake",
                record.reach.name,
                "is braked: nothing of it starts",
                "/do/release?reach={}",
                what=f", {by}" if by else "",
                after=waiting if record.waiting else "",
                at=brake.since,
                is_since=True,
                parts=(record.reach.name,),
                deed="Release",
                deed_path="/do/release?reach={}",
                deed_parts=(record.reach.name,),
                kind="brake",
            )
        elif record.closed and record.waiting:
            yield LookLine(
                "brake",
                record.reach.name,
                f"is at its limit{waiting}",
                "/do/limit?reach={}",
                what=f": {words.cut(record.closed, 120)}",
                parts=(record.reach.name,),
                kind="limit",
            )


def _parked(fleet: FleetState) -> Iterator[LookLine]:
    """Jobs that are not planned, and those that no living node can run."""
    by_cause = list(not_run(fleet).items())
    for why, jobs in by_cause[:_MOST_OF_A_KIND]:
        one = len(jobs) == 1
        who = jobs[0].name if one else words.count(len(jobs), "job")
        is_private = jobs[0].id in fleet.parked
        yield LookLine(
            "failed_stale",
            kept_once(who),
            f"{'is' if one else 'are'} not run",
            "/jobs/{}" if one else "/jobs?state=parked",
            what=": " if is_private else f": {words.cut(why)}",
            detail=words.cut(why) if is_private else "",
            parts=(jobs[0].name,) if one else (),
            jobs=tuple([job.id for job in jobs]),
            tone=WRONG,
        )
    rest = [job.id for _, jobs in by_cause[_MOST_OF_A_KIND:] for job in jobs]
    yield from _others(rest, "failed_stale", "not run", "parked", WRONG)


def _others(jobs: Sequence[str], mark: str, what: str, state: str, tone: str) -> Iterator[LookLine]:
    """One line for the jobs beyond those of which each has a line of its own."""
    if jobs:
        who, fact = words.count(len(jobs), "more job"), f"{'is' if len(jobs) == 1 else 'are'} {what}"
        yield LookLine(mark, who, fact, f"/jobs?state={state}", jobs=tuple(jobs), tone=tone)


def _proposals(fleet: FleetState) -> Iterator[LookLine]:
    for record in fleet.proposals[:_MOST_OF_A_KIND]:
        proposal = read_proposal(record.job)
        if proposal.expires_at > fleet.now:
            yield LookLine(
                "pending",
                words.listed(list(proposal.jobs), 2) or "a change",
                "waits for approval",
                "/jobs/{}" if len(proposal.jobs) == 1 else "/jobs",
                what=f": {words.cut(proposal.what, 120)}, proposed by {proposal.by}",
                at=proposal.at,
                parts=(proposal.jobs[0],) if len(proposal.jobs) == 1 else (),
                kind="change",
            )


# -------------------------------------------------------------------------------------------------- the sentence


def needing(found: Sequence[LookLine]) -> set[str]:
    """Return the ids of the jobs that need a look."""
    return {id_ for look in found for id_ in look.jobs}


def foremost(found: Sequence[LookLine], most: int) -> dict[str, int]:
    """Return the ids of the jobs that stand for each line, with its place in the list; together about `most`.

    Some stand for all: a cause that hits a hundred jobs needs no hundred lanes.
    """
    share = max(3, most // max(len(found), 1))
    places: dict[str, int] = {}
    for place, look in enumerate(found):
        for id_ in look.jobs[:share]:
            places.setdefault(id_, place)
    return places


_NOUNS = (("file", "file"), ("node", "node"), ("brake", "brake"), ("limit", "limit"), ("change", "change"))


def headline(fleet: FleetState, found: Sequence[LookLine]) -> str:
    """Return the sentence above the page."""
    total, jobs = len(fleet.records), len(needing(found))
    if any(look.kind == "fleet" for look in found):
        return "No node is live: nothing runs."
    parts = [words.spelled(jobs, "job")] if jobs else []
    for kind, noun in _NOUNS:
        number = sum(look.kind == kind for look in found)
        if number:
            parts.append(words.spelled(number, noun))
    if not parts:
        return "The one job is well." if total == 1 else f"All {words.number(total)} jobs are well."
    if jobs and total > 1000:
        parts[0] = f"{words.number(jobs)} of {words.count(total, 'job')}"
    is_one = len(parts) == 1 and (parts[0].startswith("one ") or (jobs == 1 and total > 1000))
    return words.sentence(f"{words.listed(parts)} need{'s' if is_one else ''} a look")
