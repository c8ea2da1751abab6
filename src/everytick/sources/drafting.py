"""Drafts: the changes that bring definitions into a store, the same for those of code and those of files.

`draft` compares one definition with the stored one. `edits_of` gives the edits of many drafts, which
a store applies as a whole. Nothing is written here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from everytick.domain.changes import Change, Put, Remove, Tell
from everytick.domain.config import Level, nothing
from everytick.domain.facts import Pause, Resume
from everytick.domain.job import Job, TaskDefinition, define_job, same_definition
from everytick.domain.values import value
from everytick.errors import InvalidPolicies
from everytick.schedules.combine import Spread, calendars_of, in_zone
from everytick.schedules.timezones import zone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from everytick.domain.changes import Edit
    from everytick.domain.config import Overrides
    from everytick.domain.policies import UpdatePolicy
    from everytick.domain.schedule import Schedule
    from everytick.stores.base import Stored


@value
class Drafted:
    """The draft of one job: the change, the definition to store, if any, and the definition before.

    `fact` holds its schedule or lets it go.
    """

    change: Change
    job: Job | None = None
    before: Job | None = None
    fact: Pause | Resume | None = None

    @property
    def is_guarded(self) -> bool:
        """Whether it changes a protected job."""
        return self.change.kind != "unchanged" and self.before is not None and self.before.is_protected

    def done(self, version: int | None) -> Change:
        """Return the change with the version that was stored, or that stays."""
        found = self.change.version if version is None else version
        return self.change if found == self.change.version else replace(self.change, version=found)


def draft(job: Job, before: Job | None, fact: Pause | Resume | None = None, *, lapsed: Job | None = None) -> Drafted:
    """Return the draft that replaces `before` by this definition.

    A job that an operation has disabled or enabled stays so, unless the definition itself says it. `lapsed` is what a
    window that is over was for: the code or file that still says it asks for nothing.
    """
    told = () if fact is None else ("suspended",) if isinstance(fact, Pause) else ("resumed",)
    if before is None:
        return Drafted(Change(job.name, "added", None, told), job, None, fact)
    job = _as_enabled(job, before)
    if not same_definition(job, before) and not (lapsed is not None and same_definition(job, lapsed)):
        return Drafted(Change(job.name, "changed", None, (*differences(before, job), *told)), job, before, fact)
    kind: Literal["changed", "unchanged"] = "unchanged" if fact is None else "changed"
    return Drafted(Change(job.name, kind, before.version, told), None, before, fact)


def removal(before: Job) -> Drafted:
    """Return the draft of a job that is no longer defined."""
    return Drafted(Change(before.name, "removed", before.version), None, before)


def edits_of(
    drafts: Iterable[Drafted],
    *,
    unreadable: Collection[str] = (),
    removes: bool = True,
    policy: UpdatePolicy | None = None,
) -> list[Edit]:
    """Return the drafts as edits of one transaction, which fails if these jobs were edited in between.

    An unreadable job gives way to any definition. Without `removes`, jobs that are gone are left. `policy` says when
    new versions come into force, instead of what each job says.
    """
    return [edit for draft in drafts for edit in _edits(draft, draft.change.name in unreadable, removes, policy)]


def _edits(drafted: Drafted, is_unreadable: bool, removes: bool, policy: UpdatePolicy | None) -> Iterator[Edit]:
    name, before = drafted.change.name, drafted.before
    expected = None if is_unreadable else 0 if before is None else before.version
    if drafted.job is not None:
        yield Put(drafted.job, expected, policy)
    if drafted.fact is not None:
        yield Tell(name, drafted.fact, expected)
    if removes and drafted.change.kind == "removed":
        yield Remove(name, expected=expected)


def done(drafts: Iterable[Drafted], edits: Sequence[Edit], stored: Sequence[Stored]) -> list[Change]:
    """Return the changes with the versions that were stored."""
    versions = {edit.name: result.version for edit, result in zip(edits, stored, strict=True) if isinstance(edit, Put)}
    return [draft.done(versions.get(draft.change.name)) for draft in drafts]


def differences(before: Job, after: Job) -> tuple[str, ...]:
    """Return the names of the parts that differ: the schedule, tasks, single policies."""
    found = _of_schedule(before.schedule, after.schedule)
    if _template_names(before) != _template_names(after):
        found.append("template")
    levels = (
        (before.application, after.application),
        (_template_policies(before), _template_policies(after)),
        (before.overrides, after.overrides),
    )
    for old, new in levels:
        found += [key for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
    if _tasks(before) != _tasks(after):
        found.append("tasks")
    if (before.owner, before.code, before.reports) != (after.owner, after.code, after.reports):
        found.append("owner")
    if not found and before.templates != after.templates:
        # Only who says it has changed: the job itself now, or its template.
        found.append("template")
    return tuple(dict.fromkeys(found))


def _of_schedule(before: Schedule, after: Schedule) -> list[str]:
    """Return what differs in the schedule: its text, or only the dates of a calendar that it names."""
    if before == after:
        return []
    old, new = ({calendar.name: calendar for calendar in calendars_of(rule)} for rule in (before, after))
    changed = [f"calendar {name}" for name in sorted(new) if name in old and old[name] != new[name]]
    return changed if changed and str(before) == str(after) else ["schedule", *changed]


def _template_names(job: Job) -> tuple[str, ...]:
    return () if job.templates is None else job.templates.names


def _template_policies(job: Job) -> Overrides:
    return nothing(Level.TEMPLATE) if job.templates is None else job.templates.overrides


def _tasks(job: Job) -> list[TaskDefinition]:
    return [TaskDefinition(task.name, task.target, task.after, task.overrides, task.parameters) for task in job.tasks]


def _as_enabled(job: Job, before: Job) -> Job:
    is_silent = job.settings.origin("enabled") is Level.DEFAULT
    if not is_silent or before.owner != job.owner or "enabled" not in before.overrides:
        return job
    return edited(job, None, {"enabled": before.enabled})


def edited(job: Job, schedule: Schedule | None, policies: Mapping[str, object]) -> Job:
    """Return the definition with another schedule or other policies, checked as a new definition."""
    if schedule is None and policies.get("timezone", job.settings.timezone) != job.settings.timezone:
        instead = ("schedule= along with timezone=",)
        raise InvalidPolicies(job.name, "the stored schedule has its zone already and would keep it", instead)
    kept = {key: given for key, given in job.overrides.items if key not in policies}
    templates = job.templates if job.templates is None or schedule is None else job.templates.without("schedule")
    # The store sets the id: after a rename it is not the one that follows from the name.
    return define_job(
        job.name,
        _without_spread(job) if schedule is None else schedule,
        policies={**kept, **policies},
        tasks=_tasks(job),
        application=job.application,
        owner=job.owner,
        in_zone=lambda schedule, name: in_zone(schedule, zone(name)),
        reports=job.reports,
        code=job.code,
        templates=templates,
    )


def _without_spread(job: Job) -> Schedule:
    """Return the schedule without its spread, which the policy adds again."""
    is_spread = job.settings.spread is not None and isinstance(job.schedule, Spread)
    return job.schedule.schedule if is_spread and isinstance(job.schedule, Spread) else job.schedule
