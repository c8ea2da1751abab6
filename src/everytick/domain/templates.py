"""Templates: named parts of definitions. A job that names some has what they say wherever it says nothing itself.

They are resolved when a job is defined: what is stored is whole, and no store and no node needs a template.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from everytick.domain.config import Level, Overrides, nothing
from everytick.domain.names import checked_name, did_you_mean
from everytick.domain.policy_checks import refused
from everytick.domain.schedule import Schedule
from everytick.domain.values import value
from everytick.errors import InvalidPolicies, shown

if TYPE_CHECKING:
    from everytick.domain.job import TaskDefinition

SCHEDULE, TASKS = "schedule", "tasks"
"""The parts of a definition that are no policies."""

MOST_TEMPLATES = 10
"""The most templates that one job may name."""

_BLANKS = str.maketrans("_-", "  ")


@value(frozen=True)
class Template:
    """A named part of definitions: a schedule, policies, tasks, or several of these.

    The only task may have no name: then it has that of the job. `place` says to people where the template stands.
    """

    name: str
    description: str = ""
    schedule: Schedule | None = None
    overrides: Overrides = nothing(Level.TEMPLATE)
    tasks: tuple["TaskDefinition", ...] = ()
    place: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        """What it says: `schedule`, `tasks` and the names of policies."""
        whole = ((SCHEDULE, self.schedule is not None), (TASKS, bool(self.tasks)))
        return (*(part for part, is_said in whole if is_said), *self.overrides)


@value(frozen=True)
class FromTemplates:
    """What a job has from templates: their names, the policies that they set, and the template of each part."""

    names: tuple[str, ...]
    overrides: Overrides
    parts: tuple[tuple[str, str], ...]

    def source(self, part: str) -> str | None:
        """Return the name of the template that a part comes from, None for a part that the job says itself."""
        return dict(self.parts).get(part)

    def without(self, *parts: str) -> "FromTemplates":
        """Return what is left once the job says these parts itself."""
        items = tuple(item for item in self.overrides.items if item[0] not in parts)
        left = Overrides(Level.TEMPLATE, items) if items else nothing(Level.TEMPLATE)
        return FromTemplates(self.names, left, tuple(item for item in self.parts if item[0] not in parts))


@value
class Combined:
    """Several templates as one, in which a later template overrides an earlier one."""

    schedule: Schedule | None
    tasks: tuple["TaskDefinition", ...]
    origin: FromTemplates


def template_key(name: str) -> str:
    """Return the name as it is compared: `Daily 9 AM` and `daily-9-am` are one template."""
    return " ".join(name.translate(_BLANKS).casefold().split())


def by_key(templates: Iterable[Template]) -> dict[str, Template]:
    """Return the templates by the key of their names; a later one replaces an earlier one."""
    return {template_key(template.name): template for template in templates}


def template_names(given: object) -> tuple[str, ...]:
    """Return the names of templates in the order they were written, which says who overrides whom."""
    items = (given,) if isinstance(given, str) else given
    if not isinstance(items, (list, tuple)) or not items:
        raise refused("template", given, "must be a name, or a list of names of which a later one overrides")
    names = tuple(checked_name("template", item) for item in items)
    if len(names) > MOST_TEMPLATES:
        raise refused("template", names[MOST_TEMPLATES], f"is one too many: a job may name {MOST_TEMPLATES}")
    if len({template_key(name) for name in names}) < len(names):
        raise refused("template", ", ".join(names), "names a template twice")
    return names


def find_templates(job: str, names: Sequence[str], known: Mapping[str, Template]) -> tuple[Template, ...]:
    """Return the templates of these names; `known` has them by key."""
    for name in names:
        if template_key(name) not in known:
            others = [template.name for template in known.values()]
            near = did_you_mean(name, others)
            raise InvalidPolicies(job, f"there is no template '{shown(name)}'{near}", () if near else tuple(others))
    return tuple(known[template_key(name)] for name in names)


def combine(templates: Sequence[Template]) -> Combined:
    """Return what these templates say together."""
    parts = {part: template.name for template in templates for part in template.parts}
    policies = dict(item for template in templates for item in template.overrides.items)
    schedules = [template.schedule for template in templates if template.schedule is not None]
    tasks = [template.tasks for template in templates if template.tasks]
    origin = FromTemplates(
        tuple(template.name for template in templates),
        Overrides(Level.TEMPLATE, tuple(sorted(policies.items()))) if policies else nothing(Level.TEMPLATE),
        tuple(sorted(parts.items())),
    )
    return Combined(schedules[-1] if schedules else None, tasks[-1] if tasks else (), origin)


def named_tasks(job: str, tasks: Iterable["TaskDefinition"]) -> tuple["TaskDefinition", ...]:
    """Return the tasks of a template as those of a job: the one without a name has the job's."""
    from dataclasses import replace

    return tuple(task if task.name else replace(task, name=job) for task in tasks)
