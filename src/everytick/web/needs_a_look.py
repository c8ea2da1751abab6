"""What needs a look: one line for each cause, not for each job, made from what the board knows."""

from __future__ import annotations

import re
from dataclasses import field
from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.app.proposals import read_proposal
from everytick.domain.decisions import Why
from everytick.domain.names import kept_once
from everytick.domain.nodes import unknown_targets, unmet_by_need
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value
from everytick.web import words
from everytick.web.job_standing import late_by, overruns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from everytick.domain.decisions import Span
    from everytick.domain.job import Job
    from everytick.domain.questions import FailureKind, Glance
    from everytick.stores.base import JobRecord
    from everytick.web.now_board import FleetState, Sight

WRONG, LOOK = "wrong", "look"
_SILENT_SHOWN = timedelta(days=1)
"""How long a silent node is told of: after a day it is known, or gone for good."""

_MOST_OF_A_KIND = 50
"""Most lines of one kind: a person reads no more."""

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
        *_failures(fleet),
        *_breaches(fleet),
        *_overruns(fleet),
        *_late(fleet),
        *_silent_nodes(fleet),
        *_files(fleet),
        *_held(fleet),
        *_parked(fleet),
        *_proposals(fleet),
    ]
    return _in_order(found, fleet)


def with_missed(found: Sequence[LookLine], fleet: FleetState, sight: Sight) -> list[LookLine]:
    """Return the lines and, if the lanes have some, the one of missed instants."""
    return _in_order([*found, *_missed(fleet, sight)], fleet)


def _in_order(found: Sequence[LookLine], fleet: FleetState) -> list[LookLine]:
    return sorted(found, key=lambda each: (each.tone != WRONG, _age(each, fleet.now)))


def _age(each: LookLine, now: datetime) -> timedelta:
    return timedelta(0) if each.at is None else now - each.at


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


def _failures(fleet: FleetState) -> Iterator[LookLine]:
    """One line for each fingerprint of which a job is not good again, and for each older failure of a job."""
    told: set[str] = set()
    for kind in sorted(fleet.failures, key=lambda each: each.last_at, reverse=True):
        bad = [id_ for id_ in kind.job_ids if id_ in fleet.bad and id_ not in told]
        if bad:
            told.update(bad)
            yield _failed_alike(fleet, kind, bad) if len(bad) > 1 else _failed(fleet, kind, bad[0])
    for id_ in sorted(fleet.bad - told, key=fleet.name_of)[:_MOST_OF_A_KIND]:
        if id_ in fleet.records:
            yield _failed_before(fleet.records[id_])


def _failed(fleet: FleetState, kind: FailureKind, job_id: str) -> LookLine:
    record = fleet.records[job_id]
    times = f" {kind.count} times, last" if kind.count > 1 and len(kind.job_ids) == 1 else ""
    by_task = _BY_TASK.match(kind.headline)
    task, headline = (f" in {by_task[1]}", kind.headline[by_task.end() :]) if by_task else ("", kind.headline)
    return LookLine(
        "failed",
        record.job.name,
        "failed",
        "/occurrences/{}",
        what=f"{times}{task}: " if headline else times,
        detail=words.cut(headline),
        at=kind.last_at,
        parts=(kind.last_id,),
        deed="Replay",
        deed_path="/occurrences/{}/do/replay",
        deed_parts=(kind.last_id,),
        jobs=(job_id,),
        tone=WRONG,
    )


def _failed_alike(fleet: FleetState, kind: FailureKind, bad: Sequence[str]) -> LookLine:
    again = len(kind.job_ids) - len(bad)
    names = sorted(fleet.name_of(id_) for id_ in bad)
    return LookLine(
        "failed",
        words.count(len(bad), "job"),
        "failed alike",
        "/history?status=failed",
        what=f", {words.count(kind.count, 'time')}: ",
        detail=words.cut(kind.headline, 120),
        after=f"; {words.listed(names, 2)}"
        + (f"; {again} {'is' if again == 1 else 'are'} good again" if again else ""),
        at=kind.first_at,
        is_since=True,
        jobs=tuple(bad),
        tone=WRONG,
    )


def _failed_before(record: JobRecord) -> LookLine:
    occurrence = record.last_end.id if record.last_end is not None else ""
    place = ("/occurrences/{}", (occurrence,)) if occurrence else ("/jobs/{}", (record.job.name,))
    return LookLine(
        "failed",
        record.job.name,
        "failed",
        place[0],
        what=": " if record.last_error else "",
        detail=words.cut((record.last_error or "").strip().splitlines()[-1] if record.last_error else ""),
        at=record.last_failure_at,
        parts=place[1],
        jobs=(record.job.id,),
        tone=WRONG,
    )


def _breaches(fleet: FleetState) -> Iterator[LookLine]:
    for each in fleet.breaches[:_MOST_OF_A_KIND]:
        breach = each.breach
        more = f", {breach.count} times" if breach.count > 1 else ""
        place = ("/jobs/{}", (each.job,))
        if breach.occurrence_id is not None:
            place = ("/occurrences/{}", (breach.occurrence_id,))
        yield LookLine(
            "promise",
            each.job,
            f"broke its promise {str(breach.kind).replace('_', ' ')}",
            place[0],
            what=f"{more}: {words.cut(breach.reason, 120)}" if breach.reason else more,
            at=breach.due_at,
            is_since=True,
            parts=place[1],
            jobs=(each.job_id,),
            tone=WRONG,
        )


def _overruns(fleet: FleetState) -> Iterator[LookLine]:
    for run in fleet.active:
        usual = fleet.lengths.get(run.job_id)
        record = fleet.records.get(run.job_id)
        if record is None or usual is None or run.started_at is None or not overruns(run, usual, fleet.now):
            continue
        limit = record.job.settings.task_timeout
        yield LookLine(
            "late",
            record.job.name,
            f"running for {words.length(fleet.now - run.started_at)}",
            "/occurrences/{}",
            what=f"; {words.usually(usual.p50, usual.p95)}" + (". No timeout is set" if limit is None else ""),
            at=run.started_at,
            is_since=True,
            parts=(run.id,),
            deed="Cancel",
            deed_path="/occurrences/{}/do/cancel",
            deed_parts=(run.id,),
            jobs=(run.job_id,),
        )


def _late(fleet: FleetState) -> Iterator[LookLine]:
    """One line for each job of which something waits or began late and has not ended."""
    by_job: dict[str, list[Glance]] = {}
    for run in fleet.active:
        if run.job_id in fleet.records and late_by(run, fleet.now):
            by_job.setdefault(run.job_id, []).append(run)
    for job_id, runs in list(by_job.items())[:_MOST_OF_A_KIND]:
        run, name = runs[0], fleet.name_of(job_id)
        late = words.length(late_by(run, fleet.now))
        if run.started_at is not None:
            fact = f"started {late} late"
        elif run.status is OccurrenceStatus.AWAITING_RETRY:
            continue
        else:
            fact = f"{len(runs)} wait, the first for {late}" if len(runs) > 1 else f"waits for {late}"
        yield LookLine(
            "late",
            name,
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


def _missed(fleet: FleetState, sight: Sight) -> Iterator[LookLine]:
    """One line for all instants that were missed in the picture: they have one cause, no node was up."""
    missed: list[tuple[str, Span]] = [
        (id_, span)
        for id_, spans in sight.spans.items()
        for span in spans
        if span.status is OccurrenceStatus.MISSED and _is_open(fleet, id_, span.through)
    ]
    alone = [
        run
        for runs in sight.runs.values()
        for run in runs
        if run.status is OccurrenceStatus.MISSED and _is_open(fleet, run.job_id, run.scheduled_for)
    ]
    if not missed and not alone:
        return
    count = sum(span.count or 10_000 for _, span in missed) + len(alone)
    jobs = tuple(dict.fromkeys([id_ for id_, _ in missed] + [run.job_id for run in alone]))
    last = max([span.through for _, span in missed] + [run.scheduled_for for run in alone])
    yield LookLine(
        "missed",
        fleet.name_of(jobs[0]) if len(jobs) == 1 else words.count(len(jobs), "job"),
        f"missed {words.count(count, 'instant')}",
        "/jobs/{}" if len(jobs) == 1 else "/history?status=missed",
        what=": no node was up in time, and their recovery makes up for none",
        at=last,
        parts=(fleet.name_of(jobs[0]),) if len(jobs) == 1 else (),
        jobs=jobs,
    )


def _is_open(fleet: FleetState, job_id: str, missed_at: datetime) -> bool:
    """Whether the job has had no good run since: like a failure, a miss leaves the list when the next run is good."""
    record = fleet.records.get(job_id)
    good = None if record is None else record.last_success
    return record is not None and (good is None or good.scheduled_for <= missed_at)


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
        yield LookLine(
            "file", file, "cannot be read", "/files", what=f": {words.cut(reason)}", after=after, kind="file"
        )


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
    by_cause: dict[str, list[Job]] = {}
    for id_, why in fleet.parked.items():
        by_cause.setdefault(why, []).append(fleet.records[id_].job)
    for why, jobs in _without_node(fleet).items():
        left = [job for job in jobs if job.id not in fleet.parked] if fleet.parked else jobs
        if left:
            by_cause.setdefault(f"no live node can run it: {why}", []).extend(left)
    for why, jobs in list(by_cause.items())[:_MOST_OF_A_KIND]:
        one = len(jobs) == 1
        who = jobs[0].name if one else words.count(len(jobs), "job")
        yield LookLine(
            "failed_stale",
            kept_once(who),
            f"{'is' if one else 'are'} not run",
            "/jobs/{}" if one else "/jobs",
            what=f": {words.cut(why)}",
            parts=(jobs[0].name,) if one else (),
            jobs=tuple([job.id for job in jobs]),
            tone=WRONG,
        )


def _without_node(fleet: FleetState) -> dict[str, list[Job]]:
    """Return the jobs that no living node can run, by the reason. Only jobs in doubt are looked at."""
    facts = [node.facts for node in fleet.living if node.facts is not None]
    named = {id_ for told_by in facts for id_, _ in told_by.unknown_targets}
    doubted = sorted((fleet.records[id_].job for id_ in named if id_ in fleet.records), key=lambda job: job.name)
    found, unknown = unmet_by_need(fleet.needs, facts, fleet.now), unknown_targets(doubted, facts)
    if unknown:
        found = {why: [job for job in jobs if job.name not in unknown] for why, jobs in found.items()}
    for job in doubted:
        if job.name in unknown:
            found.setdefault(unknown[job.name], []).append(job)
    return found


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
    each = max(3, most // max(len(found), 1))
    places: dict[str, int] = {}
    for place, look in enumerate(found):
        for id_ in look.jobs[:each]:
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
