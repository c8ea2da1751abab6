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
