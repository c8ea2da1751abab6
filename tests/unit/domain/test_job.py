"""Job and Task: a definition is whole and checked, or refused."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everytick.domain import ids
from everytick.domain.config import Level, overrides
from everytick.domain.job import Job, TaskDefinition, define_job, define_task, refuse_contradicting_task
from everytick.domain.policies import Failure, Mode
from everytick.domain.retry import Retry
from everytick.domain.schedule import Schedule
from everytick.errors import DuplicateDefinition, InvalidName, InvalidPolicies, InvalidSchedule
from everytick.schedules.codec import schedule
from everytick.schedules.interval import every
from everytick.schedules.once import after_completion, once

HOURLY = every("1h")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


class Daily:
    """A schedule of a user's own: no zone, no spread, not bound to any job."""

    def next_after(self, instant: datetime) -> datetime | None:
        return instant.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)

    def last_at(self, instant: datetime) -> datetime | None:
        return instant.replace(hour=0, minute=0, second=0, microsecond=0)

    def instants(self, after: datetime, through: datetime, limit: int | None = None) -> Sequence[datetime]:
        return []

    def describe(self) -> str:
        return "every midnight, UTC"


def tasks(*written: tuple[str, list[str]]) -> list[TaskDefinition]:
    return [define_task("etl", name, after=after) for name, after in written]


def test_a_job_has_a_deterministic_id_and_what_its_author_said() -> None:
    """S0-002, S0-012, C-25: version 1, owned by code, times unknown until it is stored."""
    job = define_job("etl", HOURLY, policies={"overlap": "queue", "enabled": False})
    assert job.id == ids.job_id("etl")
    assert (job.name, job.schedule, job.version, job.owner) == ("etl", HOURLY, 1, "code")
    assert (job.created_at, job.updated_at) == (None, None)
    assert job.settings.overlap == "queue"
    assert job.overrides == overrides(Level.JOB, {"overlap": "queue", "enabled": False})
    assert job.enabled is False
    assert define_job("etl", HOURLY, policies={"enabled": False, "overlap": "queue"}) == job


def test_a_task_has_a_deterministic_id_an_order_and_its_own_overrides() -> None:
    """S0-003, S0-028, S0-078: settings are merged once, with their origins."""
    job = define_job(
        "etl",
        HOURLY,
        policies={"retry": Retry(3, "30s"), "task_timeout": "1m"},
        tasks=[
            define_task("etl", "extract", target="app.jobs:extract"),
            define_task("etl", "load", policies={"failure": "continue", "task_timeout": None}),
        ],
        application=overrides(Level.APPLICATION, {"failure": "continue", "grace": "5s"}),
        owner="code:app",
    )
    extract, load = job.tasks
    assert (extract.id, extract.job_id) == (ids.task_id(job.id, "extract"), job.id)
    assert [(task.name, task.order) for task in job.tasks] == [("extract", 1), ("load", 2)]
    assert (extract.target, extract.after) == ("app.jobs:extract", ())
    assert (load.settings.failure, load.settings.origin("failure")) == (Failure.CONTINUE, Level.TASK)
    assert (load.settings.task_timeout, load.settings.origin("task_timeout")) == (None, Level.TASK)
    assert (load.settings.retry, load.settings.origin("retry")) == (Retry(3, "30s"), Level.JOB)
    assert (extract.settings.failure, extract.settings.origin("failure")) == (Failure.CONTINUE, Level.APPLICATION)
    assert set(load.overrides) == {"failure", "task_timeout"}
    assert job.settings.origin("grace") is Level.APPLICATION
    assert job.owner == "code:app"


def test_a_job_of_one_task_is_a_task_and_one_of_more_is_a_flow() -> None:
    """S1-004, C-32, C-39."""
    assert define_job("etl", HOURLY, tasks=tasks(("a", []))).kind == "task"
    flow = define_job("etl", HOURLY, tasks=tasks(("a", []), ("b", [])))
    assert flow.kind == "flow"
    assert flow.task("b") is flow.tasks[1]
    with pytest.raises(KeyError):
        flow.task("c")


@pytest.mark.parametrize("name", ["", " etl", "e\ntl", "x" * 201])
def test_an_unreadable_name_is_refused(name: str) -> None:
    """1 to 200 characters without control characters or outer blanks; for jobs, tasks and owners."""
    with pytest.raises(InvalidName, match="job name"):
        define_job(name, HOURLY)
    with pytest.raises(InvalidName, match="task name"):
        define_task("etl", name)
    with pytest.raises(InvalidName, match="owner name"):
        define_job("etl", HOURLY, owner=name)


def test_what_is_no_schedule_is_refused() -> None:
    """S0-037: anything with the four questions is one; text is not."""
    assert define_job("etl", Daily()).schedule.describe() == "every midnight, UTC"
    for wrong in ("every 10s", None, 10, Daily):
        with pytest.raises(InvalidSchedule, match="schedule of job 'etl' must be a schedule like every"):
            define_job("etl", cast("Schedule", wrong))


# ------------------------------------------------------------------------------------------------ order of tasks


def test_after_makes_the_mode_graph() -> None:
    """`after` with no mode said."""
    job = define_job("etl", HOURLY, tasks=tasks(("extract", []), ("load", ["extract"])))
    assert (job.settings.mode, job.settings.origin("mode")) == (Mode.GRAPH, Level.DEFAULT)
    assert [task.settings.mode for task in job.tasks] == [Mode.GRAPH, Mode.GRAPH]
    assert job.task("load").after == ("extract",)
    assert define_job(
        "etl", HOURLY, policies={"mode": "graph"}, tasks=tasks(("a", []), ("b", ["a"]))
    ).settings.mode == (Mode.GRAPH)


@pytest.mark.parametrize("level", ["job", "application"])
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_after_with_another_mode_is_refused_with_both_ways_out(mode: str, level: str) -> None:
    """Refused pair: `after` with mode sequential or parallel."""
    said = {"mode": mode}
    application = overrides(Level.APPLICATION, said if level == "application" else {})
    policies = said if level == "job" else {}
    with pytest.raises(InvalidPolicies, match=f"task 'b' comes after others, and mode {mode} does not") as refusal:
        define_job("etl", HOURLY, policies=policies, application=application, tasks=tasks(("a", []), ("b", ["a"])))
    assert refusal.value.alternatives == ('mode="graph"', f'mode="{mode}" without `after`')


def test_after_may_name_a_task_that_comes_later() -> None:
    """The order of writing is not the order of running."""
    job = define_job("etl", HOURLY, tasks=tasks(("load", ["extract"]), ("extract", [])))
    assert [task.name for task in job.tasks] == ["load", "extract"]


def test_an_after_that_names_no_task_is_refused_with_a_guess() -> None:
    """Refused at definition."""
    with pytest.raises(
        InvalidPolicies, match=r"task 'load' comes after 'extrct'.*\(did you mean 'extract'\?\)"
    ) as refusal:
        define_job("etl", HOURLY, tasks=tasks(("extract", []), ("load", ["extrct"])))
    assert refusal.value.alternatives == ("after='extract'",)


@pytest.mark.parametrize("wrong", [5, b"a", {"a": 1}])
def test_after_that_is_no_list_of_names_is_refused(wrong: object) -> None:
    """A single text is one name."""
    assert define_task("etl", "load", after="extract").after == ("extract",)
    with pytest.raises(InvalidPolicies, match=r"job 'etl': task 'load': after .* must be a name or a list of names"):
        define_task("etl", "load", after=wrong)


@pytest.mark.parametrize(
    ("written", "circle"),
    [
        ([("a", ["a"])], "'a' → 'a'"),
        ([("a", ["b"]), ("b", ["a"])], "'[ab]' → '[ab]' → '[ab]'"),
        ([("free", []), ("a", ["c", "free"]), ("b", ["a"]), ("c", ["b"])], "'a' → 'b' → 'c' → 'a'"),
    ],
)
def test_tasks_that_wait_for_each_other_are_refused_with_the_circle(written: Any, circle: str) -> None:
    """Cycles are refused at definition, spelled out in the order they would have to run."""
    with pytest.raises(InvalidPolicies, match=f"wait for each other in a circle: {circle}"):
        define_job("etl", HOURLY, tasks=tasks(*written))


@given(st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=1, max_size=8))
def test_a_graph_is_refused_exactly_when_it_has_a_circle(edges: list[list[int]]) -> None:
    """Against a walk over every path: a task reachable from itself is a circle."""
    after = {str(n): [str(peer) for peer in peers if peer < len(edges)] for n, peers in enumerate(edges)}
    reach = {name: set(peers) for name, peers in after.items()}
    for _ in after:
        for peers in reach.values():
            peers.update(*(reach[peer] for peer in set(peers)))
    circular = any(name in peers for name, peers in reach.items())
    try:
        define_job("etl", HOURLY, tasks=tasks(*after.items()))
    except InvalidPolicies as error:
        assert circular
        spelled = [name.strip("'") for name in error.reason.split(": ", 1)[1].split(" → ")]
        assert spelled[0] == spelled[-1]
        assert all(earlier in after[later] for earlier, later in pairwise(spelled))
    else:
        assert not circular


def test_two_tasks_of_one_name_are_refused() -> None:
    """Their ids would be equal."""
    with pytest.raises(DuplicateDefinition, match="job 'etl' has two tasks named 'a'"):
        define_job("etl", HOURLY, tasks=tasks(("a", []), ("a", [])))


def test_a_task_may_not_contradict_the_job() -> None:
    """Refused pair: `superseded_by_next` on a task with the job's overlap allow."""
    gives_way = define_task("etl", "load", policies={"retry": Retry(None, "1m", superseded_by_next=True)})
    with pytest.raises(InvalidPolicies, match="job 'etl': task 'load': superseded_by_next"):
        define_job("etl", HOURLY, policies={"overlap": "allow"}, tasks=[gives_way])
    with pytest.raises(InvalidPolicies, match="job 'etl': superseded_by_next"):
        define_job("etl", HOURLY, policies={"overlap": "allow", "retry": Retry(1, "1m", superseded_by_next=True)})


def test_a_task_is_checked_as_soon_as_it_is_known() -> None:
    """What is wrong already is refused on its own line; whom it comes after may still come."""
    job = define_job("etl", HOURLY, policies={"overlap": "allow"})
    refuse_contradicting_task(job, tasks(("load", ["still to come"])))
    with pytest.raises(InvalidPolicies, match="circle"):
        refuse_contradicting_task(job, tasks(("a", ["b"]), ("b", ["a"])))
    gives_way = define_task("etl", "load", policies={"retry": Retry(None, "1m", superseded_by_next=True)})
    with pytest.raises(InvalidPolicies, match="superseded_by_next"):
        refuse_contradicting_task(job, [gives_way])
    with pytest.raises(InvalidPolicies, match="mode parallel"):
        refuse_contradicting_task(define_job("etl", HOURLY, policies={"mode": "parallel"}), tasks(("a", ["b"])))


# ----------------------------------------------------------------------------------------------------- schedules


@pytest.mark.parametrize(
    "text", ["0 0 30 2 *", "posix: 0 0 31 4 *", "R0/2024-01-01T00:00:00Z/P1D", "quartz: 0 0 0 31 11 ?"]
)
def test_a_schedule_that_never_names_an_instant_is_refused(text: str) -> None:
    """`0 0 30 2 *` is refused with a clear message when a job is defined with it."""
    with pytest.raises(InvalidSchedule, match="schedule of job 'etl' never fires ") as refusal:
        define_job("etl", schedule(text))
    assert refusal.value.text == str(schedule(text))


@pytest.mark.parametrize("key", ["stop_schedule", "restart_schedule"])
def test_a_stop_schedule_that_never_names_an_instant_is_refused(key: str) -> None:
    """S4-044."""
    with pytest.raises(InvalidSchedule, match=f"{key} of job 'etl' never fires"):
        define_job("etl", HOURLY, policies={key: schedule("0 0 30 2 *")})


@pytest.mark.parametrize(
    "kind",
    [
        after_completion("10m"),
        once("1850-01-01T00:00:00Z"),
        schedule("H H * * *"),
        schedule("0 0 29 2 *"),
        schedule("quartz: 0 0 0 1 1 ? 1970"),
        schedule("30 2 * * *; spread=15m"),
        schedule("every: 1h; end=1970-01-01T00:00:00Z"),
    ],
    ids=str,
)
def test_a_schedule_that_waits_for_its_job_or_lies_in_the_past_is_not_silent(kind: Schedule) -> None:
    """A script is started twice: `once` in the past is complete, not refused."""
    assert define_job("etl", kind).schedule == kind


def test_a_schedule_is_put_into_the_job_s_zone_where_it_has_none() -> None:
    """C-04: the job's, else the application's, else UTC; resolved at definition, stop and restart schedules too."""
    asked: list[tuple[Schedule, str]] = []

    def in_zone(given: Schedule, zone: str) -> Schedule:
        asked.append((given, zone))
        return once(NOON)

    application = overrides(Level.APPLICATION, {"timezone": "Asia/Tokyo"})
    stop, restart = every("2h"), every("3h")
    job = define_job("etl", HOURLY, policies={"timezone": "Europe/Berlin"}, application=application, in_zone=in_zone)
    assert (job.schedule, asked) == (once(NOON), [(HOURLY, "Europe/Berlin")])

    asked.clear()
    both = {"stop_schedule": stop, "restart_schedule": restart}
    job = define_job("etl", HOURLY, policies=both, application=application, in_zone=in_zone)
    assert set(asked) == {(HOURLY, "Asia/Tokyo"), (stop, "Asia/Tokyo"), (restart, "Asia/Tokyo")}
    assert job.settings.stop_schedule == job.settings.restart_schedule == once(NOON)
    assert job.overrides.get("stop_schedule") == stop


def test_spread_becomes_an_option_of_the_schedule() -> None:
    """A job's policy, which is then part of what is stored; the same job always gets the same offset."""
    job = define_job("etl", HOURLY, policies={"spread": "15m"})
    assert str(job.schedule) == f"{HOURLY}; spread=15m"
    first = job.bound(None).next_after(NOON)
    assert first is not None
    assert NOON < first < NOON + timedelta(hours=1, minutes=15)
    assert first == define_job("etl", HOURLY, policies={"spread": "15m"}).bound(NOON).next_after(NOON)


def test_spread_of_what_cannot_be_spread_is_refused() -> None:
    """Twice, or a schedule of a user's own that does not offer it."""
    with pytest.raises(InvalidPolicies, match="spread is given twice, here and in 'every: 1h; spread=5m'"):
        define_job("etl", schedule("every: 1h; spread=5m"), policies={"spread": "15m"})
    with pytest.raises(
        InvalidPolicies, match=r"does not know how to move a Daily; instead: a method Daily\.spread_over"
    ):
        define_job("etl", Daily(), policies={"spread": "15m"})


def test_start_and_end_bound_the_instants_of_any_schedule() -> None:
    """S0-045, S0-048, S0-049: what the schedule says itself holds too."""
    start, end = NOON, NOON + timedelta(hours=2)
    job = define_job("etl", HOURLY, policies={"start": start, "end": end})
    assert job.bound(None).instants(NOON - timedelta(days=1), NOON + timedelta(days=1)) == [
        NOON + timedelta(hours=hours) for hours in range(3)
    ]
    assert job.schedule == HOURLY
    own = define_job("etl", Daily(), policies={"start": start, "end": NOON + timedelta(days=1)})
    assert own.bound(None).next_after(datetime(2020, 1, 1, tzinfo=UTC)) == datetime(2024, 1, 2, tzinfo=UTC)
    assert own.bound(None).next_after(datetime(2024, 1, 2, tzinfo=UTC)) is None


def test_a_window_with_no_instant_in_it_is_refused() -> None:
    """No February 29 in 2025."""
    window = {"start": "2025-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}
    with pytest.raises(InvalidPolicies, match=r"names no instant from 2025-01-01 .* to 2026-01-01"):
        define_job("etl", schedule("0 0 29 2 *"), policies=window)
    with pytest.raises(InvalidPolicies, match="names no instant from the beginning to 1960"):
        define_job("etl", HOURLY, policies={"end": "1960-01-01T00:00:00Z"})
    define_job("etl", after_completion("10m"), policies={"start": "2025-01-01T00:00:00Z"})


def test_a_job_is_a_value() -> None:
    """Equal by content, hashable, never changed."""
    one, other = (define_job("etl", HOURLY, tasks=tasks(("a", []))) for _ in range(2))
    assert one == other
    assert len({one, other}) == 1
    with pytest.raises(AttributeError):
        one.version = 2  # type: ignore[misc]
    assert isinstance(one, Job)
