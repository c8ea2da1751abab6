"""What an edit means for the runs to come, as data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from everytick.answers.jobs import changes_data, changes_of
from everytick.answers.values import Preview, VersionDiff
from everytick.answers.wire import value_of
from everytick.deciding.revise import Revision
from everytick.domain.changes import Change
from everytick.domain.rollouts import rollout

if TYPE_CHECKING:
    from collections.abc import Mapping

SIGNS = {"added": "new", "changed": "changed", "removed": "gone", "unchanged": "unchanged", "kept": "kept"}
"""The words for the changes of jobs."""


def runs_data(runs: Revision | None) -> dict[str, Any]:
    """Return the runs to come as JSON says them."""
    if runs is None:
        return {"runs": None, "runs_through": None}
    moved = [{"from": old, "to": new} for old, new in runs.moved]
    told = {"added": runs.added, "removed": runs.removed, "kept": runs.kept, "moved": moved}
    return {
        "runs": told,
        "runs_through": runs.through,
        "tasks": {"added": runs.tasks_added, "removed": runs.tasks_removed, "changed": runs.tasks_changed},
        "in_force_after": runs.moments,
        "rollout": None if runs.rollout is None else str(runs.rollout),
    }


def runs_of(data: Mapping[str, Any]) -> Revision | None:
    """Return the runs that `runs_data` wrote."""
    if data["runs"] is None:
        return None
    tasks = {f"tasks_{kind}": names for kind, names in data["tasks"].items()}
    told = {**data["runs"], **tasks, "through": data["runs_through"], "moments": data["in_force_after"]}
    tried = None if data["rollout"] is None else rollout(data["rollout"])
    return replace(value_of(Revision, told), rollout=tried)


def change_data(change: Change, runs: Revision | None, plan: str) -> dict[str, Any]:
    """Return the change of one job as data, with the runs to come that it changes."""
    return {
        "job": change.name,
        "change": SIGNS[change.kind],
        "parts": change.parts,
        "version": change.version,
        "plan": plan,
        **runs_data(runs),
    }


def change_of(data: Mapping[str, Any]) -> Change:
    """Return the change that `change_data` wrote."""
    kinds: dict[str, Any] = {sign: kind for kind, sign in SIGNS.items()}
    return Change(data["job"], kinds[data["change"]], data["version"], tuple(data["parts"]))


def preview_data(preview: Preview) -> dict[str, Any]:
    """Return a preview as data."""
    changes = [change_data(change, preview.runs.get(change.name), preview.hash) for change in preview.changes]
    return {"plan": preview.hash, "changes": changes, "refusals": preview.refusals}


def preview_of(data: Mapping[str, Any]) -> Preview:
    """Return the preview that `preview_data` wrote."""
    runs = {change["job"]: runs_of(change) for change in data["changes"]}
    known = {name: job_runs for name, job_runs in runs.items() if job_runs is not None}
    return Preview(tuple(map(change_of, data["changes"])), known, data["plan"], tuple(data["refusals"]))


def diff_data(diff: VersionDiff) -> dict[str, Any]:
    """Return the difference of two versions as data."""
    data = {"job": diff.name, "old": diff.old, "new": diff.new, "changes": changes_data(diff.changes)}
    return data | runs_data(diff.runs)


def diff_of(data: Mapping[str, Any]) -> VersionDiff:
    """Return the difference that `diff_data` wrote."""
    runs = runs_of(data)
    assert runs is not None, "two versions have runs to come, be they none"
    return VersionDiff(data["job"], data["old"], data["new"], changes_of(data["changes"]), runs)
