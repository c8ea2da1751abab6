"""What a job is made of: functions, commands and requests."""

import json
from functools import partial
from typing import Any

import pytest

from everytick import Context
from everytick.app import Everytick
from everytick.app.definition import arguments
from everytick.errors import DuplicateDefinition, InvalidPolicies
from everytick.schedules.interval import every


def test_a_command_is_a_task_like_any_other() -> None:
    """As arguments, or as text for the shell; with policies and an order of its own."""
    backup = Everytick().define("backup", every("1h"))
    backup.command("dump", "pg_dump app > $EVERYTICK_SCRATCH/db.sql", env={"PGHOST": "db"}, cwd="/srv").command(
        "ship", ["rclone", "copy", "{{ scratch }}/db.sql", "remote:"], after="dump", retry={"max": 3, "interval": "1m"}
    )
    dump, ship = backup.job.tasks
    assert json.loads(dump.target) == {
        "command": "pg_dump app > $EVERYTICK_SCRATCH/db.sql",
        "env": {"PGHOST": "db"},
        "cwd": "/srv",
    }
    assert (ship.after, ship.settings.retry is not None) == (("dump",), True)
    assert dict(backup.functions) == {}


def test_a_request_is_a_task_like_any_other() -> None:
    """S4-style hooks need no code."""
    job = (
        Everytick()
        .define("hook", every("1h"))
        .http("call", "https://example.org/hook", method="POST", json={"x": 1}, expect=[202], timeout="5s")
        .job
    )
    assert json.loads(job.tasks[0].target)["http"] == {
        "method": "POST",
        "url": "https://example.org/hook",
        "json": {"x": 1},
        "expect": [202],
        "timeout": "5s",
    }


def test_a_target_that_makes_no_sense_is_refused_on_its_line() -> None:
    """With the job's name, and nothing half-defined stays behind."""
    backup = Everytick().define("backup", every("1h"))
    with pytest.raises(InvalidPolicies, match=r"job 'backup'.*stands outside of a list of arguments"):
        backup.command("dump", "echo {{ payload }}")
    with pytest.raises(InvalidPolicies, match="job 'backup'"):
        backup.http("call", "ftp://example.org")
    backup.command("dump", "true")
    with pytest.raises(DuplicateDefinition, match="job 'backup' has two tasks named 'dump'"):
        backup.command("dump", "false")
    assert [task.name for task in backup.job.tasks] == ["dump"]


def test_a_required_parameter_that_nothing_fills_is_refused_at_definition() -> None:
    """The schedule could never run it; a payload of the definition fills it, and the context is the node's."""
    tick = Everytick()

    def load(ctx: Context, table: str) -> None:
        """Load a table."""

    with pytest.raises(InvalidPolicies, match=r"job 'load': task 'load' needs 'table'.*payload=\{\"table\": …\}"):
        tick.job(every("1h"))(load)
    tick.job(every("1h"), name="filled", payload={"table": "orders"})(load)
    etl = tick.define("etl", every("1h"))
    with pytest.raises(InvalidPolicies, match="task 'load' needs 'table'"):
        etl.task(load)
    assert etl.job.tasks == ()


def test_a_refused_decoration_leaves_its_name_free() -> None:
    """A corrected function may take it."""
    tick = Everytick()
    with pytest.raises(InvalidPolicies, match="needs 'table'"):
        tick.job(every("1h"), name="load")(lambda table: table)
    tick.job(every("1h"), name="load")(lambda: None)


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "found"),
    [
        (lambda x, y=2: None, (1,), {}, {"x": 1}),
        (lambda x, y=2: None, (), {"y": 3, "x": 1}, {"x": 1, "y": 3}),
        (lambda **rest: None, (), {"a": 1}, {"a": 1}),
        (partial(lambda x, y: None, y=5), (1,), {}, {"x": 1}),
    ],
)
def test_the_arguments_of_a_trigger_are_a_payload(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], found: dict[str, Any]
) -> None:
    """By name, and only those that were given."""
    assert arguments(function, args, kwargs) == found


def test_the_context_is_no_argument_of_a_trigger_wherever_it_stands() -> None:
    """First or by keyword."""

    def first(ctx: Context, x: int) -> None:
        """Context first."""

    def named(x: int, *, ctx: Context) -> None:
        """Context by keyword."""

    assert arguments(first, (1,), {}) == arguments(named, (1,), {}) == {"x": 1}


def test_arguments_that_do_not_fit_are_a_type_error() -> None:
    """As a call's would be; what has no name cannot be in a payload."""
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        arguments(lambda x: None, (), {})
    with pytest.raises(TypeError, match=r"passed as \*rest has no name"):
        arguments(lambda *rest: None, (1,), {})


def test_jobs_that_say_the_same_share_what_they_say() -> None:
    """Ten thousand jobs must fit into a small node: equal schedules and settings are one value."""
    tick = Everytick()
    hourly, alike = (tick.define(name, when) for name, when in (("a", every("1h")), ("b", "every: 60m")))
    assert hourly.job.schedule is alike.job.schedule
    assert hourly.job.settings is alike.job.settings
    assert hourly.job.owner is alike.job.owner
    other = tick.define("c", every("2h")).job
    assert other.schedule == every("2h", tz="UTC")


def test_a_schedule_of_ones_own_need_not_be_hashable() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __init__(self) -> None:
            self._hourly = every("1h")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._hourly, name)

        def next_after(self, instant: Any) -> Any:
            return self._hourly.next_after(instant)

        def last_at(self, instant: Any) -> Any:
            return self._hourly.last_at(instant)

        def instants(self, after: Any, through: Any, limit: int | None = None) -> Any:
            return self._hourly.instants(after, through, limit)

        def describe(self) -> str:
            return "hourly"

    own = Unhashable()
    assert Everytick("memory://").define("own", own).job.schedule is own


def test_a_task_is_checked_against_the_job_without_it() -> None:
    """However the job was looked at in between, and whatever hooks it has."""
    etl = Everytick().define("etl", every("1h"), payload={"x": 1})

    @etl.task
    async def load(x: int) -> None: ...

    etl.on_complete(print)
    assert [task.name for task in etl.job.tasks] == ["load"]
    with pytest.raises(DuplicateDefinition):
        etl.task(name="load")(load)

    @etl.task(after="load")
    async def tell(x: int) -> None: ...

    assert [task.name for task in etl.job.tasks] == ["load", "tell"]
    assert etl.job.reports
