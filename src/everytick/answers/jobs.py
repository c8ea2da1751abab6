"""Jobs as data: their definition, state, next runs, promises and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytick.answers.values import JobStatus, JobVersion, NodeReports, PartChange, UpcomingRun
from everytick.answers.wire import data_of, job_of, job_text, moment, value_of
from everytick.deciding.forecast import LikelyBreach
from everytick.domain.policy_checks import as_data
from everytick.domain.promises import Breach, promises_of
from everytick.domain.rollouts import rollout
from everytick.domain.templates import SCHEDULE, TASKS
from everytick.stores.base import JobRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from everytick.domain.job import Job
    from everytick.domain.promises import BreachRecord

UNKNOWN = "no node can run it"
_WHOLE = (SCHEDULE, TASKS)


def word(record: JobRecord, status: JobStatus, unknown: str | None = None) -> str:
    """Return the status of a job in a word or two. `unknown` is why no node can run it."""
    if not record.job.enabled:
        return "disabled"
    if record.pause is not None:
        return "paused"
    if unknown is not None:
        return UNKNOWN
    if record.parked_reason is not None:
        return "parked"
    if status.is_running:
        return "running"
    if status.waits:
        return "waits"
    # A job that sends notices has no instant to come, and is not over.
    return "enabled" if status.is_active or record.job.schedule_type == "notice" else "over"


def job_data(record: JobRecord, status: JobStatus, reports: NodeReports) -> dict[str, Any]:
    """Return a job as data."""
    job = record.job
    unknown = reports.unknown.get(job.name)
    return {
        "name": job.name,
        "id": job.id,
        "status": word(record, status, unknown),
        "unknown_target": unknown,
        "parked_reason": record.parked_reason,
        "definition_error": reports.of_job.get(job.name),
        "schedule": str(job.schedule),
        "schedule_type": job.schedule_type,
        "schedule_words": job.schedule.describe(),
        "next_run": status.next_run,
        "last_run": status.last_run,
        "last_result": status.last_result,
        "run_count": status.run_count,
        "last_error": status.last_error,
        "owner": job.owner,
        "version": job.version,
        "tags": job.settings.tags,
        "is_active": status.is_active,
        "is_paused": status.is_paused,
        "is_enabled": status.is_enabled,
        "is_running": status.is_running,
        "broken_promises": [breach_data(breach) for breach in status.breaches],
        "waits": status.waits or None,
    }


def status_of(data: Mapping[str, Any]) -> JobStatus:
    """Return the state that `job_data` wrote, with its forecasts if these were told."""
    return JobStatus(
        name=data["name"],
        version=data["version"],
        is_active=data["is_active"],
        is_paused=data["is_paused"],
        is_enabled=data["is_enabled"],
        is_running=data["is_running"],
        next_run=moment(data["next_run"]),
        last_run=moment(data["last_run"]),
        run_count=data["run_count"],
        last_error=data["last_error"],
        breaches=tuple(map(breach_of, data["broken_promises"])),
        forecasts=tuple(map(forecast_of, data.get("forecasts", ()))),
        waits=data["waits"] or "",
        last_result=data["last_result"],
    )


def job_details(record: JobRecord, following: Sequence[datetime]) -> dict[str, Any]:
    """Return what is told of one job beside what a list tells."""
    pause = record.pause
    return {
        "description": record.job.settings.description,
        "next_runs": following,
        "decided_through": record.watermark,
        "pause": None
        if pause is None
        else {
            "since": pause.since,
            "until": pause.until,
            "missed": pause.missed,
            "reason": pause.reason,
            "by": pause.by,
        },
        "templates": _templates(record.job),
        "tasks": [{"name": task.name, "after": task.after, "target": task.target} for task in record.job.tasks],
        "policies": {name: {"value": value, "set_by": level} for name, value, level in set_policies(record)},
    }


def _templates(job: Job) -> dict[str, Any] | None:
    """Return the templates of a job, and which of them each part in force comes from."""
    given = job.templates
    if given is None:
        return None
    in_force = {part: name for part, name in given.parts if part in _WHOLE or job.settings.origin(part) == "template"}
    return {"names": given.names, "parts": in_force}


def set_policies(record: JobRecord) -> list[tuple[str, object, str]]:
    """Return the policies that were set, each with its origin. Others have built-in values."""
    effective = record.job.settings.effective()
    return [
        (key, as_data(setting.value), str(setting.origin))
        for key, setting in effective.items()
        if setting.origin != "default"
    ]


# ------------------------------------------------------------------------------------------------ as the store has it


def record_data(record: JobRecord) -> dict[str, Any]:
    """Return a job as the store has it: the whole definition, and every field of its state."""
    content: dict[str, Any] = data_of(record)
    return content


def record_of(data: Mapping[str, Any]) -> JobRecord:
    """Return the job that `record_data` wrote."""
    return value_of(JobRecord, data)


# ------------------------------------------------------------------------------------------------------------ next runs


def upcoming_data(run: UpcomingRun, job: str) -> dict[str, Any]:
    """Return one of the next runs as data."""
    moved = run.instant if run.mark == "moved" else None
    return {
        "at": run.at,
        "job": job,
        "moved_from": moved,
        "asked_for": run.id,
        "mark": run.mark,
        "detail": run.detail,
        "instant": run.instant,
        "queue": run.queue,
    }


def upcoming_of(data: Mapping[str, Any]) -> UpcomingRun:
    """Return the run that `upcoming_data` wrote."""
    at = moment(data["at"])
    assert at is not None, "every run has a time"
    return UpcomingRun(at, data["asked_for"], data["detail"], data["mark"], moment(data["instant"]), data["queue"])


# ------------------------------------------------------------------------------------------------------------- promises


def breach_data(breach: Breach) -> dict[str, Any]:
    """Return a promise that was broken as data."""
    return {
        "promise": breach.kind,
        "broken_for": breach.broken_for,
        "due_at": breach.due_at,
        "found_at": breach.found_at,
        "last_for": breach.last_for,
        "count": breach.count,
        "reason": breach.reason,
        "occurrence_id": breach.occurrence_id,
        "ended_at": breach.ended_at,
        "withdrawn": breach.is_withdrawn,
    }


def breach_of(data: Mapping[str, Any]) -> Breach:
    """Return the breach that `breach_data` wrote."""
    return value_of(Breach, {**data, "kind": data["promise"], "is_withdrawn": data["withdrawn"]})


def forecast_data(forecast: LikelyBreach) -> dict[str, Any]:
    """Return a promise that is likely to be broken as data; `text` is the whole sentence, `why` its reason."""
    return {
        "promise": forecast.kind,
        "instant": forecast.instant,
        "due_at": forecast.due_at,
        "is_certain": forecast.is_certain,
        "text": str(forecast),
    }


def forecast_of(data: Mapping[str, Any]) -> LikelyBreach:
    """Return the forecast that `forecast_data` wrote."""
    why = data["text"].partition("): ")[2]
    return value_of(LikelyBreach, {**data, "kind": data["promise"], "text": why})


def promise_details(record: JobRecord, status: JobStatus, past: Sequence[BreachRecord]) -> dict[str, Any]:
    """Return the promises of a job, its forecasts and its newest breaches as data."""
    broken = {breach.kind for breach in status.breaches}
    return {
        "promises": [
            {"promise": kind, "promised": as_data(promised), "is_broken": kind in broken}
            for kind, promised in promises_of(record.job.settings).items()
        ],
        "forecasts": [forecast_data(forecast) for forecast in status.forecasts],
        "breaches": [breach_data(record.breach) for record in past],
    }


# ------------------------------------------------------------------------------------------------------------- versions


def version_data(version: JobVersion) -> dict[str, Any]:
    """Return one version of a job as data."""
    return {
        "version": version.version,
        "edited_at": version.edited_at,
        "by": version.by,
        "in_force_after": version.in_force_after,
        "is_in_force": version.is_in_force,
        "is_coming": version.is_coming,
        "follows": version.follows,
        "rollout": None if version.rollout is None else str(version.rollout),
        "is_on_trial": version.is_on_trial,
        "schedule": str(version.job.schedule),
        "changes": changes_data(version.changes),
    }


def version_record(version: JobVersion) -> dict[str, Any]:
    """Return the same with the whole definition."""
    return version_data(version) | {"job": job_text(version.job)}


def version_of(data: Mapping[str, Any]) -> JobVersion:
    """Return the version that `version_record` wrote."""
    return JobVersion(
        version=data["version"],
        job=job_of(data["job"]),
        edited_at=moment(data["edited_at"]),
        by=data["by"],
        in_force_after=moment(data["in_force_after"]),
        is_in_force=data["is_in_force"],
        is_coming=data["is_coming"],
        follows=data["follows"],
        changes=changes_of(data["changes"]),
        rollout=None if data["rollout"] is None else rollout(data["rollout"]),
        is_on_trial=data["is_on_trial"],
    )


def changes_data(changes: Sequence[PartChange]) -> list[dict[str, str]]:
    """Return the parts of a definition that differ as data."""
    return [{"part": change.part, "old": change.old, "new": change.new} for change in changes]


def changes_of(data: Sequence[Mapping[str, str]]) -> tuple[PartChange, ...]:
    """Return the parts that `changes_data` wrote."""
    return tuple(PartChange(change["part"], change["old"], change["new"]) for change in data)
