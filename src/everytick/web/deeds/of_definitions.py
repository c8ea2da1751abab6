"""Deeds on the definition of a job: enable, disable, edit its schedule and policies, go back, rename, remove."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from everytick.access.people import Role
from everytick.errors import Conflict, InvalidName, InvalidPolicies, shown
from everytick.web.api.definitions import refuse_foreign_receivers
from everytick.web.deeds.deed import (
    AskedField,
    DeedAnswers,
    Doing,
    Done,
    PageDeed,
    Prospect,
    choice_field,
    lines_field,
    text_field,
    tick_field,
)
from everytick.web.deeds.trails import moments_said, next_step, part_steps, run_steps
from everytick.web.job_words import definer_of
from everytick.web.pictures.trail import TrailStep
from everytick.web.problems import Problem
from everytick.web.words import count, cut, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everytick.answers.values import PartChange
    from everytick.app.versions import JobVersion
    from everytick.domain.job import Job

_VERSIONS = 20
"""How many versions are offered to go back to."""

_UPDATES = (
    ("immediate", "immediate: from now on"),
    ("graceful", "graceful: after the period of the next run"),
)


def _detach_fields(doing: Doing) -> tuple[AskedField, ...]:
    definer = definer_of(doing.job.job, doing.tick)
    if not definer:
        return ()
    note = f"{definer} defines it, and is no longer asked then"
    return (tick_field("detach", "Make it a job of its own", note),)


def _detach_steps(doing: Doing, values: Mapping[str, Any]) -> list[TrailStep]:
    definer = definer_of(doing.job.job, doing.tick)
    if not definer:
        return []
    if values.get("detach"):
        return [TrailStep("file", "It becomes a job of its own", f"a sync of {definer} leaves it alone from then on")]
    return [TrailStep("missed", "It is refused as it is", f"{definer} defines it: change it there, or detach it here")]


# -------------------------------------------------------------------------------------------------- enable and disable


async def _foresee_enable(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    if doing.job.job.enabled:
        return Prospect(refusal=f"{doing.name} is enabled.")
    found = (await doing.tick.preview_update(doing.name, detach=True, enabled=True)).runs.get(doing.name)
    coming = () if found is None else (*found.kept, *found.added)
    steps = [TrailStep("planned", "Its schedule runs again", moments_said(doing.viewer, coming[:20]))]
    return Prospect([*steps, next_step(doing.viewer, coming)], "Instants of the time before now do not run.")


async def _enable(doing: Doing, said: DeedAnswers) -> Done:
    await doing.tick.enable(doing.name, confirmed=said.is_confirmed)
    return Done(f"Enabled {doing.name}.", doing.name, undo=doing.deed("disable"))


async def _foresee_disable(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    if not doing.job.job.enabled:
        return Prospect(refusal=f"{doing.name} is disabled.")
    found = (await doing.tick.preview_update(doing.name, detach=True, enabled=False)).runs.get(doing.name)
    steps = [TrailStep("skipped", "It takes no triggers and no replays", "what runs goes on")]
    steps += [] if found is None else run_steps(doing.viewer, found, gone="falls away")
    sub = "A pause keeps the schedule and says what becomes of its instants; disabling forgets them."
    return Prospect([*steps, next_step(doing.viewer, (), "until you enable it")], sub)


async def _disable(doing: Doing, said: DeedAnswers) -> Done:
    await doing.tick.disable(doing.name, confirmed=said.is_confirmed)
    return Done(f"Disabled {doing.name}.", doing.name, undo=doing.deed("enable"))


# --------------------------------------------------------------------------------------- edit the schedule and policies


async def _edit_fields(doing: Doing) -> Sequence[AskedField]:
    now = str(doing.job.job.schedule)
    schedule = text_field("schedule", "Schedule", "as the lab reads it", is_required=True, default=now)
    policies = lines_field("policies", "Policies", "one per line, as priority=5; a value is JSON or text")
    unset = lines_field("unset", "Policies to take back", "names, one per line: what holds without them holds again")
    update = choice_field("policy", "It holds", _UPDATES, f"left: {doing.job.job.settings.update_policy}", as_list=True)
    return (schedule, policies, unset, update, *_detach_fields(doing))


async def _foresee_edit(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    job = doing.job.job
    expected, was = doing.typed.get("expected") or str(job.version), doing.typed.get("was") or str(job.schedule)
    hidden = {"expected": expected, "was": was, "shown": _asked_edit(values, was)}
    steps = [TrailStep("superseded", f"Now: {job.schedule.describe()}", str(job.schedule))]
    sub = "Look at what it means for the runs to come, then store it."
    schedule, policies = _new_schedule(values, was), _new_policies(doing, values)
    if schedule is None and not policies:
        return Prospect(steps, sub, hidden=hidden)
    from everytick.app.text_reading import schedule_of

    found = await doing.tick.preview_update(doing.name, schedule, policy=values.get("policy"), detach=True, **policies)
    if schedule is not None:
        steps.append(TrailStep("planned", f"Then: {schedule_of(schedule).describe()}", schedule))
    steps += part_steps([change for change in _changes(job, schedule, policies) if change.part != "schedule"])
    runs = found.runs.get(job.name)
    if runs is not None:
        steps += run_steps(doing.viewer, runs)
        steps.append(next_step(doing.viewer, (*runs.kept, *runs.added)))
    return Prospect([*steps, *_detach_steps(doing, values)], sub, hidden=hidden)


def _asked_edit(values: Mapping[str, Any], was: str) -> str:
    """Return what was typed as one text: what is stored must be what was shown."""
    return json.dumps([_new_schedule(values, was), values.get("policies"), values.get("unset")])


def _new_schedule(values: Mapping[str, Any], was: str) -> str | None:
    """Return the schedule that was typed, None where it was left as it stood in the field."""
    schedule = str(values.get("schedule") or "")
    return None if schedule in ("", was) else schedule


def _new_policies(doing: Doing, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policies that were set and taken back. Raise InvalidPolicies as the API does."""
    from everytick.app.text_reading import policy_pair
    from everytick.domain.config import UNSET, Level, policy_arguments

    found: dict[str, Any] = dict.fromkeys(values.get("unset", ()), UNSET)
    for line in values.get("policies", ()):
        pair = policy_pair(line)
        if pair is None:
            raise InvalidPolicies("", f"'{shown(line)}' names no policy and its value", ("priority=5",))
        found[pair[0]] = pair[1]
    try:
        refuse_foreign_receivers(doing.tick, found)
    except Problem as problem:
        raise InvalidPolicies("", problem.detail) from None
    return policy_arguments(Level.JOB, found)


def _changes(job: Job, schedule: str | None, policies: Mapping[str, Any]) -> Sequence[PartChange]:
    """Return what the edit changes, part by part."""
    from everytick.app.text_reading import readable, schedule_of
    from everytick.app.versions import part_changes
    from everytick.sources.drafting import edited

    rule = None if schedule is None else schedule_of(schedule)
    return part_changes(job, edited(job, rule, {key: readable(key, given) for key, given in policies.items()}))


async def _edit(doing: Doing, said: DeedAnswers) -> Done:
    hidden = said.hidden or {}
    was = hidden.get("was", "")
    if hidden.get("shown") != _asked_edit(said.values, was):
        raise Conflict("what follows from this was not shown yet: look at it, then send it again")
    schedule, policies = _new_schedule(said.values, was), _new_policies(doing, said.values)
    version = await doing.tick.update(
        doing.name,
        schedule,
        policy=said.values.get("policy"),
        expected_version=_version(said),
        detach=bool(said.values.get("detach")),
        confirmed=said.is_confirmed,
        **policies,
    )
    before = doing.job.job.version
    if version == before:
        return Done(f"{doing.name} stays at version {version}: nothing has changed.", doing.name, tone="look")
    changed = listed([*([schedule] if schedule else ()), *sorted(policies)], 5)
    return Done(
        f"{doing.name} is at version {version}: {changed}.", doing.name, undo=doing.deed("rollback", version=before)
    )


def _version(said: DeedAnswers) -> int | None:
    """Return the version that the page was made of."""
    text = (said.hidden or {}).get("expected", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


# ------------------------------------------------------------------------------------------------------------ versions


async def _rollback_fields(doing: Doing) -> Sequence[AskedField]:
    newest = doing.job.job.version
    found = await doing.tick.versions(doing.name, _VERSIONS)
    words = [(str(version.version), _version_said(doing, version)) for version in found if version.version != newest]
    wanted = choice_field("version", "Version", words, is_required=True, as_list=True)
    return (wanted, *_detach_fields(doing))


def _version_said(doing: Doing, version: JobVersion) -> str:
    when = "" if version.edited_at is None else f", {doing.viewer.when(version.edited_at)}"
    by = f" by {version.by}" if version.by else ""
    return cut(f"{version.version}{when}{by}: {version.job.schedule}", 120)


async def _foresee_rollback(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    job = doing.job.job
    hidden = {"expected": doing.typed.get("expected") or str(job.version)}
    if job.version == 1:
        return Prospect(refusal=f"{job.name} has one version only.")
    sub = f"It is at version {job.version}. The old one is stored again as a new version, {job.version + 1} or later."
    wanted = values.get("version")
    if not wanted:
        return Prospect([TrailStep("planned", "Choose a version to go back to")], sub, hidden=hidden)
    found = await doing.tick.compare(job.name, job.version, int(wanted))
    steps = [*part_steps(found.changes), *run_steps(doing.viewer, found.runs)]
    steps.append(next_step(doing.viewer, (*found.runs.kept, *found.runs.added)))
    return Prospect([*steps, *_detach_steps(doing, values)], sub, hidden=hidden)


async def _rollback(doing: Doing, said: DeedAnswers) -> Done:
    wanted = int(said.text("version"))
    version = await doing.tick.rollback(
        doing.name,
        wanted,
        expected_version=_version(said),
        detach=bool(said.values.get("detach")),
        confirmed=said.is_confirmed,
    )
    return Done(f"{doing.name} is at version {version}, equal to {wanted}.", doing.name)


async def _rollout_fields(_: Doing) -> Sequence[AskedField]:
    words = (("keep", "keep: the version on trial is in force for all"), ("back", "back: what was in force before is"))
    return (choice_field("end", "End it", words, is_required=True),)


async def _foresee_rollout(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    found = await doing.tick.rollout(doing.name)
    if found is None:
        return Prospect(refusal=f"No version of {doing.name} is on trial.")
    steps = [TrailStep("running", f"Version {found.version} is on trial", str(found))]
    if values.get("end"):
        then, other = (found.version, found.in_force) if values["end"] == "keep" else (found.in_force, found.version)
        diff = await doing.tick.compare(doing.name, other, then)
        steps.append(TrailStep("planned", f"Version {then} is in force for all", "from now on"))
        steps += part_steps(diff.changes)
    return Prospect(steps, "Without you it ends by what its occurrences come to.")


async def _rollout(doing: Doing, said: DeedAnswers) -> Done:
    keep = said.text("end") == "keep"
    version = await doing.tick.end_rollout(doing.name, keep=keep, confirmed=said.is_confirmed)
    return Done(f"The rollout of {doing.name} is over: version {version} is in force.", doing.name)


# ---------------------------------------------------------------------------------------------------- rename and remove


async def _rename_fields(doing: Doing) -> Sequence[AskedField]:
    return (text_field("new", "New name", is_required=True), *_detach_fields(doing))


async def _foresee_rename(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    steps = [
        TrailStep("completed", "Its history, its watermark and its id stay", "links by its old name find it"),
        TrailStep("planned", "Everything that names it must say the new name", "triggers, limits and depends_on"),
    ]
    return Prospect([*steps, *_detach_steps(doing, values)], "The schedule does not move.")


async def _rename(doing: Doing, said: DeedAnswers) -> Done:
    new, old = said.text("new").strip(), doing.name
    await doing.tick.rename(old, new, detach=bool(said.values.get("detach")), confirmed=said.is_confirmed)
    to = doing.link("/jobs/{}", new)
    undo = doing.link("/jobs/{}/do/rename", new, new=old) if not definer_of(doing.job.job, doing.tick) else ""
    return Done(f"{old} is named {new} now.", new, to, undo)


async def _remove_fields(doing: Doing) -> Sequence[AskedField]:
    return (
        text_field("typed_name", f"Type {doing.name} to remove it", is_required=True),
        tick_field("purge", "Delete its history too", "that cannot be undone"),
    )


async def _foresee_remove(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    coming = await doing.tick.next_runs(doing.name, 100)
    steps = []
    if coming:
        more = " or more" if len(coming) == 100 else ""
        steps = [TrailStep("skipped", f"{len(coming)}{more} runs fall away", moments_said(doing.viewer, coming))]
    steps.append(TrailStep("canceled", "What no node has claimed is canceled", "what runs is left to end"))
    steps.append(_history_step(doing, values))
    definer = definer_of(doing.job.job, doing.tick)
    if definer:
        steps.append(TrailStep("file", "It may come back", f"{definer} defines it: its next sync stores it again"))
    return Prospect(steps, "It is out of service at once.")


def _history_step(doing: Doing, values: Mapping[str, Any]) -> TrailStep:
    runs = count(doing.job.run_count, "run")
    if values.get("purge"):
        return TrailStep("failed", "Its history is deleted", f"{runs}, with their output and errors, for good")
    return TrailStep("completed", "Its history is kept", f"{runs} so far")


async def _remove(doing: Doing, said: DeedAnswers) -> Done:
    typed, is_purge = said.text("typed_name"), bool(said.values.get("purge"))
    if typed.strip() != doing.name:
        raise InvalidName("job", typed, f"is not '{doing.name}': nothing is removed")
    await doing.tick.remove(doing.name, purge=is_purge, confirmed=said.is_confirmed)
    kept = "Its history is deleted." if is_purge else "Its history is kept."
    return Done(f"Removed {doing.name}. {kept}", doing.name, doing.link("/jobs"))


_OPERATOR, _ADMIN = Role.OPERATOR, Role.ADMIN

DEEDS = (
    PageDeed("enable", "Enable", "Enable {}?", "Enable {}", _OPERATOR, _foresee_enable, _enable),
    PageDeed("disable", "Disable", "Disable {}?", "Disable {}", _OPERATOR, _foresee_disable, _disable),
    PageDeed(
        "edit",
        "Edit",
        "Change the definition of {}?",
        "Store it",
        _ADMIN,
        _foresee_edit,
        _edit,
        _edit_fields,
        previews=True,
    ),
    PageDeed(
        "rollback",
        "Go back",
        "Go back to an older version of {}?",
        "Go back",
        _ADMIN,
        _foresee_rollback,
        _rollback,
        _rollback_fields,
        previews=True,
    ),
    PageDeed(
        "rollout",
        "End the rollout",
        "End the rollout of {}?",
        "End it",
        _ADMIN,
        _foresee_rollout,
        _rollout,
        _rollout_fields,
        previews=True,
    ),
    PageDeed("rename", "Rename", "Rename {}?", "Rename {}", _ADMIN, _foresee_rename, _rename, _rename_fields),
    PageDeed(
        "remove", "Remove", "Remove {}?", "Remove {}", _ADMIN, _foresee_remove, _remove, _remove_fields, is_danger=True
    ),
)
"""Everything that changes a definition."""
