"""Whatever a file of jobs can say, a store gives back: exported and applied elsewhere, definitions are the same."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from everytick import Context, Everytick, calendar, cron, every
from everytick.domain.config import Level, Overrides, overrides
from everytick.domain.job import Job, TaskDefinition, define_job, define_task, same_definition
from everytick.runners.targets import call_target, command_target, http_target
from everytick.schedules.codec import schedule
from everytick.schedules.combine import in_zone
from everytick.schedules.timezones import zone
from everytick.sources.exporting import export_jobs, meaning
from everytick.sources.job_files import read_jobs
from everytick.sources.syncing import sync_jobs
from everytick.stores.definitions import read_definition, write_definition
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=12)
NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,12}", fullmatch=True)
LENGTHS = st.integers(1, 10**7).map(lambda n: timedelta(milliseconds=n * 7))
INSTANTS = st.integers(0, 10**8).map(lambda n: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=n))
PAYLOADS = st.dictionaries(WORDS, st.integers(-(10**17), 10**17) | st.booleans() | WORDS | st.none(), max_size=3)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"])
TEXTS = st.sampled_from(
    [
        "30 2 * * 1-5", "H 3 * * *", "@daily; tz=Asia/Tokyo", "quartz: 0 0 12 L * ?", "every 90s", "every: P1M",
        "R5/2027-01-31T09:00:00/P1M", "once: 2027-07-01T09:00:00Z", "after: 10m", "posix: 0 0 1,15 * 1",
        "(0 9 * * *) | (0 17 * * 5; dst_fold=both)", "0 9 * * *; start=2026-05-01; end=2027-05-01",
        "every 10s; spread=5s",
    ]
)  # fmt: skip

MANY: dict[str, st.SearchStrategy[Any]] = {
    "timezone": ZONES,
    "overlap": st.sampled_from(["skip", "queue", "queue_latest", "allow"]),
    "failure": st.sampled_from(["fail_fast", "continue", "retry_on_failure"]),
    "retry": st.none()
    | st.builds(lambda n, wait: {"max": n, "interval": wait, "jitter": 0.5}, st.integers(0, 5), LENGTHS),
    "task_timeout": st.none() | LENGTHS,
    "recovery": st.sampled_from(["execute_all", "compressed", {"strategy": "bounded_window", "max_duration": "6h"}]),
    "grace": LENGTHS.map(lambda each: each + timedelta(seconds=1)),
    "on_create": st.just("next") | INSTANTS.map(lambda each: {"backfill_from": each.isoformat()}),
    "priority": st.integers(-5, 5),
    "queue": WORDS.map(str.strip).filter(bool),
    "spread": LENGTHS.map(lambda each: each + timedelta(seconds=2)),
    "jitter": st.none() | LENGTHS,
    "payload": st.none() | PAYLOADS,
    "tags": st.lists(NAMES, max_size=3, unique=True),
    "enabled": st.booleans(),
    "start": st.none() | st.just(datetime(2020, 1, 1, tzinfo=UTC)),
    "max_queued": st.integers(1, 9),
    "retention": st.just({"success": None, "failure": "7d"}),
}
OWN: dict[str, st.SearchStrategy[Any]] = {
    **MANY,
    "description": WORDS,
    "stop_schedule": st.none() | st.just(schedule("0 6 * * *; tz=Europe/Rome")),
}
TARGETS = st.one_of(
    WORDS.filter(lambda each: each.strip() and "{{" not in each).map(command_target),
    st.lists(WORDS, min_size=1, max_size=3)
    .filter(lambda each: "{{" not in "".join(each))
    .map(lambda words: command_target(words, env={"A": "1e3"}, cwd="/srv")),
    st.just(call_target("shop.jobs:run")),
    st.just(http_target("https://example.org/hook", method="POST", json={"a": [1, None]}, expect=[200], timeout="5s")),
)


def said(known: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict(known))


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    applications = [overrides(Level.APPLICATION, draw(said(MANY))), Overrides(Level.APPLICATION)]
    return [job for name in names if (job := _job(draw, name, draw(st.sampled_from(applications)))) is not None]


def _job(draw: st.DrawFn, name: str, application: Overrides) -> Job | None:
    try:
        return define_job(
            name,
            schedule(draw(TEXTS)),
            policies=draw(said(OWN)),
            tasks=list(_tasks(draw, name)),
            application=application,
            in_zone=lambda each, tz: in_zone(each, zone(tz)),
        )
    except Exception:  # noqa: BLE001, policies that contradict each other make no job
        return None


def _tasks(draw: st.DrawFn, job: str) -> list[TaskDefinition]:
    names = draw(st.just([job]) | st.lists(WORDS.map(str.strip).filter(bool), min_size=1, max_size=3, unique=True))
    own = {key: MANY[key] for key in ("failure", "retry", "task_timeout")}
    return [
        define_task(
            job,
            name,
            target=draw(TARGETS),
            after=names[:number] if draw(st.booleans()) else (),
            policies=draw(said(own)),
        )
        for number, name in enumerate(names)
    ]


@given(jobs())
def test_exported_and_applied_to_an_empty_store_definitions_are_the_same(found: list[Job]) -> None:
    exported = export_jobs(found, one_file=False)

    read = [job for text in exported.texts for job in _read(text)]
    assert exported.left == ()
    assert sorted(meaning(job)[0] for job in read) == sorted(job.id for job in found)
    for job in read:
        [original] = [each for each in found if each.id == job.id]
        assert meaning(job) == meaning(original)
        assert (job.overrides, job.application) == (original.overrides, original.application)


@given(jobs())
def test_in_one_file_they_still_mean_the_same(found: list[Job]) -> None:
    exported = export_jobs(found, one_file=True)

    assert exported.left == ()
    assert {job.id: meaning(job) for text in exported.texts for job in _read(text)} == {
        job.id: meaning(job) for job in found
    }
    assert len(exported.texts) <= 1


@given(jobs(), jobs(), st.data())
def test_definitions_are_the_same_if_and_only_if_their_texts_are(
    some: list[Job], others: list[Job], data: st.DataObject
) -> None:
    """S0-059: the memory store and every draft compare definitions, the SQL stores compare their texts."""
    assume(some or others)
    known = [read_definition(write_definition(job), id=job.id, version=3) for job in (*some, *others)]
    one, other = data.draw(st.tuples(st.sampled_from([*some, *others, *known]), st.sampled_from(known)))
    renamed = replace(other, name=one.name)

    assert same_definition(one, renamed) == (write_definition(one) == write_definition(renamed))
    assert all(same_definition(job, kept) for job, kept in zip((*some, *others), known, strict=True))


def _read(text: str) -> list[Job]:
    read = read_jobs(text.encode(), "f")
    assert read.mistakes == ()
    return [each.job for each in read.jobs]


async def test_a_store_that_takes_what_another_gave_holds_the_same_text() -> None:
    """Through two stores, to the last letter of what they keep, but for the owner."""
    text = """
version: 1
defaults: {timezone: Europe/Berlin, retry: {max: 3, interval: 30s, factor: 2}}
jobs:
  nightly:
    schedule: ["30 2 * * 1-5", "H 4 * * 0"]
    spread: 10m
    tasks:
      - {name: dump, command: "pg_dump app", env: {PGUSER: me}}
      - {name: tell, http: {url: "https://example.org/", headers: {X: {env: TOKEN}}}, after: [dump], retry: null}
"""
    first, second = MemoryStore(ManualClock()), MemoryStore(ManualClock())
    await sync_jobs(first, {each.job.name: each for each in read_jobs(text.encode(), "f").jobs})
    exported = export_jobs([each.job for each in await first.list()], one_file=True)
    await sync_jobs(second, {each.job.name: each for each in read_jobs(exported.texts[0].encode(), "f").jobs})

    assert [write_definition(each.job) for each in await second.list()] == [
        write_definition(each.job) for each in await first.list()
    ]


def test_what_no_file_can_hold_is_left_with_the_reason() -> None:
    app = Everytick("memory://", name="shop")
    closed = calendar("closed", dates=["2026-12-24"])

    @app.job(every("10s"))
    def plain(ctx: Context) -> None: ...

    holidays = define_job("holidays", cron("0 9 * * *").excluding(closed), tasks=[_true("holidays")])
    odd = define_job("odd name", every("10s"), tasks=[_true("odd name")])
    exported = export_jobs([app.definitions[0].job, holidays, odd], one_file=True)

    assert exported.texts == ()
    assert [each.name for each in exported.left] == ["plain", "holidays", "odd name"]
    assert "--as-calls writes a call" in exported.left[0].why
    assert "closed must be given beside the text" in exported.left[1].why
    assert "must have 1 to 200 letters" in exported.left[2].why


def _true(job: str) -> TaskDefinition:
    return define_task(job, job, target=command_target(["true"]))


def test_functions_can_be_written_as_calls() -> None:
    job = define_job("plain", every("10s", tz="UTC"), tasks=[define_task("plain", "plain", target="shop.jobs:plain")])
    exported = export_jobs([job], one_file=True, as_calls=True)

    [read] = _read(exported.texts[0])
    assert read.tasks[0].target == call_target("shop.jobs:plain")
