"""Everytick: where an application says which jobs it has, and asks about them.

Defining needs no store and no clock: everything that can be refused is refused here, on
the line that wrote it.
"""

from __future__ import annotations

import os
import sys
import warnings
from functools import partial
from inspect import isfunction
from typing import TYPE_CHECKING, Any, Unpack, cast

from everytick.app.adding_tasks import name_of
from everytick.app.agenda import Agendas
from everytick.app.definition import Definition, JobMaker, job_function, refuse_unfilled_tasks
from everytick.app.definition_places import DefinitionPlace, place_of_caller
from everytick.app.file_requests import FileRequests
from everytick.app.fleet import Fleet
from everytick.app.job_overviews import JobOverviews
from everytick.app.limiting import LimitRequests
from everytick.app.metering import Metering
from everytick.app.overviews import Overviews
from everytick.app.questions import Questions
from everytick.app.schedule_previews import SchedulePreviews
from everytick.app.serving import Serving
from everytick.app.text_reading import common, in_zone, readable, schedule_of
from everytick.domain.config import UNSET, Level, overrides
from everytick.domain.contradictions import surprises
from everytick.domain.job import Job, TaskDefinition, define_job
from everytick.domain.names import checked_name, kept_once
from everytick.domain.needs import ENGINES
from everytick.domain.parameters import refuse_unfit
from everytick.domain.policies import description
from everytick.domain.templates import template_names
from everytick.domain.texts import JOB_ALREADY_REGISTERED
from everytick.errors import (
    DefinitionWarning,
    DuplicateDefinition,
    InvalidPolicies,
    InvalidSchedule,
    InvalidSetting,
    shown,
)
from everytick.runners.places import module_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import timedelta, tzinfo
    from pathlib import Path

    from everytick.app.templates import TemplateDefinition, Templates
    from everytick.domain.config import Overrides
    from everytick.domain.keywords import JobPolicies
    from everytick.domain.policies import Retention
    from everytick.domain.schedule import Schedule
    from everytick.domain.templates import Combined, FromTemplates, Template
    from everytick.stores.addresses import AnyStore

DEFAULT_STORE = "sqlite:///everytick.db"


class Everytick(
    Agendas,
    SchedulePreviews,
    FileRequests,
    Questions,
    Overviews,
    JobOverviews,
    LimitRequests,
    Fleet,
    Metering,
    Serving,
):
    """An application: its jobs, its store, and the node that runs them here.

    `store` is an address; without one it is `everytick.db` beside the script. `timezone` is
    that of jobs and schedules which name none: UTC unless given; `"local"` is the machine's, looked up once and
    kept by name; `timezone_data="package"` takes the zone tables of the tzdata package instead
    of the machine's, in this whole process. `name` says whose jobs these are in the store; it is the module that made
    the application unless given. `formerly` is a name it had before, whose jobs it takes over.
    `jobs` is a folder of job files, which is watched while the node runs; its jobs belong to
    `jobs_owner`. `defaults` are policies for all jobs that code defines. `confirm_above` is how many runs
    one operation may create without a confirmation. `api_targets` are kinds of targets beside calls that jobs may
    have which the HTTP API defines: `"command"`, `"http"`. The others are settings of the node.
    """

    def __init__(
        self,
        store: str | AnyStore | None = None,
        *,
        timezone: str | tzinfo = "UTC",
        name: str | None = None,
        formerly: str | None = None,
        jobs: str | Path | None = None,
        jobs_owner: str = "file",
        slots: int | None = None,
        late_share: float = 0.25,
        threads: int = 32,
        processes: int = 32,
        grace_period: str | timedelta = "30s",
        reaper_interval: str | timedelta = "5s",
        heartbeat: str | timedelta = "5s",
        node_timeout: str | timedelta = "20s",
        poll: str | timedelta = "5s",
        plan_limit: int = 100,
        queues: Iterable[str] = ("default",),
        log_folder: str | Path | None = None,
        timezone_data: str = "system",
        retention: Retention | Mapping[str, Any] | None = None,
        allow_calls: Iterable[str] = (),
        allow_addresses: Iterable[str] = (),
        hook_timeout: str | timedelta = "5m",
        smtp: str | None = None,
        smtp_sender: str | None = None,
        metrics_job_limit: int = 200,
        dead_man_url: str | None = None,
        next_store: str | None = None,
        celery: str | None = None,
        celery_results: str | None = None,
        dask: str | None = None,
        ray: str | None = None,
        engine_slots: int = 1000,
        defaults: Mapping[str, object] | None = None,
        max_concurrent_jobs: int | None = None,
        confirm_above: int = 1000,
        api_targets: Iterable[str] = (),
    ) -> None:
        module = sys._getframe(1).f_globals
        # First of all, since the zones of all that follows are looked up in these tables.
        if timezone_data == "package":
            from everytick.schedules.timezones import use_packaged_zones

            use_packaged_zones()
        self.name = checked_name("application", module_name(module) if name is None else name)
        self.formerly = None if formerly is None else checked_name("application", formerly)
        policies = common(timezone, _with_retention(defaults or {}, retention))
        self._defaults = overrides(Level.APPLICATION, policies, what="application defaults")
        self._definitions: dict[str, Definition] = {}
        self._templates: Templates | None = None
        self.jobs_folder = None if jobs is None else _folder(jobs)
        self.jobs_owner = checked_name("owner", jobs_owner)
        self.confirm_above = _at_least_none(confirm_above)
        self.api_targets = _api_targets(api_targets)
        from everytick.node.settings import node_settings

        self.settings = node_settings(
            slots=_slots(slots, max_concurrent_jobs),
            late_share=late_share,
            threads=threads,
            processes=processes,
            grace_period=grace_period,
            reaper_interval=reaper_interval,
            heartbeat=heartbeat,
            node_timeout=node_timeout,
            poll=poll,
            plan_limit=plan_limit,
            queues=queues,
            log_folder=log_folder,
            allow_calls=allow_calls,
            allow_addresses=allow_addresses,
            hook_timeout=hook_timeout,
            timezone_data=timezone_data,
            smtp=smtp,
            smtp_sender=smtp_sender,
            metrics_job_limit=metrics_job_limit,
            dead_man_url=dead_man_url,
            next_store=next_store,
            celery=celery,
            celery_results=celery_results,
            dask=dask,
            ray=ray,
            engine_slots=engine_slots,
        )
        self._keeps_texts = not _is_in_memory(store)
        make_store, is_ours = _store_maker(store, module)
        super().__init__(partial(self._store_or_next, make_store) if is_ours else make_store, is_ours=is_ours)
        self._listeners.meter.limit = metrics_job_limit

    def _store_or_next(self, make_store: Callable[[], AnyStore]) -> AnyStore:
        """Return the store, which becomes the one in `next_store` when it is moved there."""
        address = self.settings.next_store
        if address is None:
            return make_store()
        from everytick.stores.addresses import store_of
        from everytick.stores.following import following

        return following(make_store, lambda: store_of(address))

    def __repr__(self) -> str:
        return f"Everytick(name={self.name!r}, {len(self._definitions)} jobs)"

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """Every job that this application defines, in the order of definition. `jobs()` asks for those in the store."""
        return tuple(self._definitions.values())

    def template(
        self, name: str, schedule: Schedule | str | None = None, **policies: Unpack[JobPolicies]
    ) -> TemplateDefinition:
        """Define a template and return its handle, to which tasks are added. `description` is the template's own.

        A job that names it has its schedule, policies and tasks, unless it says these itself.
        """
        from everytick.app.templates import TemplateDefinition

        called = checked_name("template", name)
        looked_up = {key: readable(key, written) for key, written in policies.items()}
        said = looked_up.pop("description", UNSET)
        rule = None if schedule is None else schedule_of(schedule)
        read = overrides(Level.TEMPLATE, looked_up, what=f"template '{shown(called)}'")
        definition = TemplateDefinition(
            called, "" if said is UNSET else description(said), rule, read, place_of_caller()
        )
        self._known_templates().add(definition)
        return definition

    @property
    def templates(self) -> tuple[Template, ...]:
        """Every template that the jobs of this application may name: the built-in ones and its own."""
        return tuple(self._known_templates().known.values())

    def _known_templates(self) -> Templates:
        # Loaded with the first use: most applications have none.
        from everytick.app.templates import Templates

        if self._templates is None:
            self._templates = Templates()
        return self._templates

    def define(
        self,
        name: str,
        schedule: Schedule | str | None = None,
        *,
        template: str | Sequence[str] | None = None,
        owner: str | None = None,
        **policies: Unpack[JobPolicies],
    ) -> Definition:
        """Define a job and return its handle, to which tasks and hooks are added.

        With `template`, one name or several, the job has what these templates say wherever it says nothing itself.
        """
        return self._add(name, schedule, owner, policies, template)

    def job(
        self,
        schedule: Schedule | str | None = None,
        *,
        name: str | None = None,
        template: str | Sequence[str] | None = None,
        owner: str | None = None,
        **policies: Unpack[JobPolicies],
    ) -> JobMaker:
        """Make the decorated function a job of one task, named as the function unless `name` says otherwise.

        The function stays what it is: calling it runs it here and now, with no store. To ask
        instead of to define, give a job's name and await: `await tick.job("etl")` is that job
        as the store holds it.
        """
        if (schedule is None and not template) or isfunction(schedule):
            raise _unscheduled(policies)
        # Read now, unless it may be a name.
        read = schedule if isinstance(schedule, str) or (schedule is None and template) else schedule_of(schedule)

        def define(function: Callable[..., Any]) -> Any:
            called = name_of("job", function) if name is None else name
            definition = self._add(called, read, owner, policies, template, function)
            if definition.place.is_typed:
                self._run_typed(definition.job.id)
            return job_function(function, definition, self._trigger_called)

        return JobMaker(define, lambda: self._job_record(cast("str", schedule)))

    def _add(
        self,
        name: str,
        schedule: Schedule | str | None,
        owner: str | None,
        policies: Mapping[str, object],
        template: str | Sequence[str] | None,
        function: Callable[..., Any] | None = None,
    ) -> Definition:
        inherited: Combined | None = None
        functions: tuple[tuple[str, Callable[..., Any]], ...] = ()
        if template is not None:
            inherited, functions = self._known_templates().taken_over(name, template_names(template))
        is_own = schedule is not None
        rule = schedule_of(_schedule_of_templates(name, inherited) if inherited and not is_own else schedule)
        # Read once: the job is built again with every task, and an iterator in a policy is used up by then.
        looked_up = {key: readable(key, written) for key, written in policies.items()}
        read = overrides(Level.JOB, looked_up, checked_name("job", name))
        job_owner = f"code:{self.name}" if owner is None else owner
        blueprint = _Blueprint(name, rule, read, self._defaults, job_owner, self.name)
        if inherited is not None:
            blueprint.inherit(inherited, is_own)
        definition = Definition(blueprint, place_of_caller(), functions)
        job = definition.job
        self._refuse_second(job, definition.place)
        if function is not None:
            definition.task(name=job.name)(function)
            job = definition.job
        elif functions:
            refuse_unfilled_tasks(job, functions)
        if self._keeps_texts:
            from everytick.stores.definitions import refuse_unwritable

            refuse_unwritable(job)
        self._definitions[job.id] = definition
        self._say_late(definition)
        for sentence in surprises(job.settings):
            # The frames between here and the caller's line: this one, `define` or `job`, and the decorator.
            depth = 3 if function is None else 4
            warnings.warn(f"job '{shown(job.name)}': {sentence}", DefinitionWarning, stacklevel=depth)
        return definition

    def _say_late(self, definition: Definition) -> None:
        """Say what to do if the node runs already and does not know the job. In a notebook it is stored at once."""
        is_own = definition.job.owner == f"code:{self.name}"
        if self._node is not None and is_own and not definition.place.is_typed:
            import logging

            text = "job '%s' is defined after the start: the node does not run it before await tick.sync() stores it"
            logging.getLogger("everytick.app").warning(text, shown(definition.job.name))

    def _refuse_second(self, job: Job, place: DefinitionPlace) -> None:
        """Return if no other definition has the name, or if this one is the same, written again in a notebook."""
        first = self._definitions.get(job.id)
        if first is not None and first.job.owner == job.owner != f"code:{self.name}":
            # A job that is made at run time is defined again to change it.
            return
        if first is not None and not place.is_written_again(first.place):
            said = JOB_ALREADY_REGISTERED.format(id=job.id)
            where = f"'{shown(job.name)}' is defined at {shown(str(first.place), 500)}"
            raise DuplicateDefinition(f"{said}: {where}; give one of the two another name with name=")


class _Blueprint:
    """Builds a job from its name, schedule and policies, again with each task that is added."""

    __slots__ = ("_code", "_defaults", "_inherited", "_name", "_origin", "_owner", "_policies", "_schedule")

    def __init__(
        self, name: str, schedule: Schedule, policies: Overrides, defaults: Overrides, owner: str, code: str
    ) -> None:
        self._name, self._schedule, self._policies = name, schedule, policies
        self._defaults, self._owner, self._code = defaults, kept_once(owner), kept_once(code)
        self._inherited: tuple[TaskDefinition, ...] = ()
        self._origin: FromTemplates | None = None

    def inherit(self, given: Combined, has_schedule: bool) -> None:
        """Let the job have what its templates say and it does not say itself."""
        self._inherited = given.tasks
        self._origin = given.origin.without(*self._policies, *(["schedule"] if has_schedule else []))

    def __call__(self, tasks: tuple[TaskDefinition, ...], reports: bool) -> Job:
        origin = self._origin
        if origin is not None and tasks:
            origin = origin.without("tasks")
        tasks = tasks or self._inherited
        job = define_job(
            self._name,
            self._schedule,
            policies=dict(self._policies.items),
            tasks=tasks,
            application=self._defaults,
            owner=self._owner,
            in_zone=in_zone,
            reports=reports,
            code=self._code,
            templates=origin,
        )
        if tasks and "payload" in self._policies:
            _refuse_unfit(job)
        return job


def _refuse_unfit(job: Job) -> None:
    """Refuse a misspelt key or a wrong kind of value in the payload that a definition says itself.

    Functions without any parameter may read the payload by `current()`.
    """
    parameters = [task.parameters for task in job.tasks]
    if job.settings.payload is not None and any(parameter is None or parameter for parameter in parameters):
        refuse_unfit(job.name, parameters, job.settings.payload.read())


_SCHEDULES = ("cron", "every", "once", "interval", "trigger", "seconds", "minutes", "hours")
"""Names under which other schedulers take a schedule."""


def _unscheduled(policies: Mapping[str, object]) -> InvalidSchedule:
    """Return the error about `@tick.job` without a schedule, or with one under a name."""
    named = next((name for name in policies if name in _SCHEDULES), None)
    reason = "is missing" if named is None else f"comes first and without a name, and {named}= is no option"
    return InvalidSchedule(
        "@tick.job", "schedule", f'{reason}: write @tick.job(every("10s")) or @tick.job("30 2 * * *")'
    )


def _schedule_of_templates(job: str, inherited: Combined) -> Schedule:
    """Return the schedule of a job that says none itself."""
    if inherited.schedule is None:
        named = ", ".join(f"'{shown(name)}'" for name in inherited.origin.names)
        instead = ('schedule="0 9 * * *"', "a template with a schedule")
        raise InvalidPolicies(job, f"neither the job nor its template {named} has a schedule", instead)
    return inherited.schedule


def _store_maker(given: object, module: Mapping[str, Any]) -> tuple[Callable[[], AnyStore], bool]:
    """Return a function that makes the store, and whether the application opens and closes it.

    An address is checked now. A store object is used as it is: the code that made it opens and closes it.
    """
    if given is not None and not isinstance(given, str) and hasattr(given, "commit_plans"):
        store = cast("AnyStore", given)
        return lambda: store, False
    from everytick.stores.addresses import checked_address, store_of

    if given is None:
        file = module.get("__file__")
        folder = None if file is None else os.path.dirname(os.path.abspath(str(file)))
        return lambda: store_of(DEFAULT_STORE, folder), True
    address = checked_address(given)
    return lambda: store_of(address), True


def _is_in_memory(store: object) -> bool:
    """Whether the store is in memory, which stores definitions as values and not as texts."""
    if isinstance(store, str):
        return store.startswith("memory:")
    return bool(getattr(getattr(store, "address", None), "is_in_memory", False))


def _folder(given: object) -> Path:
    """Return the absolute path of the folder: the current folder may be another one when the node starts."""
    from pathlib import Path

    if not isinstance(given, (str, Path)) or not str(given):
        raise InvalidSetting("jobs", given, "must be the path of a folder")
    return Path(given).expanduser().absolute()


def _api_targets(given: Iterable[str]) -> frozenset[str]:
    """Return the kinds of targets that the HTTP API may define, checked."""
    kinds = frozenset([given] if isinstance(given, str) else given)
    if unknown := kinds - {"command", "http", *ENGINES}:
        reason = 'names kinds: "command", "http", "celery", "dask" or "ray"'
        raise InvalidSetting("api_targets", ", ".join(sorted(map(str, unknown))), reason)
    return kinds


def _at_least_none(given: object) -> int:
    """Return how many runs need no confirmation."""
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise InvalidSetting("confirm_above", given, "must be a whole number of runs, 0 or more")
    return given


def _slots(slots: int | None, max_concurrent_jobs: int | None) -> int:
    """Return the number of slots, 50 unless set. `max_concurrent_jobs` is another name of `slots`."""
    if slots is not None and max_concurrent_jobs is not None and slots != max_concurrent_jobs:
        raise InvalidSetting("slots", slots, f"is also given as max_concurrent_jobs={max_concurrent_jobs}: give one")
    number = slots if slots is not None else max_concurrent_jobs
    return 50 if number is None else number


def _with_retention(defaults: Mapping[str, object], retention: object) -> Mapping[str, object]:
    """Return the defaults with the retention of all jobs, which is one of the policies."""
    if retention is None:
        return defaults
    if "retention" in defaults:
        raise InvalidSetting("retention", retention, "is also given in defaults: give one")
    return {**defaults, "retention": retention}
