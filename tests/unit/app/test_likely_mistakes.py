"""Likely mistakes of the first hour in Python: each is refused on its line, and the error says what to write."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from everytick import Definition, Everytick, every, once
from everytick.errors import EverytickError


def _generator() -> Any:
    yield 1


def _needs(customer: str) -> None: ...


def _pays(customer: str = "x", cents: int = 1) -> None: ...


def _plain() -> None: ...


def _job(schedule: Any = "0 9 * * *", function: Callable[..., Any] = _plain, **policies: Any) -> None:
    Everytick("memory://").job(schedule, **policies)(function)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: _job("* * * *"), "must have exactly 5 fields (minute hour day month weekday), got 4"),
        (lambda: _job("0 0 30 2 *"), "never fires"),
        (lambda: _job(tz="CEST"), "there is no policy 'tz'"),
        (
            lambda: _job(timezone="CEST"),
            "but the letters of one: name the place, like Europe/Berlin",
        ),
        (lambda: every("5 minutes"), "cannot be read at character 1: write 5m"),
        (lambda: once(datetime(2035, 1, 1)), "has no time zone"),  # noqa: DTZ001, the mistake itself
        (lambda: every(10), 'has no unit: write "10s", "10m" or "10h"'),
        (lambda: _job(task_timeout=5), 'has no unit: write "5s", "5m" or "5h"'),
        (lambda: _job(retry=3), 'says no interval; instead: retry=Retry(3, "30s")'),
        (lambda: _job(timeout="5s"), "there is no policy 'timeout' (did you mean 'task_timeout'?)"),
        (lambda: _job(_plain), "'@tick.job': schedule is missing: write @tick.job(every(\"10s\")) or @tick.job("),
        (lambda: _job(None), "'@tick.job': schedule is missing: write @tick.job(every(\"10s\")) or @tick.job("),
        (
            lambda: _job(None, cron="* * * * *"),
            "schedule comes first and without a name, and cron= is no option: write @tick.job(every(",
        ),
        (lambda: _job(5), 'schedule must be a schedule or its text, like every("10s")'),
        (lambda: _job(function=lambda: None), "says nothing: give it one with name="),
        (lambda: _job(function=_needs), "needs 'customer', and the payload of this definition does not fill it"),
        (lambda: _job(function=_generator), "is a generator, and calling it does nothing"),
        (lambda: _job(payload={"x": "y" * 300_000}), "at most 262,144 are allowed"),
        (lambda: _job(payload={"x": datetime(2035, 1, 1, tzinfo=UTC)}), "holds a datetime at x, which is not JSON"),
        (
            lambda: _job(function=_pays, payload={"custmer": "y"}),
            "the payload for job '_pays' has 'custmer', which is no parameter of its tasks (did you mean 'customer'?)",
        ),
        (lambda: _job(function=_pays, payload={"cents": "3"}), "has 'cents': '3', and it must be a whole number"),
        (
            lambda: _job(function=_pays, payload=[3]),
            "the payload for job '_pays' is a list, and an object fills the parameters by name: {\"cents\": …}",
        ),
        (lambda: Everytick("x.db"), "is not an address; write one like sqlite:///path"),
        (lambda: Everytick("sqlite://x.db"), "must name a file: sqlite:///jobs.db (relative)"),
    ],
)
def test_a_likely_mistake_is_refused_with_what_to_write(mistake: Callable[[], object], said: str) -> None:
    """The table of likely mistakes."""
    with pytest.raises((EverytickError, TypeError)) as refused:
        mistake()

    assert said in str(refused.value)


def test_a_payload_that_no_function_takes_is_refused_once_all_tasks_are_known() -> None:
    tick = Everytick("memory://")
    etl = tick.define("etl", "0 9 * * *", payload={"region": "eu", "rws": 3})

    @etl.task
    def extract(region: str) -> None: ...

    with pytest.raises(EverytickError, match=r"'rws', which is no parameter .* \(did you mean 'rows'\?\)"):
        _with_load(etl)


def _with_load(etl: Definition) -> object:
    @etl.task
    def load(rows: int = 1) -> None: ...

    return etl.job


def test_defaults_of_the_application_and_functions_without_parameters_take_any_payload() -> None:
    """What all jobs share is not meant for each, and `current()` gives the payload to a function that names none."""
    tick = Everytick("memory://", defaults={"payload": {"region": "eu"}})
    tick.job("0 9 * * *")(_pays)
    tick.job("0 9 * * *", payload={"anything": 1})(_plain)
