"""The defining half of the application."""

import asyncio
import inspect
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everytick.app import Everytick
from everytick.domain import ids
from everytick.domain.config import UNSET, Level
from everytick.domain.job import Job
from everytick.domain.policies import Failure, Mode
from everytick.domain.retry import Retry
from everytick.errors import (
    DefinitionWarning,
    DuplicateDefinition,
    InvalidDuration,
    InvalidName,
    InvalidPolicies,
    InvalidSchedule,
)
from everytick.schedules.cron import cron
from everytick.schedules.interval import every
from everytick.schedules.once import after_completion

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def sample(x: int = 1) -> int:
    return x + 1


def jobs_of(tick: Everytick) -> list[Job]:
    return [definition.job for definition in tick.definitions]


# -------------------------------------------------------------------------------------------- a job of one function


def test_a_decorated_function_is_still_the_function() -> None:
    """Calling it runs it here and now, with no store; C-32: it is a job of one implicit task."""
    tick = Everytick()
    decorated = tick.job(every("10s"), task_timeout="5s")(sample)

    assert decorated.__wrapped__ is sample  # type: ignore[attr-defined]
    assert type(decorated) is type(sample)
    assert decorated(2) == 3
    [job] = jobs_of(tick)
    assert (job.name, job.id, job.kind) == ("sample", ids.job_id("sample"), "task")
    [task] = job.tasks
    assert (task.name, task.order, task.target) == ("sample", 1, f"{__name__}:sample")
    assert task.settings.task_timeout == timedelta(seconds=5)


def test_a_coroutine_function_stays_one() -> None:
    """Frameworks and runners ask what it is."""
    tick = Everytick()

    @tick.job(every("10s"))
    async def heartbeat() -> str:
        return "tick"

    assert inspect.iscoroutinefunction(heartbeat)
    assert asyncio.run(heartbeat()) == "tick"
    assert tick.definitions[0].job.tasks[0].target.endswith("<locals>.heartbeat")


def test_one_function_may_be_two_jobs_under_two_names() -> None:
    """S0-007: the name makes the job, not the function."""
    tick = Everytick()
    tick.job(every("10s"), name="fast")(sample)
    tick.job(every("1h"), name="slow")(sample)
    assert [job.name for job in jobs_of(tick)] == ["fast", "slow"]
    assert [job.tasks[0].name for job in jobs_of(tick)] == ["fast", "slow"]


def test_what_has_no_name_of_its_own_needs_one() -> None:
    """A lambda or an object that can be called."""
    tick = Everytick()

    class Callable_:
        def __call__(self) -> None:
            """Do nothing."""

    for nameless in (lambda: 1, Callable_()):
        with pytest.raises(InvalidName, match="says nothing: give it one with name="):
            tick.job(every("10s"))(nameless)
    tick.job(every("10s"), name="named")(Callable_())
    assert tick.definitions[0].job.tasks[0].target.endswith("Callable_")
    with pytest.raises(InvalidName, match="is not a function: decorate one"):
        tick.define("other", every("10s")).task("load")  # type: ignore[call-overload]


def test_a_decorator_without_its_schedule_does_not_swallow_the_function() -> None:
    """`@tick.job` bare."""
    with pytest.raises(InvalidSchedule, match=r'schedule is missing: write @tick.job\(every\("10s"\)\)'):
        Everytick().job(sample)  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------- a job of several


def test_the_example_of_several_tasks_defines_what_it_says() -> None:
    """S0-024, S0-025: tasks in order, overrides with their origins, hooks kept."""
    tick = Everytick(timezone="Europe/Berlin")
    etl = tick.define(
        "etl",
        cron("30 2 * * 1-5"),
        failure="fail_fast",
        retry=Retry(3, "30s"),
        execution_timeout="30m",
        task_timeout="5m",
        recovery="execute_last",
    )

    @etl.on_start
    def begin() -> None:
        """Before any task."""

    @etl.task
    async def extract() -> int:
        return 5

    @etl.task(after=["extract"], retry=Retry(10, "1m", factor=2.0))
    async def load() -> None:
        """After extract."""

    @etl.task(failure="continue")
    def clean_up() -> str:
        return "clean"

    @etl.on_complete
    async def report(report: object) -> None:
        """Always."""

    [job] = jobs_of(tick)
    assert etl.job is job
    assert str(job.schedule) == "cron: 30 2 * * 1-5; tz=Europe/Berlin"
    assert [(task.name, task.order, task.after) for task in job.tasks] == [
        ("extract", 1, ()),
        ("load", 2, ("extract",)),
        ("clean_up", 3, ()),
    ]
    assert job.settings.mode is Mode.GRAPH
    assert job.task("load").settings.retry == Retry(10, "1m", factor=2.0)
    assert job.task("clean_up").settings.failure is Failure.CONTINUE
    assert job.task("clean_up").settings.origin("retry") is Level.JOB
    assert clean_up() == "clean"
    assert dict(etl.functions) == {"extract": extract, "load": load, "clean_up": clean_up}
    assert dict(etl.hooks) == {"on_start": begin, "on_complete": report}
    assert repr(etl) == "Definition(name='etl', tasks=['extract', 'load', 'clean_up'])"


def test_a_job_may_be_asked_for_before_all_its_tasks_are_there() -> None:
    """The definition as it stands now."""
    tick = Everytick()
    etl = tick.define("etl", every("1h"))
    assert list(etl.job.tasks) == []
    etl.task(sample)
    assert [task.name for task in etl.job.tasks] == ["sample"]
    etl.task(name="again")(sample)
    assert [task.name for task in tick.definitions[0].job.tasks] == ["sample", "again"]


def test_mistakes_in_tasks_are_refused_on_their_own_line_and_change_nothing() -> None:
    """Unknown policies, twice the same name, contradictions, circles."""
    tick = Everytick()
    etl = tick.define("etl", every("1h"), overlap="allow")
    etl.task(name="a", after="b")(sample)
    with pytest.raises(InvalidPolicies, match=r"circle: '[ab]' → '[ab]' → '[ab]'"):
        etl.task(name="b", after="a")(sample)
    with pytest.raises(DuplicateDefinition, match="job 'etl' has two tasks named 'a': give one another name="):
        etl.task(name="a")(sample)
    with pytest.raises(InvalidPolicies, match="job 'etl': overlap cannot be set for one task"):
        etl.task(overlap="skip")(sample)  # type: ignore[call-overload]
    with pytest.raises(InvalidDuration, match="read as task_timeout of task 'sample' of job 'etl'"):
        etl.task(task_timeout=5)(sample)  # type: ignore[call-overload]
    with pytest.raises(InvalidPolicies, match="task 'sample': superseded_by_next"):
        etl.task(retry=Retry(None, "1s", superseded_by_next=True))(sample)
    with pytest.raises(InvalidPolicies, match="mode parallel does not look at `after`"):
        tick.define("flat", every("1h"), mode="parallel").task(after="x")(sample)
    etl.task(name="b")(sample)
    assert [task.name for task in etl.job.tasks] == ["a", "b"]


def test_an_after_without_its_task_is_refused_when_the_jobs_are_read() -> None:
    """It might have come until then."""
    tick = Everytick()
    tick.define("etl", every("1h")).task(after="extrac")(sample)
    with pytest.raises(InvalidPolicies, match="task 'sample' comes after 'extrac', which is not a task of this job"):
        jobs_of(tick)


def test_a_hook_is_given_once() -> None:
    """Which of two would report?"""
    etl = Everytick().define("etl", every("1h"))
    assert etl.on_complete(sample) is sample
    with pytest.raises(DuplicateDefinition, match="job 'etl' has two on_complete hooks: call both from one function"):
        etl.on_complete(sample)


# ---------------------------------------------------------------------------------------------------- definitions


def test_one_name_twice_in_one_application_is_refused() -> None:
    """S0-112, C-38, B1: the refusal names the job and the line that defined it first."""
    tick = Everytick()
    tick.define("etl", every("1h"))
    first = f"{__file__}:{sys._getframe().f_lineno - 1}"
    with pytest.raises(DuplicateDefinition) as refusal:
        tick.job(every("2h"), name="etl")(sample)
    said = f"job already registered: {ids.job_id('etl')}: 'etl' is defined at {first}; "
    assert str(refusal.value) == said + "give one of the two another name with name="
    [job] = jobs_of(tick)
    assert job.tasks == ()
    Everytick().define("etl", every("1h"))


def test_a_refused_definition_leaves_its_name_free() -> None:
    """Nothing half-defined stays behind."""
    tick = Everytick()
    with pytest.raises(InvalidSchedule, match="never fires"):
        tick.define("etl", "0 0 30 2 *")
    with pytest.raises(InvalidPolicies, match=r"job 'etl': there is no policy 'overlp' \(did you mean 'overlap'\?\)"):
        tick.define("etl", every("1h"), overlp="skip")  # type: ignore[call-arg]
    assert tick.definitions == ()
    tick.define("etl", every("1h"))


def test_a_schedule_may_be_written_as_text() -> None:
    """C-39; the two schedules among the policies too."""
    tick = Everytick()
    job = tick.define("etl", "every 10s", stop_schedule="0 6 * * *", restart_schedule=None).job
    assert job.schedule == every("10s", tz="UTC")
    assert job.settings.stop_schedule == cron("0 6 * * *", tz="UTC")
    assert (job.settings.restart_schedule, job.settings.origin("restart_schedule")) == (None, Level.JOB)
    assert tick.define("later", every("1h"), stop_schedule=UNSET).job.settings.stop_schedule is None
    with pytest.raises(InvalidSchedule, match="schedule must be a schedule or its text"):
        tick.define("wrong", every("1h"), stop_schedule=5)  # type: ignore[arg-type]


def test_what_follows_a_completion_is_a_schedule_like_any_other() -> None:
    """C-07: it has no zone and is not silent."""
    assert str(Everytick(timezone="Europe/Berlin").define("poll", after_completion("10m")).job.schedule) == "after: 10m"


def test_a_definition_that_is_rarely_meant_is_warned_about_on_its_line() -> None:
    """execute_all with late_overlap skip runs only the oldest late instant: a warning, not a refusal."""
    tick = Everytick()
    with pytest.warns(DefinitionWarning, match="job 'etl': recovery execute_all with late_overlap skip") as caught:
        tick.define("etl", every("1h"), recovery="execute_all", late_overlap="skip")
    assert caught[0].filename == __file__
    with pytest.warns(DefinitionWarning) as caught:
        tick.job(every("1h"), recovery="execute_all", late_overlap="skip")(sample)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(tick.definitions) == 2


def test_what_was_written_is_read_once() -> None:
    """Whatever its author does with it afterwards."""
    mine: dict[str, object] = {"x": 1}
    etl = Everytick().define("etl", every("1h"), payload=mine, tags=(tag for tag in ("b", "a")))
    mine["x"] = 2
    etl.task(sample)
    assert etl.job.settings.tags == ("a", "b")
    assert etl.job.settings.payload is not None
    assert etl.job.settings.payload.read() == {"x": 1}


# ------------------------------------------------------------------------------------- the application's own word


def test_the_application_s_defaults_stand_between_the_built_in_and_the_job_s() -> None:
    """S0-076: each value with who set it."""
    tick = Everytick(defaults={"retry": {"max": 3, "interval": "30s"}, "overlap": "queue", "grace": UNSET})
    plain = tick.define("plain", every("1h")).job.settings
    own = tick.define("own", every("1h"), retry=None, overlap=UNSET).job.settings
    assert (plain.retry, plain.origin("retry")) == (Retry(3, "30s"), Level.APPLICATION)
    assert (own.retry, own.origin("retry")) == (None, Level.JOB)
    assert (own.overlap, own.origin("overlap")) == ("queue", Level.APPLICATION)
    assert own.origin("grace") is Level.DEFAULT


def test_a_policy_that_makes_no_sense_is_refused_on_the_line_that_wrote_it() -> None:
    """A job and the application's defaults alike; nothing of the job is kept."""
    tick = Everytick("memory://")
    unheard: Any = {"update_policy": "gently"}
    message = "is not known; instead: update_policy"
    with pytest.raises(InvalidPolicies, match=rf"job 'etl': update_policy .* {message}"):
        tick.define("etl", every("1h"), **unheard)
    with pytest.raises(InvalidPolicies, match=rf"application defaults: update_policy .* {message}"):
        Everytick(defaults=unheard)
    assert tick.definitions == ()


def test_defaults_that_make_no_sense_are_refused_when_the_application_is_made() -> None:
    """Before any job is defined."""
    with pytest.raises(InvalidPolicies, match=r"there is no policy 'retries' \(did you mean 'retry'\?\)"):
        Everytick(defaults={"retries": 3})
    with pytest.raises(InvalidPolicies, match="application defaults: grace '0s' must be at least 1s"):
        Everytick(defaults={"grace": "0s"})
    with pytest.raises(InvalidPolicies, match="stop_schedule is one job's own"):
        Everytick(defaults={"stop_schedule": "0 6 * * *"})


@pytest.mark.parametrize(
    ("application", "job", "name"),
    [
        ({}, {}, "UTC"),
        ({"timezone": "Europe/Berlin"}, {}, "Europe/Berlin"),
        ({"timezone": ZoneInfo("Asia/Tokyo")}, {}, "Asia/Tokyo"),
        ({"timezone": UTC}, {}, "UTC"),
        ({"defaults": {"timezone": "Asia/Tokyo"}}, {}, "Asia/Tokyo"),
        ({"timezone": "Asia/Tokyo", "defaults": {"timezone": "Asia/Tokyo"}}, {}, "Asia/Tokyo"),
        ({"timezone": "Europe/Berlin"}, {"timezone": "America/New_York"}, "America/New_York"),
        ({"timezone": "Europe/Berlin"}, {"timezone": UNSET}, "Europe/Berlin"),
    ],
)
def test_a_schedule_without_a_zone_takes_the_job_s_then_the_application_s(
    application: dict[str, Any], job: dict[str, Any], name: str
) -> None:
    """C-04, S1-041: resolved by name when the job is defined."""
    defined = Everytick(**application).define("etl", "0 9 * * *", **job).job
    assert defined.schedule == cron("0 9 * * *", tz=name)
    assert defined.settings.timezone == name


def test_a_schedule_keeps_its_own_zone() -> None:
    """C-04."""
    tick = Everytick(timezone="Europe/Berlin")
    assert tick.define("etl", cron("0 9 * * *", tz="Asia/Tokyo")).job.schedule == cron("0 9 * * *", tz="Asia/Tokyo")


def test_the_local_zone_is_looked_up_once_and_kept_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """C-04: a later change of the machine changes nothing."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    tick = Everytick(timezone="local")
    other = Everytick().define("own", "0 9 * * *", timezone="local")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert tick.define("etl", "0 9 * * *").job.settings.timezone == "Asia/Kolkata"
    assert other.job.schedule == cron("0 9 * * *", tz="Asia/Kolkata")


def test_a_zone_that_does_not_exist_is_refused_at_once() -> None:
    """S0-050: at construction, and for one job at its definition."""
    for make in (
        lambda: Everytick(timezone="Europe/Berln"),
        lambda: Everytick(defaults={"timezone": "Europe/Berln"}),
        lambda: Everytick().define("etl", every("1h"), timezone="Europe/Berln"),
    ):
        with pytest.raises(InvalidSchedule, match="not a known time zone; did you mean Europe/Berlin"):
            make()
    with pytest.raises(InvalidPolicies, match="timezone 'None' must be a name"):
        Everytick(defaults={"timezone": None})
    with pytest.raises(InvalidPolicies, match="timezone is given twice: 'Asia/Tokyo', and 'Europe/Berlin' in defaults"):
        Everytick(timezone="Asia/Tokyo", defaults={"timezone": "Europe/Berlin"})


def test_jobs_are_owned_by_the_application_of_that_name() -> None:
    """C-21: `code:<application name>`, by default the module that made it."""
    assert Everytick(name="shop").define("etl", every("1h")).job.owner == "code:shop"
    assert Everytick().define("etl", every("1h")).job.owner == f"code:{__name__}"
    assert Everytick().define("etl", every("1h"), owner="api").job.owner == "api"
    assert repr(Everytick(name="shop")) == "Everytick(name='shop', 0 jobs)"
    with pytest.raises(InvalidName, match="application name ''"):
        Everytick(name="")


def started(*arguments: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_script_goes_by_its_file_s_name_however_it_is_started(tmp_path: Path) -> None:
    """C-21: run as a script, as a module or imported, it is one application."""
    folder = tmp_path / "shop"
    folder.mkdir()
    text = "from everytick.app import Everytick\nname = Everytick().name\nprint(name)\n"
    for file in ("jobs.py", "__main__.py", "__init__.py"):
        (folder / file).write_text(text if file != "__init__.py" else "")
    (tmp_path / "jobs.py").write_text(text)
    assert started("jobs.py", cwd=tmp_path) == "jobs"
    assert started("-c", "import jobs", cwd=tmp_path) == "jobs"
    assert started("-m", "shop.jobs", cwd=tmp_path) == "shop.jobs"
    assert started("-m", "shop", cwd=tmp_path) == "shop"
    assert started("-c", text, cwd=tmp_path) == "__main__"


def test_a_definition_is_equal_whether_its_file_is_started_or_imported(tmp_path: Path) -> None:
    """B35: `python jobs.py` and `everytick run` do not give every job a new version in turn."""
    text = (
        "from everytick.app import Everytick\ntick = Everytick()\n@tick.job('@daily')\ndef work(): ...\n"
        "[target] = [task.target for task in tick.definitions[0].job.tasks]\nprint(target)\n"
    )
    (tmp_path / "jobs.py").write_text(text)
    (tmp_path / "my-jobs.py").write_text(text)

    assert started("jobs.py", cwd=tmp_path) == started("-c", "import jobs", cwd=tmp_path) == "jobs:work"
    assert started("-m", "jobs", cwd=tmp_path) == "jobs:work"
    assert started("my-jobs.py", cwd=tmp_path) == "__main__:work", "it can only be started"


def test_importing_the_application_loads_nothing_heavy() -> None:
    """Its import is part of every start: no loop, no zone tables, no crypto, no models."""
    code = (
        "import sys, everytick.app; "
        "print(sorted({'asyncio', 'zoneinfo', 'pydantic', 'sqlite3', 'hashlib', 'json', 'logging', 'difflib'} "
        "& set(sys.modules)))"
    )
    assert started("-I", "-c", code, cwd=Path.cwd()) == "[]"


def test_start_and_end_are_kept_as_instants() -> None:
    """S0-047: on any schedule."""
    job = Everytick().define("etl", every("1h"), start=NOON, end="2024-01-01T14:00:00+00:00").job
    assert job.bound(None).last_at(datetime(2030, 1, 1, tzinfo=UTC)) == NOON + timedelta(hours=2)
