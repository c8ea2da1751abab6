"""depends_on as users meet it: defined in any order, tried out on virtual time."""

from datetime import UTC, datetime, timedelta

import pytest

from everytick import Dependency, Everytick, InvalidPolicies
from everytick.testing import ManualClock, MemoryStore, simulate
from tests.sim.chance import passing

MIDNIGHT = datetime(2026, 11, 16, tzinfo=UTC)


def chain(failing: set[int]) -> Everytick:
    """Return two hourly jobs; the second depends on the first, whose nth run takes 10 minutes and fails for some n."""
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", depends_on="extract")
    def load() -> None: ...

    @tick.job("0 * * * *", task_timeout="1h")
    async def extract() -> None:
        runs.append(len(runs) + 1)
        nth = runs[-1]
        await passing(600)
        if nth in failing:
            raise OSError("no data")

    runs: list[int] = []
    return tick


def test_a_job_runs_after_the_one_it_depends_on_and_is_skipped_where_that_failed() -> None:
    """S1-042: whichever of the two is defined first."""
    done = simulate(chain({2}), MIDNIGHT, MIDNIGHT + timedelta(hours=4, minutes=30))

    assert [f"{entry.scheduled_for:%H} {entry.status}" for entry in done.of("load")] == [
        "01 completed",
        "02 skipped",
        "03 completed",
        "04 completed",
    ]
    first, second, *_ = done.of("load")
    assert first.started_at == MIDNIGHT + timedelta(hours=1, minutes=10)
    assert second.error is not None
    assert second.error.startswith("dependency on extract: its run for")


async def test_a_triggered_job_that_is_not_stored_yet_brings_along_what_it_depends_on() -> None:
    """S1-042: a script that asks before any node has started."""
    clock = ManualClock(MIDNIGHT)
    tick = Everytick(MemoryStore(clock), name="shop")
    tick.job("0 * * * *", name="report", depends_on=Dependency("load", "2h"))(print)
    tick.job("0 * * * *", name="load", depends_on="extract")(print)
    tick.job("0 * * * *", name="extract")(print)

    await tick.trigger("report")

    assert sorted(record.job.name for record in await tick.jobs()) == ["extract", "load", "report"]
    await tick.close()


async def test_a_start_refuses_a_name_that_nobody_defines() -> None:
    """S1-042."""
    tick = Everytick(MemoryStore(ManualClock(MIDNIGHT)), name="shop")
    tick.job("0 * * * *", name="extract")(print)
    tick.job("0 * * * *", name="load", depends_on="extracts")(print)

    with pytest.raises(InvalidPolicies, match=r"depends_on 'extracts': .*did you mean 'extract'"):
        await tick.sync()
    await tick.close()


def test_what_cannot_ask_other_jobs_cannot_depend_on_them() -> None:
    """S1-042: `fire_local` runs without the store."""
    tick = Everytick("memory://")
    with pytest.raises(InvalidPolicies, match="fire_local cannot see whether other jobs have succeeded"):
        tick.define("load", "0 * * * *", overlap="allow", on_store_outage="fire_local", depends_on="extract")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (7, "must name a job, or several"),
        (["a", "a"], "is named twice"),
        ([7], "does not name a job"),
        ({"within": "1h"}, "depends_on says no job"),
        ({"job": "a", "whitin": "1h"}, "did you mean 'within'"),
        ({"job": "a", "otherwise": "hope"}, "depends_on otherwise 'hope' is not known"),
        ({"job": "a", "within": "1h", "otherwise": "skip", "deadline": "2h"}, "takes no deadline"),
    ],
)
def test_what_makes_no_sense_is_refused_on_the_line_that_wrote_it(written: object, message: str) -> None:
    """S1-042."""
    with pytest.raises(InvalidPolicies, match=message):
        Everytick("memory://").define("load", "0 * * * *", depends_on=written)  # type: ignore[arg-type]


def test_a_dependency_says_itself_in_english() -> None:
    """S1-042."""
    assert Dependency("a").describe() == "a for the same instant"
    assert Dependency("a", "90m", "skip", requests=True).describe() == "a within 1h30m, else skipped, requests too"
    assert Dependency("a", deadline="2h").describe() == "a for the same instant, waits up to 2h"
