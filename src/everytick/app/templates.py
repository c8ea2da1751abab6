"""Templates of an application: parts of jobs by name, which its jobs take over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytick.app.adding_tasks import TaskAdding
from everytick.domain.templates import Combined, Template, by_key, combine, find_templates, template_key
from everytick.errors import DuplicateDefinition, shown
from everytick.schedules.templates import built_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from everytick.app.definition_places import DefinitionPlace
    from everytick.domain.config import Overrides
    from everytick.domain.job import TaskDefinition
    from everytick.domain.schedule import Schedule


class TemplateDefinition(TaskAdding):
    """The handle of one template: adds tasks to it, until a job takes it over."""

    __slots__ = ("_base", "_functions", "_tasks", "_user", "name", "place")

    def __init__(
        self, name: str, description: str, schedule: Schedule | None, overrides: Overrides, place: DefinitionPlace
    ) -> None:
        self.name, self.place = name, place
        self._base = (name, description, schedule, overrides)
        self._tasks: tuple[TaskDefinition, ...] = ()
        self._functions: tuple[tuple[str, Callable[..., Any]], ...] = ()
        self._user = ""

    def __repr__(self) -> str:
        return f"TemplateDefinition(name={self.name!r}, tasks={[task.name for task in self._tasks]})"

    @property
    def template(self) -> Template:
        """The template as of now."""
        return Template(*self._base, self._tasks, str(self.place))

    @property
    def functions(self) -> tuple[tuple[str, Callable[..., Any]], ...]:
        """The function of each task that has one, with the task's name."""
        return self._functions

    def used_by(self, job: str) -> None:
        """Note that a job has taken it over as it is: from now on it does not change."""
        self._user = self._user or job

    def _add(self, task: TaskDefinition, function: Callable[..., Any] | None) -> Self:
        what = f"template '{shown(self.name)}'"
        if self._user:
            reason = f"is used by job '{shown(self._user)}' already: add its tasks before the first job that names it"
            raise DuplicateDefinition(f"{what} {reason}")
        if any(known.name == task.name for known in self._tasks):
            raise DuplicateDefinition(f"{what} has two tasks named '{shown(task.name)}': give one another name=")
        self._tasks = (*self._tasks, task)
        if function is not None:
            self._functions = (*self._functions, (task.name, function))
        return self


class Templates:
    """The templates that the jobs of one application may name: its own, and the built-in ones."""

    def __init__(self) -> None:
        self._own: dict[str, TemplateDefinition] = {}

    def add(self, definition: TemplateDefinition) -> None:
        """Add a template. A second one of the same name is refused, but for one that is typed again in a notebook."""
        key = template_key(definition.name)
        first = self._own.get(key)
        if first is not None and not definition.place.is_written_again(first.place):
            where = f"template '{shown(first.name)}' is defined at {shown(str(first.place), 500)}"
            raise DuplicateDefinition(f"{where}: give one of the two another name")
        self._own[key] = definition

    @property
    def known(self) -> Mapping[str, Template]:
        """Every template by its key. An own template hides a built-in one of the same name."""
        return by_key([*built_in(), *(definition.template for definition in self._own.values())])

    def taken_over(
        self, job: str, names: tuple[str, ...]
    ) -> tuple[Combined, tuple[tuple[str, Callable[..., Any]], ...]]:
        """Return what the templates of a job say together, and the functions of the tasks among it."""
        found = combine(find_templates(job, names, self.known))
        for name in names:
            if own := self._own.get(template_key(name)):
                own.used_by(job)
        giver = self._own.get(template_key(found.origin.source("tasks") or ""))
        return found, () if giver is None else giver.functions
