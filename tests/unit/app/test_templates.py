"""Templates in Python: a job names them and overrides what it wants; what is stored is whole."""

import pytest

from everytick import Everytick, Retry, every
from everytick.errors import DuplicateDefinition, InvalidPolicies
from everytick.testing import drain


def test_a_job_takes_a_template_over_and_overrides_it() -> None:
    """S1-039."""
    tick = Everytick("memory://", name="shop")
    tick.template("nightly", "0 3 * * *", description="At night", retry=Retry(3, "30s"), priority=1)

    @tick.job(template="nightly", priority=5)
    def report() -> None: ...

    job = report.definition.job
    assert (str(job.schedule), job.settings.priority, job.settings.description) == ("cron: 0 3 * * *; tz=UTC", 5, "")
    assert (str(job.settings.origin("retry")), str(job.settings.origin("priority"))) == ("template", "job")
    assert job.templates is not None
    assert dict(job.templates.parts) == {"retry": "nightly", "schedule": "nightly"}
    assert [template.name for template in tick.templates][-1] == "nightly"


def test_a_built_in_template_gives_a_schedule() -> None:
    """S1-039."""
    tick = Everytick("memory://", name="shop", timezone="Europe/Berlin")

    assert str(tick.define("a", template="daily-9-am").job.schedule) == "cron: 0 9 * * *; tz=Europe/Berlin"


def test_a_template_brings_tasks_which_own_tasks_replace() -> None:
    tick = Everytick("memory://", name="shop")
    nightly = tick.template("nightly", every("1h")).command("dump", "dump").http("tell", "https://example.org/")

    assert [task.name for task in tick.define("whole", template="nightly").job.tasks] == ["dump", "tell"]

    own = tick.define("own", template="nightly").command("other", "true").job
    assert [task.name for task in own.tasks] == ["other"]
    assert own.templates is not None
    assert own.templates.source("tasks") is None
    assert repr(nightly) == "TemplateDefinition(name='nightly', tasks=['dump', 'tell'])"


async def test_a_function_of_a_template_runs_in_each_job() -> None:
    tick = Everytick("memory://", name="shop", defaults={"on_create": "immediately"})
    called: list[str] = []
    hourly = tick.template("hourly-count", every("1h"))

    @hourly.task
    def count(of: str) -> None:
        called.append(of)

    tick.define("sales", template="hourly-count", payload={"of": "sales"})
    tick.define("stock", template="hourly-count", payload={"of": "stock"})
    await drain(tick)
    await tick.close()

    assert sorted(called) == ["sales", "stock"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda tick: tick.define("a", template="nightli"), r"no template 'nightli' \(did you mean 'nightly'\?\)"),
        (lambda tick: tick.define("a", template="bare"), "neither the job nor its template 'bare' has a schedule"),
        (lambda tick: tick.template("x", overlp="skip"), "no policy 'overlp'"),
        (lambda tick: tick.template("x", grace="0s"), "template 'x': grace"),
        (lambda tick: tick.define("a", template=[]), "must be a name, or a list of names"),
    ],
)
def test_a_mistake_is_refused_on_its_line(call: object, said: str) -> None:
    tick = Everytick("memory://", name="shop")
    tick.template("nightly", every("1h"))
    tick.template("bare", priority=3)

    with pytest.raises(InvalidPolicies, match=said):
        call(tick)  # type: ignore[operator]


def test_a_name_belongs_to_one_template_which_stays_as_its_first_job_found_it() -> None:
    tick = Everytick("memory://", name="shop")
    nightly = tick.template("nightly", every("1h")).command("a", "true")
    with pytest.raises(DuplicateDefinition, match="template 'nightly' is defined at"):
        tick.template("Nightly", every("2h"))
    with pytest.raises(DuplicateDefinition, match="has two tasks named 'a'"):
        nightly.command("a", "true")
    tick.define("sales", template="nightly")
    with pytest.raises(DuplicateDefinition, match="is used by job 'sales' already"):
        nightly.command("b", "true")


async def test_the_stored_definition_is_whole_and_an_update_keeps_what_it_does_not_name() -> None:
    async with Everytick("memory://", name="shop") as tick:
        tick.template("nightly", "0 3 * * *", retry=Retry(3, "30s"), priority=1).command("a", "true")
        await tick.apply([tick.define("sales", template="nightly", owner="team")])
        await tick.update("sales", "0 4 * * *", priority=7)
        job = (await tick.job("sales")).job

    assert (str(job.schedule), job.settings.priority, job.settings.retry) == (
        "cron: 0 4 * * *; tz=UTC",
        7,
        Retry(3, "30s"),
    )
    assert job.templates is not None
    assert job.templates.source("schedule") is None
    assert job.templates.source("retry") == "nightly"
