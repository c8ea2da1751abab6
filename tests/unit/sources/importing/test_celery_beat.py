"""Entries of a beat_schedule, one rule at a time; the files are read and never run."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from everytick.schedules.codec import schedule
from everytick.sources.importing.celery_beat import read_beat
from everytick.sources.importing.findings import Findings, UnreadableSource
from tests.unit.sources.importing.kept import sample


def imported(entry: str, before: str = "", **options: str) -> Findings:
    return read_beat(f"{before}\nbeat_schedule = {{'x': {entry}}}".encode(), "c.py", **options)  # type: ignore[arg-type]


def parts(entry: str, before: str = "", **options: str) -> dict[str, object]:
    found = imported(entry, before, **options)
    assert found.jobs, [str(each) for each in found.left]
    return dict(found.jobs[0].parts)


def when(schedule: str, before: str = "") -> object:
    return parts(f"{{'task': 'a.b', 'schedule': {schedule}}}", before)["schedule"]


def why(entry: str, before: str = "") -> str:
    found = imported(entry, before)
    assert not found.jobs
    return found.left[-1].why


@pytest.mark.parametrize(
    ("written", "schedule"),
    [
        ("crontab()", "* * * * *"),
        ("crontab(minute=0, hour='*/3')", "0 */3 * * *"),
        ("celery.schedules.crontab(0, 0, day_of_month='2')", "0 0 2 * *"),
        ("crontab(0, 7, 1)", "0 7 * * 1"),
        ("crontab(minute='0', hour='22-2')", "0 0-2,22,23 * * *"),
        ("crontab(minute='0', hour='0', day_of_week='sun', day_of_month='1-7')", "0 0 1-7 * 0; day_match=and"),
        ("crontab(minute='0', hour='0', day_of_month='2-30/2', month_of_year='*/3')", "0 0 2-30/2 */3 *"),
        ("crontab(minute={0, 30}, hour=[1, 2, 3])", "0,30 1-3 * * *"),
        ("crontab(minute='5,10', hour='8', day_of_week='mon-fri')", "5,10 8 * * 1-5"),
        ("crontab(minute='0', hour='0', month_of_year='jan,jul', day_of_month='1')", "0 0 1 1,7 *"),
        ("30", "every 30s"),
        ("60 * 5.0", "every 5m"),
        ("timedelta(days=1, hours=-12)", "every 12h"),
        ("datetime.timedelta(1)", "every 24h"),
        ("schedule(run_every=timedelta(minutes=10))", "every 10m"),
        ("schedule(15.5)", "every 15.5s"),
        ("NIGHT", "0 2 * * *"),
    ],
)
def test_schedules_are_carried_over(written: str, schedule: str) -> None:
    assert when(written, "NIGHT = crontab(minute=0, hour=2)") == schedule


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("{'task': 'a.b', 'schedule': solar('sunset', 1, 2)}", "follows the sun"),
        ("{'task': 'a.b', 'schedule': crontab(nowfun=now)}", "nowfun"),
        ("{'task': 'a.b', 'schedule': crontab(minute=61)}", "minute '61' is not within 0 to 59"),
        ("{'task': 'a.b', 'schedule': crontab(minute='5/10')}", "cannot be read"),
        ("{'task': 'a.b', 'schedule': crontab(secound=1)}", "crontab has no 'secound'"),
        ("{'task': 'a.b', 'schedule': every_hour()}", "'every_hour()' is known only when the file is run"),
        ("{'task': 'a.b', 'schedule': SETTINGS['x']}", "known only when the file is run"),
        ("{'task': 'a.b', 'schedule': 0}", "has no length"),
        ("{'task': 'a.b', 'schedule': 1e300 * 1e8}", "has no length"),
        ("{'task': 'a.b', 'schedule': timedelta(days=1e300)}", "longer than can be kept"),
        ("{'task': 'a.b', 'schedule': schedule(run_every=delta(5))}", "'delta(5)' is known only when the file is run"),
        ("{'task': 'a.b', 'schedule': crontab(minute='" + "9" * 5000 + "')}", "cannot be read"),
        ("{'task': 'a.b', 'schedule': lambda: " + "-" * 900 + "1}", "known only when the file is run"),
        ("{'task': 'a.b'}", "neither a number of seconds"),
        ("{'schedule': 5}", "names no task"),
        ("{'task': 'bare', 'schedule': 5}", "--send-with APP"),
        ("{'task': 'a.b', 'schedule': 5, 'args': (1,)}", "write them as kwargs"),
        ("{'task': 'a.b', 'schedule': 5, 'kwargs': {'x': b'1'}}", "values that JSON has not"),
        ("{**BASE, 'schedule': 5}", "'**BASE' is known only when the file is run"),
        ("make_entry('a')", "'make_entry('a')' is known only when the file is run"),
        ("5", "it is no table with a name"),
    ],
)
def test_what_cannot_be_known_or_said_leaves_the_entry(entry: str, reason: str) -> None:
    assert reason in why(entry)


@pytest.mark.parametrize(
    "source",
    [
        "app.conf.beat_schedule = {T}",
        "app.conf.update(beat_schedule={T}, timezone='Europe/Oslo')",
        "CELERY_BEAT_SCHEDULE: dict = {T}",
        "class Config:\n    CELERYBEAT_SCHEDULE = {T}",
        "beat_schedule['x'] = {'task': 'a.b', 'schedule': 5}",
        "ENTRIES = {T}\napp.conf.beat_schedule = ENTRIES",
        "app.conf.beat_schedule = {}\napp.conf.beat_schedule.update({T})",
        "CELERY = {'beat_schedule': {T}, 'timezone': 'Europe/Oslo'}",
    ],
)
def test_the_table_is_found_wherever_people_write_it(source: str) -> None:
    found = read_beat(source.replace("{T}", "{'x': {'task': 'a.b', 'schedule': 5}}").encode(), "c.py")

    assert [job.name for job in found.jobs] == ["x"]
    assert found.defaults["timezone"] == ("Europe/Oslo" if "Oslo" in source else "UTC")


def test_a_name_that_is_set_twice_is_not_known() -> None:
    assert "'N' is known only" in why("{'task': 'a.b', 'schedule': N}", "N = 5\nif x:\n    N = 6")


def test_nothing_of_a_python_file_is_run(tmp_path: Path) -> None:
    victim = tmp_path / "ran"
    source = f"import pathlib\npathlib.Path({str(victim)!r}).touch()\n"

    found = imported(f"{{'task': 'a.b', 'schedule': pathlib.Path({str(victim)!r}).touch()}}", source)

    assert not found.jobs
    assert not victim.exists()


def test_a_task_can_be_sent_as_beat_does() -> None:
    entry = (
        "{'task': 'add', 'schedule': 5, 'args': (1, 'x'), 'kwargs': {'y': None}, 'options': {'queue': 'q', 'link': 1}}"
    )
    found = imported(entry, send_with="shop")

    assert dict(found.jobs[0].parts)["command"] == [
        "celery", "-A", "shop", "call", "add", "--args", '[1, "x"]', "--kwargs", '{"y": null}', "--queue", "q",
    ]  # fmt: skip
    assert any(each.what == "option link of 'x'" for each in found.left)


def test_periodic_tasks_of_a_program_are_listed() -> None:
    found = read_beat(b"def setup(sender, **kwargs):\n    sender.add_periodic_task(10.0, test.s('x'))\n", "c.py")

    assert [str(each).split(": not")[0] for each in found.left] == ["c.py:2: add_periodic_task"]


def test_a_zone_is_known_by_its_name_or_it_is_said_that_it_is_not() -> None:
    entry = "{'task': 'a.b', 'schedule': crontab(minute=0, hour=9)}"

    found = imported(entry, "TIME_ZONE = 'Europe/Rome'\nCELERY_TIMEZONE = TIME_ZONE", send_with="p")
    assert (found.defaults["timezone"], found.left) == ("Europe/Rome", [])
    found = imported(entry, "timezone = os.environ['TZ']", send_with="p")
    assert (found.defaults["timezone"], [each.what for each in found.left]) == ("UTC", ["timezone"])


def test_without_utc_and_a_zone_it_is_said_that_the_zone_is_missing() -> None:
    found = imported("{'task': 'a.b', 'schedule': crontab(hour=1)}", "enable_utc = False")

    assert "enable_utc = False" in [each.what for each in found.left]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", "c:1: is neither JSON nor Python"),
        ("x = 1", "c:1: there is no beat_schedule in it"),
        ('{"a": ', "c:1: is not JSON"),
        ('{"a": 1}\n{', "c:1: is not JSON: Extra data: line 1"),
    ],
)
def test_what_is_no_such_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnreadableSource) as refused:
        read_beat(text.encode(), "c")

    assert str(refused.value).startswith(message)


CRONTAB = json.loads(sample("celery_crontab.json"))
"""What Celery 5.7.0 makes of these fields, and the ten times that its crontab estimates after one moment."""


def findings_of_field(case: dict[str, Any]) -> Findings:
    """Import one entry whose crontab has this field, at midnight."""
    others = {"minute": 0, "hour": 0, case["field"]: case["text"]}
    entry = {"x": {"task": "a.b", "schedule": {"crontab": others}}}
    return read_beat(json.dumps(entry).encode(), "c.json")


def field_and_text(case: dict[str, Any]) -> str:
    return f"{case['field']}={case['text']}"


@pytest.mark.parametrize("case", [case for case in CRONTAB["fields"] if case["numbers"] is None], ids=field_and_text)
def test_a_field_that_celery_refuses_is_not_imported(case: dict[str, Any]) -> None:
    assert findings_of_field(case).jobs == []


@pytest.mark.parametrize("case", [case for case in CRONTAB["fields"] if case["numbers"]], ids=field_and_text)
def test_a_field_means_the_numbers_that_celery_reads_in_it(case: dict[str, Any]) -> None:
    found = findings_of_field(case)
    named = schedule(f"{dict(found.jobs[0].parts)['schedule']}; tz=UTC")
    instants = named.instants(datetime(2027, 12, 31, 23, 59, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC))
    parts_of: Any = {
        "minute": lambda each: each.minute,
        "hour": lambda each: each.hour,
        "day_of_month": lambda each: each.day,
        "month_of_year": lambda each: each.month,
        "day_of_week": lambda each: each.isoweekday() % 7,
    }
    part = parts_of[case["field"]]
    assert sorted({part(each) for each in instants if each.year == 2028}) == case["numbers"]


@pytest.mark.parametrize("case", CRONTAB["instants"], ids=lambda case: str(case["crontab"]))
def test_a_crontab_names_the_times_that_celery_names(case: dict[str, Any]) -> None:
    entry = {"x": {"task": "a.b", "schedule": {"crontab": case["crontab"]}}}
    [job] = read_beat(json.dumps(entry).encode(), "c.json").jobs

    base = datetime.fromisoformat(case["base"])
    found = schedule(f"{dict(job.parts)['schedule']}; tz=UTC").instants(base, base + timedelta(days=4000), 10)

    assert found == [datetime.fromisoformat(each) for each in case["instants"]]


def test_what_differs_from_celery_when_the_clocks_change_is_listed() -> None:
    entry = "{'task': 'a.b', 'schedule': crontab(minute=30, hour=2)}"

    assert not imported(entry, send_with="p").left
    assert not imported(entry.replace("hour=2", "hour=9"), "timezone = 'Europe/Berlin'", send_with="p").left
    [only] = imported(entry, "timezone = 'Europe/Berlin'", send_with="p").left
    assert only.what == "the nights when the clocks change of 'x'"


def test_it_is_said_once_that_the_names_of_tasks_were_taken_for_places() -> None:
    entry = "{'task': 'a.b', 'schedule': crontab(hour=2)}, 'y': {'task': 'a.c', 'schedule': crontab(hour=3)}"

    assert [each.what for each in imported(entry).left] == ["the names of the tasks"]


LOCAL = """\
  beat_schedule = {}
  beat_schedule['x'] = {'task': 'a.b', 'schedule': crontab()}
  app.conf.update(beat_schedule=beat_schedule)
"""


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("app.conf.beat_schedule.update({'x': {'task': 'a.b', 'schedule': crontab()}})", ["x"]),
        ("CELERY_BEAT_SCHEDULE |= {'x': {'task': 'a.b', 'schedule': crontab()}}", ["x"]),
        ("app.config.from_mapping(CELERY=dict(beat_schedule={'x': {'task': 'a.b', 'schedule': crontab()}}))", ["x"]),
        ("beat_schedule = dict(x={'task': 'a.b', 'schedule': crontab()})", ["x"]),
        ("ALL = {'x': {'task': 'a.b', 'schedule': crontab()}}\nbeat_schedule = dict(ALL)", ["x"]),
        ("class C:\n  CELERY = {'beat_schedule': {'x': {'task': 'a.b', 'schedule': crontab()}}}", ["x"]),
        (f"def f(app):\n{LOCAL}", ["x"]),
    ],
)
def test_a_table_is_found_in_all_the_places_where_people_write_it(text: str, names: list[str]) -> None:
    found = read_beat(text.encode(), "c.py", send_with="p")

    assert ([job.name for job in found.jobs], found.left) == (names, [])


def test_an_entry_under_a_condition_is_suspended_and_the_condition_listed() -> None:
    text = """
beat_schedule = {}
if not settings.DEBUG:
    if REPORTS:
        beat_schedule["report"] = {"task": "a.b", "schedule": crontab(minute=0)}
    else:
        beat_schedule["report"] = {"task": "a.c", "schedule": crontab(minute=0)}
try:
    beat_schedule["always"] = {"task": "a.d", "schedule": crontab(minute=0)}
except KeyError:
    beat_schedule["seldom"] = {"task": "a.e", "schedule": crontab(minute=0)}
"""
    found = read_beat(text.encode(), "c.py", send_with="p")

    assert [(job.name, dict(job.parts).get("suspended")) for job in found.jobs] == [
        ("report", True), ("report-2", True), ("always", None), ("seldom", True),
    ]  # fmt: skip
    assert [each.what for each in found.left if "condition" in each.what] == [
        "the condition 'if not settings.DEBUG and if REPORTS' of 'report'",
        "the condition 'if not settings.DEBUG and not if REPORTS' of 'report'",
        "the condition 'except' of 'seldom'",
    ]


def test_what_is_set_again_counts_the_last_time_and_the_first_is_listed() -> None:
    text = """
beat_schedule = {"x": {"task": "a.b", "schedule": 5}}
beat_schedule["x"] = {"task": "a.b", "schedule": 7}
class Other:
    beat_schedule = {"x": {"task": "a.b", "schedule": 9}}
"""
    found = read_beat(text.encode(), "c.py", send_with="p")

    assert [dict(job.parts)["schedule"] for job in found.jobs] == ["every 7s", "every 9s"]
    assert [each.why for each in found.left if each.line == 2] == [
        "not imported: it is set again in line 3, which counts"
    ]


def test_a_constant_of_a_class_is_known_unless_it_is_set_elsewhere() -> None:
    queues, entry = (
        "class Queues:\n  SLOW = 'slow'\n",
        "{'task': 'a.b', 'schedule': 5, 'options': {'queue': Queues.SLOW}}",
    )

    assert parts(entry, queues)["queue"] == "slow"
    found = imported(entry, f"{queues}Queues.SLOW = name()", send_with="p")
    assert "option queue of 'x'" in [each.what for each in found.left]


def test_an_option_that_only_a_run_would_tell_is_listed_and_the_entry_kept() -> None:
    entry = "{'task': 'a.b', 'schedule': crontab(), 'options': {'queue': settings.Q, 'expires': int(60 * 1.5)}}"

    found = imported(entry, send_with="p")

    assert dict(found.jobs[0].parts)["command"] == ["celery", "-A", "p", "call", "a.b", "--expires", "90"]
    assert [(each.what, each.why) for each in found.left] == [
        ("option queue of 'x'", "'settings.Q' is known only when the file is run")
    ]


def test_a_chain_of_conditions_may_be_long() -> None:
    chain = "if a:\n  pass\n" + "".join(f"elif b{n}:\n  pass\n" for n in range(900))
    found = read_beat(f"{chain}beat_schedule = {{'x': {{'task': 'a.b', 'schedule': 5}}}}".encode(), "c.py")

    assert [job.name for job in found.jobs] == ["x"]
