"""Occurrences as data: their attempts, results and explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytick.answers.jobs import breach_data, breach_of, forecast_data, forecast_of
from everytick.answers.wire import data_of, value_of
from everytick.deciding.explanation import Explanation
from everytick.domain.notes import Log, Progress
from everytick.domain.occurrence import Attempt, Occurrence, TaskRun
from everytick.stores.base import Whole

if TYPE_CHECKING:
    from collections.abc import Mapping


def occurrence_data(occurrence: Occurrence, names: Mapping[str, str]) -> dict[str, Any]:
    """Return an occurrence as data."""
    return {
        "id": occurrence.id,
        "job": names[occurrence.job_id],
        "scheduled_for": occurrence.scheduled_for,
        "status": occurrence.status,
        "cause": occurrence.cause,
        "late": occurrence.late,
        "started_at": occurrence.started_at,
        "ended_at": occurrence.ended_at,
        "node": occurrence.node,
        "owner": occurrence.owner,
        "error": occurrence.error,
        "reason": occurrence.reason,
        "replay_of": occurrence.replay_of,
        "version": occurrence.version,
    }


def occurrence_record(occurrence: Occurrence, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the same with every field that the store has."""
    whole: dict[str, Any] = data_of(occurrence)
    return occurrence_data(occurrence, names) | whole


def occurrence_of(data: Mapping[str, Any]) -> Occurrence:
    """Return the occurrence that `occurrence_record` wrote."""
    return value_of(Occurrence, data)


def attempt_data(task: str, attempt: Attempt) -> dict[str, Any]:
    """Return an attempt as data."""
    progress, log = attempt.progress, attempt.log
    return {
        "task": task,
        "attempt": attempt.number,
        "status": attempt.status,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "node": attempt.node,
        "error": attempt.error,
        "progress": None if progress is None else [progress.done, progress.total, progress.text],
        "log": None if log is None else {"node": log.node, "path": log.path},
        "handed_to": attempt.handed_to,
    }


def _attempt_of(data: Mapping[str, Any]) -> Attempt:
    progress, log = data["progress"], data["log"]
    told = value_of(Attempt, {**data, "number": data["attempt"], "progress": None, "log": None})
    from dataclasses import replace

    return replace(
        told,
        progress=None if progress is None else Progress(*progress),
        log=None if log is None else Log(log["node"], log["path"]),
    )


def whole_data(whole: Whole, names: Mapping[str, str], payload: object) -> dict[str, Any]:
    """Return one occurrence with its payload, its results, its tasks and their attempts as data."""
    return occurrence_data(whole.occurrence, names) | {
        "payload": payload,
        "result": whole.result,
        "results": whole.results,
        "attempts": [attempt_data(task, attempt) for task, attempt in whole.attempts],
    }


def whole_record(whole: Whole, names: Mapping[str, str], payload: object) -> dict[str, Any]:
    """Return the same with every field that the store has."""
    attempts = [
        attempt_data(task, attempt) | {"run_id": attempt.run_id, "created_at": attempt.created_at}
        for task, attempt in whole.attempts
    ]
    told = whole_data(whole, names, payload) | occurrence_record(whole.occurrence, names)
    return told | {"attempts": attempts, "runs": data_of(whole.runs)}


def whole_of_data(data: Mapping[str, Any]) -> Whole:
    """Return the occurrence that `whole_record` wrote."""
    attempts = tuple((attempt["task"], _attempt_of(attempt)) for attempt in data["attempts"])
    return Whole(occurrence_of(data), value_of(tuple[TaskRun, ...], data["runs"]), attempts)


# --------------------------------------------------------------------------------------------------------- explanations


def explanation_data(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as data."""
    return {
        "job": explanation.job,
        "at": explanation.at,
        "verdict": explanation.verdict,
        "text": explanation.text,
        "occurrence": None if explanation.occurrence is None else explanation.occurrence.id,
        "behind": explanation.behind,
        "moved_to": explanation.moved_to,
        "previous": explanation.previous,
        "next": explanation.next,
        "broken_promises": [breach.kind for breach in explanation.breaches],
        "forecasts": [str(forecast) for forecast in explanation.forecasts],
    }


def explanation_record(explanation: Explanation) -> dict[str, Any]:
    """Return the same with the rows that show it is so."""
    evidence = {
        "occurrence": data_of(explanation.occurrence),
        "span": data_of(explanation.span),
        "pause": data_of(explanation.pause),
        "breaches": [breach_data(breach) for breach in explanation.breaches],
        "forecasts": [forecast_data(forecast) for forecast in explanation.forecasts],
    }
    return explanation_data(explanation) | {"evidence": evidence}


def explanation_of(data: Mapping[str, Any]) -> Explanation:
    """Return the explanation that `explanation_record` wrote."""
    from dataclasses import replace

    evidence = data["evidence"]
    rows = {key: evidence[key] for key in ("occurrence", "span", "pause")}
    told = value_of(Explanation, {**data, **rows, "forecasts": ()})
    return replace(
        told,
        breaches=tuple(map(breach_of, evidence["breaches"])),
        forecasts=tuple(map(forecast_of, evidence["forecasts"])),
    )
