"""Job and Task: a named definition, whole and checked. A mistaken definition is refused here, before any store.

A Job holds what its author wrote: schedule, tasks, policies, version. Pause, watermark and last
run belong to the store and stand in a snapshot.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias, TypeGuard

from everytick.domain.config import Level, Overrides, Settings, overrides
from everytick.domain.contradictions import refuse_contradictions
from everytick.domain.names import checked_name, did_you_mean, kept_once
from everytick.domain.needs import ENGINE_TARGET, ENGINES, labels_of, needs_in
from everytick.domain.notices import OWNER as NOTICES_OWNER
from everytick.domain.notices import NoticeKind
from everytick.domain.parameters import Parameters
from everytick.domain.policies import FirstSight, Mode, Protected
from everytick.domain.policy_checks import names
from everytick.domain.schedule import Schedule, bound, is_on_request, waits_for_end
from everytick.domain.templates import FromTemplates
from everytick.domain.values import value
from everytick.domain.window import within
from everytick.errors import DuplicateDefinition, InvalidName, InvalidPolicies, InvalidSchedule, shown

_NOTHING = Overrides(Level.APPLICATION)
# Both lie before any scheduled instant, and leave room for an offset of a day.
_BEGINNING = datetime(1, 1, 3, tzinfo=UTC)
_SOME_END = datetime(1970, 1, 1, tzinfo=UTC)


InZone: TypeAlias = Callable[[Schedule, str], Schedule]


@value(frozen=True)
class Task:
    """One unit of work in a Job: what to call, after which other tasks, under which settings.

    `parameters` are what its function takes from a payload; None if it is no function.

    Its times are its definition's: when the job was created, and when this version of it was.
    """

    id: str
    job_id: str
    name: str
    order: int
    target: str
    after: tuple[str, ...]
    overrides: Overrides
    settings: Settings
    created_at: datetime | None = None
    updated_at: datetime | None = None
    parameters: Parameters | None = None


@value(frozen=True)
class Job:
    """A named definition: schedule, tasks, policies.

    `settings` are the defaults overridden by `application`, then by `templates` if it names some, then by
    `overrides`. The version
    counts edits; the store sets the times, which are None before. `reports` is true if a hook of
    its application is called with the report of every occurrence. `code` names the application
    whose functions its tasks call, and `labels` what a node must have to run them.
    """

    id: str
    name: str
    schedule: Schedule
    tasks: tuple[Task, ...]
    settings: Settings
    overrides: Overrides
    application: Overrides = _NOTHING
    version: int = 1
    owner: str = "code"
    created_at: datetime | None = None
    updated_at: datetime | None = None
    reports: bool = False
    code: str = ""
    labels: str = ""
    templates: FromTemplates | None = None

    @property
    def needs(self) -> str:
        """What a node must have to plan and claim it, as one text (`domain/needs.py`)."""
        return needs_in(self.labels, self.settings.queue)

    @property
    def kind(self) -> Literal["task", "flow"]:
        """`task` for a job of one task, `flow` for more."""
        return "flow" if len(self.tasks) > 1 else "task"

    @property
    def schedule_type(self) -> str:
        """The word that the schedule's text begins with, such as `cron`; `combined` if it holds several."""
        text = str(self.schedule)
        return "combined" if text.startswith("(") else text.partition(":")[0]

    @property
    def enabled(self) -> bool:
        """Whether the definition wants to run at all; whether it is paused is the store's to say."""
        return self.settings.enabled

    @property
    def is_protected(self) -> bool:
        """Whether a change of it needs a confirmation or a second person."""
        return self.settings.protected is not Protected.NO

    @property
    def notifies(self) -> bool:
        """Whether its failures, recoveries or successes are told to a receiver."""
        settings = self.settings
        return any(notify is not None for notify in (settings.on_failure, settings.on_recovery, settings.on_success))

    @property
    def owes_reports(self) -> bool:
        """Whether the end of every occurrence is to be reported: to a hook, or to what decides about notices."""
        return self.reports or self.notifies

    def task(self, name: str) -> Task:
        """Return the task of this name."""
        for task in self.tasks:
            if task.name == name:
                return task
        raise KeyError(name)

    def is_over(self, now: datetime) -> bool:
        """Whether a job that is new now never runs by itself: its schedule names no instant after now."""
        if is_on_request(self.schedule) or waits_for_end(self.schedule):
            return False
        if self.settings.on_create.begin is not FirstSight.NEXT:
            return False
        try:
            return self.bound(None).next_after(now) is None
        except Exception:  # noqa: BLE001, a schedule of a user's own may raise anything, and a plan says so
            return False

    def bound(self, last_end: datetime | None) -> Schedule:
        """Return the schedule as this job has it: bound to its id, inside its start and end."""
        return within(bound(self.schedule, self.id, last_end), self.settings.start, self.settings.end)


@value
class TaskDefinition:
    """One task as its author wrote it, before the job is whole; `after` may name tasks still to come."""

    name: str
    target: str
    after: tuple[str, ...]
    overrides: Overrides
    parameters: Parameters | None = None


def define_task(
    job: str,
    name: str,
    *,
    target: str = "",
    after: object = (),
    policies: Mapping[str, object] | None = None,
    parameters: Parameters | None = None,
) -> TaskDefinition:
    """Return one task of the job of this name; what it sets is read here, its peers are checked with the whole."""
    checked = checked_name("task", name)
    what = f"task '{shown(checked)}'"
    try:
        peers = names("after", after)
    except InvalidPolicies as error:
        raise InvalidPolicies(job, f"{what}: {error.reason}", error.alternatives) from None
    return TaskDefinition(checked, target, peers, overrides(Level.TASK, policies or {}, job, what), parameters)


def define_job(
    name: str,
    schedule: Schedule,
    *,
    policies: Mapping[str, object] | None = None,
    tasks: Iterable[TaskDefinition] = (),
    application: Overrides = _NOTHING,
    owner: str = "code",
    in_zone: InZone = lambda schedule, zone: schedule,
    reports: bool = False,
    code: str = "",
    templates: FromTemplates | None = None,
) -> Job:
    """Return the definition, whole and checked: settings merged, zone settled, tasks in order.

    A schedule that never names an instant is refused, and so are policies that contradict
    each other and tasks that wait for each other in a circle. `in_zone` puts a schedule
    that has no zone into the zone of this name; the caller passes it, since this layer knows no zones.
    """
    # Loads the system's crypto library, which importing everytick need not wait for.
    from everytick.domain.ids import job_id

    checked, written = kept_once(checked_name("job", name)), tuple(tasks)
    if not is_schedule(schedule):
        raise InvalidSchedule(schedule, "schedule", f"of job '{shown(checked)}' must be a schedule like every(\"10s\")")
    set_here = overrides(Level.JOB, policies or {}, checked)
    settings = _merged(application, templates, set_here)
    refuse_contradictions(checked, settings)
    _refuse_mistaken_tasks(checked, written)
    settings = _with_order(checked, _with_zone(settings, in_zone), written)
    id_ = kept_once(job_id(checked))
    whole = tuple(_task(checked, id_, order, task, settings) for order, task in enumerate(written, 1))
    job = Job(
        id=id_,
        name=checked,
        schedule=_spread(checked, in_zone(schedule, settings.timezone), settings.spread),
        tasks=whole,
        settings=settings,
        overrides=set_here,
        application=application,
        owner=kept_once(checked_name("owner", owner)),
        reports=reports,
        code=kept_once(code),
        labels=kept_once(labels_of(code, ((task.target, task.settings.runner) for task in whole))),
        templates=templates,
    )
    _refuse_mistaken_notices(job)
    if job.owner != NOTICES_OWNER:
        _refuse_silence(job)
    return job


def is_schedule(given: object) -> TypeGuard[Schedule]:
    """Tell whether this is a schedule. The class of a schedule has its methods too, but is none."""
    return isinstance(given, Schedule) and not isinstance(given, type)


def restored_job(
    *,
    id: str,
    name: str,
    schedule: Schedule,
    tasks: Iterable[TaskDefinition],
    overrides: Overrides,
    application: Overrides,
    version: int,
    owner: str,
    in_zone: InZone,
    created_at: datetime | None = None,
    updated_at: datetime | None = None,
    reports: bool = False,
    code: str = "",
    templates: FromTemplates | None = None,
) -> Job:
    """Return a definition from its stored parts. It is not checked again: `define_job` did so before it was stored."""
    settings = _with_zone(_merged(application, templates, overrides), in_zone)
    written = tuple(tasks)
    if any(task.after for task in written):
        settings = replace(settings, mode=Mode.GRAPH)
    # Interned: a process that defines thousands of jobs and reads them back keeps one copy of each text.
    id = kept_once(id)
    whole = tuple(
        _restored_task(id, order, task, settings, created_at, updated_at) for order, task in enumerate(written, 1)
    )
    return Job(
        id=id,
        name=kept_once(name),
        schedule=schedule,
        tasks=whole,
        settings=settings,
        overrides=overrides,
        application=application,
        version=version,
        owner=kept_once(owner),
        created_at=created_at,
        updated_at=updated_at,
        reports=reports,
        code=kept_once(code),
        labels=kept_once(labels_of(code, ((task.target, task.settings.runner) for task in whole))),
        templates=templates,
    )


def _merged(application: Overrides, templates: FromTemplates | None, own: Overrides) -> Settings:
    """Return the settings that follow from what each level sets."""
    shared = Settings().overridden_by(application)
    return (shared if templates is None else shared.overridden_by(templates.overrides)).overridden_by(own)


def same_definition(one: Job, other: Job) -> bool:
    """Tell whether two definitions say the same, whatever their ids, versions and times.

    The SQL stores compare the texts of `write_definition`; a law holds that both agree.
    """
    return _content(one) == _content(other)


def _content(job: Job) -> tuple[object, ...]:
    tasks = tuple((task.name, task.target, task.after, task.overrides, task.parameters) for task in job.tasks)
    said = job.overrides, job.application, job.templates
    return job.name, job.schedule, job.owner, said, tasks, job.reports, job.code


def dated(job: Job, created_at: datetime, updated_at: datetime) -> Job:
    """Return the definition with the store's times, and its tasks with the same."""
    tasks = tuple(replace(task, created_at=created_at, updated_at=updated_at) for task in job.tasks)
    return replace(job, tasks=tasks, created_at=created_at, updated_at=updated_at)


def _restored_task(
    job_id: str,
    order: int,
    task: TaskDefinition,
    settings: Settings,
    created_at: datetime | None,
    updated_at: datetime | None,
) -> Task:
    return _whole_task(job_id, order, task, settings.overridden_by(task.overrides), created_at, updated_at)


def _whole_task(
    job_id: str,
    order: int,
    task: TaskDefinition,
    merged: Settings,
    created_at: datetime | None = None,
    updated_at: datetime | None = None,
) -> Task:
    from everytick.domain.ids import task_id

    id_, name, target = kept_once(task_id(job_id, task.name)), kept_once(task.name), kept_once(task.target)
    return Task(
        id=id_,
        job_id=job_id,
        name=name,
        order=order,
        target=target,
        after=task.after,
        overrides=task.overrides,
        settings=merged,
        created_at=created_at,
        updated_at=updated_at,
        parameters=task.parameters,
    )


def refuse_contradicting_task(job: Job, tasks: Sequence[TaskDefinition]) -> None:
    """Return if the newest of these tasks fits into the job; tasks that it comes after may be defined later."""
    newest = tasks[-1]
    refuse_contradictions(job.name, job.settings.overridden_by(newest.overrides), newest.name)
    _with_order(job.name, job.settings, tasks)
    _refuse_cycles(job.name, tasks)


def _refuse_cycles(job: str, tasks: Iterable[TaskDefinition]) -> None:
    """Return if no task waits for itself, directly or through others; a name that is not defined yet waits for none."""
    if not any(task.after for task in tasks):
        return
    # Imported here: few jobs use `after`.
    from graphlib import CycleError, TopologicalSorter

    try:
        TopologicalSorter({task.name: task.after for task in tasks}).prepare()
    except CycleError as error:
        circle = " → ".join(f"'{shown(name, 40)}'" for name in error.args[1])
        instead = ("leave out one `after` of these",)
        raise InvalidPolicies(job, f"tasks wait for each other in a circle: {circle}", instead) from None


def _refuse_mistaken_tasks(job: str, tasks: Sequence[TaskDefinition]) -> None:
    known = [task.name for task in tasks]
    for position, task in enumerate(tasks):
        if task.name in known[:position]:
            raise DuplicateDefinition(f"job '{shown(job)}' has two tasks named '{shown(task.name)}': rename one")
        for peer in task.after:
            if peer not in known:
                reason = f"task '{shown(task.name)}' comes after '{shown(peer)}', which is not a task of this job"
                others = tuple(f"after='{shown(name)}'" for name in known if name != task.name)
                raise InvalidPolicies(job, reason + did_you_mean(peer, known), others)
    _refuse_cycles(job, tasks)


def _with_order(job: str, settings: Settings, tasks: Sequence[TaskDefinition]) -> Settings:
    """Return the settings with mode graph if a task has `after`; refuse another mode that was set."""
    bound_task = next((task for task in tasks if task.after), None)
    if bound_task is None or settings.mode is Mode.GRAPH:
        return settings
    if settings.origin("mode") is not Level.DEFAULT:
        reason = (
            f"task '{shown(bound_task.name)}' comes after others, and mode {settings.mode} does not look at `after`"
        )
        raise InvalidPolicies(job, reason, ('mode="graph"', f'mode="{settings.mode}" without `after`'))
    return replace(settings, mode=Mode.GRAPH)


def _with_zone(settings: Settings, in_zone: InZone) -> Settings:
    """Return the settings with the two schedules among them in the job's zone."""
    stop, restart = settings.stop_schedule, settings.restart_schedule
    if stop is None and restart is None:
        return settings
    return replace(
        settings,
        stop_schedule=None if stop is None else in_zone(stop, settings.timezone),
        restart_schedule=None if restart is None else in_zone(restart, settings.timezone),
    )


def _task(job: str, job_id: str, order: int, task: TaskDefinition, settings: Settings) -> Task:
    merged = settings.overridden_by(task.overrides)
    refuse_contradictions(job, merged, task.name)
    _refuse_other_runner(job, task, merged.runner)
    return _whole_task(job_id, order, task, merged)


def _refuse_other_runner(job: str, task: TaskDefinition, runner: str | None) -> None:
    """Return if an engine gets a target, and a target an engine."""
    if task.target.startswith(ENGINE_TARGET):
        if runner not in ENGINES:
            reason = f"task '{shown(task.name)}' has a target, which only an engine can call, and runner {runner}"
            raise InvalidPolicies(job, reason, tuple(f'runner="{engine}"' for engine in ENGINES))
    elif runner in ENGINES and task.target:
        reason = f"task '{shown(task.name)}' has runner {runner}, which carries out what a target names"
        raise InvalidPolicies(job, reason, ('target="tasks.send_report"', f"no runner {runner}"))


def _spread(job: str, schedule: Schedule, length: timedelta | None) -> Schedule:
    """Return the schedule with the policy spread as its option, as it is stored."""
    if length is None:
        return schedule
    if "; spread=" in str(schedule):
        instead = ("spread=None, to keep the schedule's own",)
        raise InvalidPolicies(job, f"spread is given twice, here and in '{shown(str(schedule))}'", instead)
    spread_over = getattr(schedule, "spread_over", None)
    if spread_over is None:
        kind = type(schedule).__name__
        ways = (f"a method {kind}.spread_over(length)", 'jitter="30s", which delays only the start')
        raise InvalidPolicies(job, f"spread does not know how to move a {kind}", ways)
    moved: Schedule = spread_over(length)
    return moved


def _refuse_mistaken_notices(job: Job) -> None:
    """Return if no notice of this job, and no other job, has a name that is kept for the jobs that send notices."""
    for kind in NoticeKind:
        subject = job.name.removesuffix(f".{kind}")
        if subject != job.name and job.owner != NOTICES_OWNER:
            reason = f"is kept for the notices of job '{shown(subject)}': give another name"
            raise InvalidName("job", job.name, reason)
        if getattr(job.settings, kind) is not None:
            checked_name("job", f"{job.name}.{kind}")


def _refuse_silence(job: Job) -> None:
    """Return if the schedules name at least one instant between year 1 and 9999, or the job runs on request."""
    for what, schedule in (
        ("schedule", job.schedule),
        ("stop_schedule", job.settings.stop_schedule),
        ("restart_schedule", job.settings.restart_schedule),
    ):
        # With some last end: a schedule that follows a completion has no instant before the first one.
        if schedule is job.schedule and is_on_request(schedule):
            continue
        if schedule is not None and bound(schedule, job.id, _SOME_END).next_after(_BEGINNING) is None:
            reason = f"of job '{shown(job.name)}' never fires ({schedule.describe()}): give one that names an instant"
            raise InvalidSchedule(str(schedule), what, reason)
    start, end = job.settings.start, job.settings.end
    if not is_on_request(job.schedule) and job.bound(start or _SOME_END).next_after(_BEGINNING) is None:
        reason = f"'{shown(str(job.schedule))}' names no instant from {start or 'the beginning'} to {end or 'the end'}"
        raise InvalidPolicies(job.name, reason, ("a wider window of start and end",))
