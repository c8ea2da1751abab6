"""What is known of a node beside that it lives: for people, and to find nodes that disagree."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from everytick.domain.job import Job
from everytick.domain.values import value
from everytick.errors import shown

_MOST_FILES = 100
_MOST_JOBS = 1_000
_MOST_TEXT = 2_000
"""Characters of the name of a file, and of a reason, in the facts of a node."""


@value
class NodeFacts:
    """What a node says of itself.

    `zone_data` is the edition of its zone tables. `heartbeat` is how often it beats.
    `clock_offset` is how far its host's clock was ahead of the store's when it last looked.
    `broken_files` are the files of jobs that it
    cannot read as they are now, each with the reason; `stale_jobs` go on with what such a file
    said before, each with the file. `unknown_targets` are the jobs, by their ids, of which
    something came that it did not know how to run, each with the reason. `met` are the texts of
    needs that it meets: it plans and claims jobs that need one of these. `defines` are the hashes
    of the sets of names of the jobs that its code and its files define. `pings` says that it can tell an outside
    address that the fleet lives.
    """

    version: str
    python: str
    zone_data: str
    host: str
    pid: int
    slots: int
    queues: tuple[str, ...]
    started_at: datetime
    application: str = ""
    clock_offset: timedelta = timedelta(0)
    broken_files: tuple[tuple[str, str], ...] = ()
    stale_jobs: tuple[tuple[str, str], ...] = ()
    unknown_targets: tuple[tuple[str, str], ...] = ()
    heartbeat: timedelta = timedelta(seconds=5)
    met: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    pings: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON can carry it."""
        return {
            "version": self.version,
            "python": self.python,
            "zone_data": self.zone_data,
            "host": self.host,
            "pid": self.pid,
            "slots": self.slots,
            "queues": list(self.queues),
            "started_at": self.started_at.isoformat(),
            "application": self.application,
            "clock_offset": self.clock_offset / timedelta(seconds=1),
            "broken_files": dict(self.broken_files),
            "stale_jobs": dict(self.stale_jobs),
            "unknown_targets": dict(self.unknown_targets),
            "heartbeat": self.heartbeat / timedelta(seconds=1),
            "met": list(self.met),
            "defines": list(self.defines),
            "pings": self.pings,
        }


def facts_from(data: Mapping[str, Any]) -> NodeFacts:
    """Return what `as_data` gave; what another version of everytick left out or added is no obstacle."""
    return NodeFacts(
        version=str(data.get("version", "")),
        python=str(data.get("python", "")),
        zone_data=str(data.get("zone_data", "")),
        host=str(data.get("host", "")),
        pid=int(data.get("pid", 0)),
        slots=int(data.get("slots", 0)),
        queues=tuple(data.get("queues", ())),
        started_at=datetime.fromisoformat(data["started_at"]),
        application=str(data.get("application", "")),
        clock_offset=timedelta(seconds=data.get("clock_offset", 0.0)),
        broken_files=tuple(sorted(data.get("broken_files", {}).items())),
        stale_jobs=tuple(sorted(data.get("stale_jobs", {}).items())),
        unknown_targets=tuple(sorted(data.get("unknown_targets", {}).items())),
        heartbeat=timedelta(seconds=data.get("heartbeat", 5.0)),
        met=tuple(data.get("met", ())),
        defines=tuple(data.get("defines", ())),
        pings=bool(data.get("pings", False)),
    )


def unknown_targets(jobs: Iterable[Job], living: Iterable[NodeFacts]) -> dict[str, str]:
    """Return the names of the jobs that no living node can run, though some meet what they need, with a reason.

    A node that does not meet a job's needs has nothing to say of it: the job was never offered to it. One that met
    them and left all that needs the same to others has said why.
    """
    told = [(facts.met, dict(facts.unknown_targets)) for facts in living]
    named = {id_ for _, reasons in told for id_ in reasons}
    reason_of: dict[str, str] = {}
    for job in jobs:
        if job.id in named:
            reasons = [reasons.get(job.id) for met, reasons in told if job.needs in met or job.id in reasons]
            if all(reasons):
                reason_of[job.name] = str(reasons[0])
    return reason_of


def unmet_needs(jobs: Iterable[Job], living: Sequence[NodeFacts], now: datetime) -> dict[str, str]:
    """Return the names of the jobs whose needs no living node meets, each with what such a node must have.

    A node tells with its next beat that it meets the needs of a new job. So jobs and nodes that are younger than
    two beats are not judged.
    """
    by_needs: dict[str, list[Job]] = {}
    for job in jobs:
        by_needs.setdefault(job.needs, []).append(job)
    return {job.name: why for why, some in unmet_by_need(by_needs, living, now).items() for job in some}


def unmet_by_need(
    by_needs: Mapping[str, Sequence[Job]], living: Sequence[NodeFacts], now: datetime
) -> dict[str, list[Job]]:
    """Return the same jobs by what a node must have that meets their needs. It is given all jobs by their needs.

    A page asks this about ten thousand jobs with a handful of needs: jobs whose needs are met are not looked at.
    """
    settled = now - 2 * max((facts.heartbeat for facts in living), default=timedelta(0))
    if not living or any(facts.started_at > settled for facts in living):
        return {}
    met = {needs for facts in living for needs in facts.met}
    jobs_of: dict[str, list[Job]] = {}
    for needs, jobs in by_needs.items():
        if needs not in met:
            judged = [
                job for job in jobs if job.settings.enabled and (job.updated_at is None or job.updated_at <= settled)
            ]
            if judged:
                jobs_of.setdefault(_missing(needs), []).extend(judged)
    return jobs_of


_HOW = {
    "code": "the application {}",
    "call": 'allow_calls = ["{}"]',
    "queue": "--queue {}",
    "runner": "the runner {0}, or the setting {0}",
}
"""How a node gets what a job may need, by the kind of its label."""


def _missing(needs: str) -> str:
    """Return what a node must have that meets these needs, and how it gets that."""
    labels = [label.partition(":") for label in (needs or "queue:default").split("\n")]
    return "start one that has " + " and ".join(_HOW.get(kind, "{}").format(shown(name)) for kind, _, name in labels)


def bounded_files(broken: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the first hundred files in order, each with its reason, cut where it is very long."""
    named = sorted(broken.items())[:_MOST_FILES]
    return tuple((file[:_MOST_TEXT], reason[:_MOST_TEXT]) for file, reason in named)


def bounded_jobs(jobs: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the first thousand jobs in order, each with its file or reason."""
    return tuple((job, text[:_MOST_TEXT]) for job, text in sorted(jobs.items())[:_MOST_JOBS])
