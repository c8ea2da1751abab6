"""Files of jobs: the same words as in Python mean the same, and every mistake is told at once with its place."""

from datetime import timedelta
from typing import Any

import pytest

from everytick import webhook
from everytick.app import Everytick
from everytick.domain.config import POLICIES, Level
from everytick.domain.dependencies import Dependency
from everytick.domain.job import Job
from everytick.domain.policies import LateOverlap, Mode, Overlap, Recovery, Strategy, bounded_window
from everytick.domain.retry import Retry
from everytick.runners.targets import read_target
from everytick.sources.job_files import FileJob, JobFile, read_jobs
from everytick.sources.yaml_models import Defaults, JobModel, TaskModel, json_schema

EXAMPLE = """
version: 1
defaults: {timezone: Europe/Berlin, retry: {max: 3, interval: 30s, factor: 2}}
jobs:
  nightly-backup:
    schedule: "30 2 * * 1-5"
    execution_timeout: 1h
    recovery: {strategy: bounded_window, max_duration: 6h}
    tasks:
      - {name: dump, command: "pg_dump --file=$EVERYTICK_SCRATCH/db.sql app"}
      - {name: ship, command: [rclone, copy, "{{ scratch }}/db.sql", "remote:backups"], retry: {max: 10, interval: 1m}}
      - {name: tidy, call: "myapp.jobs:tidy", failure: continue}
  month-end:
    schedule: "R12/2024-01-31T09:00:00[Europe/Berlin]/P1M"
    call: myapp.jobs:close_books
"""


def read(text: str) -> JobFile:
    return read_jobs(text.encode(), "jobs.yaml")


def one(body: str, before: str = "") -> FileJob:
    """The job `a` with this body, hourly and with something to do unless it says so itself."""
    schedule = "" if "schedule:" in body.replace("_schedule:", "") else 'schedule: "0 * * * *", '
    work = "" if any(word in body for word in ("tasks:", "call:", "command:", "http:")) else ", command: work"
    found = read(f"version: 1\n{before}\njobs:\n  a: {{{schedule}{body}{work}}}\n")
    assert [str(each) for each in found.mistakes] == []
    [job] = found.jobs
    return job


def mistakes(text: str) -> list[str]:
    found = read(text)
    assert found.jobs == ()
    return [str(each).removeprefix("jobs.yaml:") for each in found.mistakes]


# ------------------------------------------------------------------------------------------------------ what is read


def test_a_file_is_read_into_whole_definitions() -> None:
    backup, month_end = (each.job for each in read(EXAMPLE).jobs)

    assert (backup.name, backup.owner, backup.kind) == ("nightly-backup", "file", "flow")
    assert backup.settings.timezone == "Europe/Berlin"
    assert backup.settings.origin("retry") is Level.APPLICATION
    assert backup.settings.recovery == bounded_window(max_duration="6h")
    assert backup.task("ship").settings.retry == Retry(10, "1m")
    assert backup.task("dump").settings.retry == Retry(3, "30s", 2)
    assert [task.name for task in month_end.tasks] == ["month-end"]
    assert read_target(month_end.tasks[0].target) == read_target('{"call": "myapp.jobs:close_books"}')


def test_a_file_means_what_the_same_words_mean_in_python() -> None:
    tick = Everytick("memory://", name="shop", defaults={"retry": {"max": 3, "interval": "30s"}})
    defined = tick.define(
        "a",
        "30 2 * * *",
        owner="file",
        timezone="Europe/Berlin",
        overlap="queue",
        tags=["x", "y"],
        on_create={"backfill_from": "2026-01-01T00:00:00Z"},
        stop_schedule="0 6 * * *",
        spread="5m",
        payload={"n": [1, None]},
    )
    defined.command("one", ["echo", "{{ job }}"], env={"A": "b"}, cwd="/srv")
    defined.http("two", "https://example.org/", method="POST", after="one", headers={"X": "y"}, task_timeout="10s")

    found = one(
        'schedule: "30 2 * * *", timezone: Europe/Berlin, overlap: queue, tags: [y, x], '
        "on_create: {backfill_from: '2026-01-01T00:00:00Z'}, stop_schedule: '0 6 * * *', spread: 5m, "
        "payload: {n: [1, null]}, tasks: [{name: one, command: [echo, '{{ job }}'], env: {A: b}, cwd: /srv}, "
        "{name: two, http: {url: 'https://example.org/', method: POST, headers: {X: y}}, after: one, "
        "task_timeout: 10s}]",
        "defaults: {retry: {max: 3, interval: 30s}}",
    )

    assert _said(found.job) == _said(defined.job)


def _said(job: Job) -> object:
    tasks = [(task.name, task.after, task.settings, read_target(task.target)) for task in job.tasks]
    return job.name, job.owner, job.schedule, job.settings, job.overrides, job.application, tasks


def test_after_makes_a_graph() -> None:
    found = one("tasks: [{name: a, command: x}, {name: b, command: y, after: [a]}]")

    assert found.job.settings.mode is Mode.GRAPH
    assert found.job.task("b").after == ("a",)


def test_several_schedules_of_one_job_are_one_schedule() -> None:
    """S4-018; edge case 13: each names its own instants, and those of all are due."""
    found = one('schedule: ["0 9 * * *", "0 17 * * 5"]')

    assert str(found.job.schedule) == "(cron: 0 9 * * *; tz=UTC) | (cron: 0 17 * * 5; tz=UTC)"


@pytest.mark.parametrize(
    ("written", "strategy"),
    [
        ("6h", bounded_window(max_duration="6h")),
        ("0s", Recovery(Strategy.MARK_AS_MISSED)),
        ("0", Recovery(Strategy.MARK_AS_MISSED)),
    ],
)
def test_a_catchup_window_is_recovery_by_a_window(written: str, strategy: Recovery) -> None:
    """C-06, S4-031: a window of no length runs nothing that is late."""
    assert one(f"catchup_window: {written}").job.settings.recovery == strategy
    assert one("tags: []", f"defaults: {{catchup_window: {written}}}").job.settings.recovery == strategy


@pytest.mark.parametrize(
    ("written", "overlap", "late"),
    [("skip", Overlap.SKIP, LateOverlap.SKIP), ("all", Overlap.QUEUE, LateOverlap.QUEUE)],
)
def test_an_overlap_policy_is_overlap_for_live_and_late(written: str, overlap: Overlap, late: LateOverlap) -> None:
    """C-11, C-12, S4-016."""
    settings = one(f"overlap_policy: {written}").job.settings

    assert (settings.overlap, settings.late_overlap) == (overlap, late)


def test_a_suspended_job_is_marked_and_otherwise_as_any_other() -> None:
    """C-19."""
    assert one("suspended: true").suspended
    assert not one("suspended: false").suspended
    assert one("suspended: true").job == one("suspended: false").job


def test_an_anchor_may_be_used_for_what_jobs_share() -> None:
    found = read(
        "version: 1\njobs:\n"
        '  a: {schedule: "0 * * * *", command: x, retry: &usual {max: 3, interval: 5s}}\n'
        '  b: {schedule: "0 * * * *", command: x, retry: *usual}\n'
    )

    assert [each.job.settings.retry for each in found.jobs] == [Retry(3, "5s")] * 2


def test_stop_and_restart_schedules_are_read_in_the_zone_of_the_job() -> None:
    """S4-044."""
    settings = one("timezone: Europe/Berlin, stop_schedule: '0 6 * * *', restart_schedule: '0 12 * * *'").job.settings

    assert str(settings.stop_schedule) == "cron: 0 6 * * *; tz=Europe/Berlin"
    assert str(settings.restart_schedule) == "cron: 0 12 * * *; tz=Europe/Berlin"


def test_what_is_allowed_but_rarely_meant_is_a_warning() -> None:
    found = read(
        'version: 1\njobs:\n  a: {schedule: "0 * * * *", command: x, recovery: execute_all, late_overlap: skip}\n'
    )

    assert [each.job.name for each in found.jobs] == ["a"]
    [warning] = map(str, found.warnings)
    assert warning.startswith("jobs.yaml:3:3: warning: job 'a': recovery execute_all with late_overlap skip")


# --------------------------------------------------------------------------------------------------- what is refused

MISTAKEN = """version: 2
defaults: {timezone: Europe/Berln, retri: 1}
jobs:
  a b: {schedule: "* * * * *", call: "x:y"}
  bad:
    schedule: "61 * * * *"
    shedule: x
    retry: {max: x, interval: 5, foo: 1}
    overlap: skp
    catchup_window: 6x
    tasks:
      - {name: " x", http: {url: "ftp://x", method: X}, after: 5}
      - 3
      - {name: t, overlap: skip}
  five: 5
"""


def test_every_mistake_is_told_at_once_with_its_place() -> None:
    """S3-004 for names."""
    beginnings = [
        "1:10: version '2' is not known here: write version: 1",
        "2:22: timezone: 'Europe/Berln': tz is not a known time zone; did you mean Europe/Berlin",
        "2:36: defaults: unknown key 'retri' (did you mean 'retry'?)",
        "4:3: job name 'a b' must have 1 to 200 letters, digits, underscores or hyphens",
        '6:15: schedule: Invalid cron expression "61 * * * *": minute field must be 0 to 59, got 61',
        "7:5: job 'bad': unknown key 'shedule' (did you mean 'schedule'?)",
        "8:18: retry max 'x' must be a whole number",
        "8:31: retry interval: '5': has no unit",
        "8:39: retry 'foo' is not a key it has: max, interval",
        "9:14: overlap 'skp' is not known (did you mean 'skip'?)",
        "10:21: catchup_window: '6x': cannot be read",
        "12:16: name: task name ' x': begins or ends with a blank",
        "12:34: 'ftp://x' is neither http: nor https:",
        "12:53: 'X' is not a method",
        "12:64: after '5' must be a name or a list of names",
        "13:9: task 2 of job 'bad' must be a table of keys and values",
        "14:19: task 3 of job 'bad': unknown key 'overlap'; it may have name, after, call, command",
        "15:9: job 'five' must be a table of keys and values",
    ]

    found = mistakes(MISTAKEN)

    assert [said[: len(begin)] for said, begin in zip(found, beginnings, strict=True)] == beginnings


def test_what_a_job_lacks_is_told_beside_its_other_mistakes() -> None:
    """B7: every mistake at once, of different kinds and of one job."""
    found = mistakes(
        "version: 1\n"
        "jobs:\n"
        "  idle: {schedule: '61 * * * *'}\n"
        "  twice: {schedule: nope, command: 'true', tasks: [{name: x, command: 'true'}]}\n"
        "  wrong: {overlap: maybe}\n"
    )

    told = "\n".join(found)
    assert "3:3: job 'idle' has nothing to do" in told
    assert "3:20: schedule: Invalid cron expression" in told
    assert "4:27: a job with tasks does nothing itself: make this command a task" in told
    assert "5:3: job 'wrong' has no schedule: add `schedule:`; it has nothing to do: give it a call" in told


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("{}", "3:3: job 'a' has no schedule: add `schedule:`"),
        ("", "3:5: job 'a' is empty: write its keys in the lines below it, further to the right"),
        ("{schedule: 5, command: x}", "3:17: schedule: '5': text must be text like cron: 30 2 * * *"),
        ("{schedule: '@daily'}", "3:3: job 'a' has nothing to do: give it a call, a command, an http or a target"),
        ("{schedule: '@daily', tasks: []}", "3:3: job 'a' has nothing to do"),
        (
            "{schedule: '@daily', env: {A: b}}",
            "3:3: job 'a' has nothing to do: give it a call, a command, an http or a target",
        ),
        (
            "{schedule: '@daily', call: 'x:y', tasks: [{name: t, command: x}]}",
            "3:27: a job with tasks does nothing itself",
        ),
        ("{schedule: '@daily', call: 'x:y', command: x}", "3:3: job 'a' has call and command: give one of them"),
        ("{schedule: '@daily', call: 'x:y', cwd: /srv}", "3:40: cwd belongs to a command, and this is a call"),
        ("{schedule: '@daily', call: x}", "3:33: 'x' is not a function's place; instead: call: "),
        ("{schedule: '@daily', command: {a: b}}", "3:36: command '{'a': 'b'}' is neither shell text nor a list"),
        ("{schedule: '@daily', command: [sleep, 5]}", "3:36: '5' is not text, and command must be"),
        ("{schedule: '@daily', command: 'echo {{ job }}'}", "3:36: '{{ job }}' stands outside of a list of arguments"),
        ("{schedule: '@daily', command: [echo, '{{ jb }}']}", "3:36: '{{ jb }}' is not a template value (did you mean"),
        ("{schedule: '@daily', command: x, env: {A: 1}}", "3:44: '1' is not text, and env A must be"),
        ("{schedule: '@daily', http: 5}", "3:33: http '5' must be an address or a table with its url"),
        ("{schedule: '@daily', http: {method: GET}}", "3:33: 'None' is not text, and url must be"),
        ("{schedule: '@daily', http: {url: 'https://example.org', json: .nan}}", "3:68: http: a number without end"),
        ("{schedule: '@daily', command: x, timezone: local}", "3:49: timezone 'local' would be another one"),
        ("{schedule: '@daily', command: x, payload: .inf}", "3:48: payload: payload"),
        (
            "{schedule: '@daily', command: x, overlap_policy: al}",
            "3:55: overlap_policy 'al' is not known; instead: ove",
        ),
        (
            "{schedule: '@daily', command: x, overlap: skip, overlap_policy: all}",
            "3:54: overlap_policy is another word for overlap: give one of them",
        ),
        ("{schedule: '0 0 30 2 *', command: x}", "3:17: 'cron: 0 0 30 2 *; tz=UTC': schedule of job 'a' never fires"),
        ("{schedule: '@daily', tasks: [{name: t, command: x}, {name: t, command: y}]}", "3:3: job 'a' has two tasks"),
        ("{schedule: '@daily', tasks: [{name: t, command: x, after: u}]}", "3:3: task 't' comes after 'u', which is"),
        (
            "{schedule: '@daily', tasks: [{name: t}]}",
            "3:35: task 1 of job 'a' has nothing to do: give it a call, a command, an http or a target",
        ),
        ("{schedule: '@daily', tasks: [{command: x}]}", "3:35: task 1 of job 'a' has no name: add `name:`"),
        ("{schedule: '@daily', tasks: {name: t}}", "3:34: tasks must be a list"),
        ("{schedule: '@daily', command: x, start: 2026-02-01T00:00:00Z, end: 2026-01-01T00:00:00Z}", "3:3: end 2026"),
        (
            "{schedule: '@daily', command: x, overlap: allow, retry: {max: 1, interval: 1s, superseded_by_next: true}}",
            "3:3: superseded_by_next gives way to the next instant, and overlap allow runs both",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_a_way_out(job: str, said: str) -> None:
    [found] = mistakes(f"version: 1\njobs:\n  a: {job}\n")

    assert found[: len(said)] == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "1:1: the file must be a table of keys and values"),
        ("jobs: {}", "1:1: the file has no version: add `version: 1`"),
        ("version: 1", "1:1: the file has no jobs: add `jobs:`"),
        ("version: true\njobs: {}", "1:10: version 'True' is not known here"),
        ("version: 1\njobs:\n", "2:6: jobs is empty: write its keys in the lines below it, further to the right"),
        ("version: 1\ndefaults: 5\njobs: {}", "2:11: defaults must be a table of keys and values"),
        ("version: 1\njobs: {}\njbos: {}", "3:1: the file: unknown key 'jbos' (did you mean 'jobs'?)"),
        ("<<: {}\nversion: 1\njobs: {}", "1:1: << is not YAML 1.2: put what jobs have in common under defaults:"),
    ],
)
def test_a_file_of_another_shape_is_refused(text: str, said: str) -> None:
    assert mistakes(text)[0][: len(said)] == said


def test_a_key_that_comes_twice_hides_no_other_mistake() -> None:
    found = mistakes("version: 1\njobs: {a: {schedule: '@dayly', command: x}, a: {}}\n")

    assert [each.split(" ")[0] for each in found] == ["2:22:", "2:45:"]


def test_a_mistake_in_a_command_is_told_beside_those_of_its_job() -> None:
    found = mistakes("version: 1\njobs:\n  a: {schedule: x, tasks: [{name: t, command: [echo, '{{ jb }}'], cwd: 7}]}\n")

    assert [each.split(" ")[0] for each in found] == ["3:17:", "3:47:", "3:72:"]


def test_an_update_policy_is_one_text_in_a_file() -> None:
    """S0-120, C-23: for one job or for all; what makes no sense is told where it stands."""
    text = "version: 1\ndefaults: {update_policy: graceful 3}\njobs:\n  a: {schedule: '@daily', command: x}\n"
    assert str(one("priority: 1", "defaults: {update_policy: graceful 3}").job.settings.update_policy) == "graceful 3"
    [told] = mistakes(text.replace("graceful 3", "later"))
    assert told.startswith("2:27: update_policy 'later' is not known; instead: update_policy:")


def test_dependencies_are_read_in_every_form_and_refused_where_they_stand() -> None:
    """S1-042: a name, a table or a list of both; the one that makes no sense is named."""
    text = """\
version: 1
jobs:
  one: {schedule: "@daily", command: x, depends_on: extract}
  two:
    schedule: "@daily"
    command: x
    depends_on: [extract, {job: prices, within: 30m, otherwise: skip}]
"""
    known = {job.name: job.settings.depends_on for job in [each.job for each in read(text).jobs]}
    assert known["one"] == (Dependency("extract"),)
    assert known["two"] == (Dependency("extract"), Dependency("prices", "30m", "skip"))

    [wrong] = mistakes(text.replace("otherwise: skip", "otherwise: hope"))
    assert wrong.startswith("7:")
    assert "depends_on otherwise 'hope' is not known" in wrong


def test_promises_are_read_where_they_stand() -> None:
    """A18: a length of time or a time of day, also for all jobs of a file."""
    defaults = "defaults: {success_within: 26h}"
    settings = one("finish_by: '06:00', start_by: 5m", defaults).job.settings
    assert (str(settings.finish_by), settings.start_by) == ("06:00", timedelta(minutes=5))
    assert settings.success_within == timedelta(hours=26)
    [wrong] = mistakes("version: 1\njobs: {a: {schedule: '0 * * * *', command: x, finish_by: '6:00'}}\n")
    assert "finish_by '6:00' is no time of day; instead: finish_by: \"06:00\"" in wrong


def test_contradictions_are_told_together_with_mistakes_of_other_jobs() -> None:
    found = mistakes(
        "version: 1\ndefaults: {overlap: allow}\njobs:\n"
        "  a: {schedule: x, command: x}\n"
        "  b: {schedule: '@daily', command: x, retry: {max: 1, interval: 1s, superseded_by_next: true}}\n"
    )

    assert [each.split(" ")[0] for each in found] == ["4:17:", "5:3:"]


@pytest.mark.parametrize("name", ["a.b", "a/b", "ä", "a b", "", "a" * 201])
def test_names_in_files_are_plain(name: str) -> None:
    """S3-004."""
    [found] = mistakes(f"version: 1\njobs:\n  '{name}': {{schedule: '@daily', command: x}}\n")

    assert found.startswith("3:3: job name '")


def test_an_empty_table_of_jobs_is_a_file_without_jobs() -> None:
    assert read("version: 1\njobs: {}\n").mistakes == ()


# ----------------------------------------------------------------------------------------------------------- schema


def test_the_schema_names_every_policy_at_its_levels() -> None:
    schema = json_schema()
    levels = {"Defaults": Level.APPLICATION, "Job": Level.JOB, "Task": Level.TASK}

    for model, level in levels.items():
        known = set(schema["$defs"][model]["properties"])
        assert {key for key, policy in POLICIES.items() if level in policy.levels} <= known


def test_the_schema_carries_no_leftovers() -> None:
    def walk(part: Any) -> None:
        if isinstance(part, dict):
            assert part.get("default", 0) is not None
            for each in part.values():
                walk(each)

    walk(json_schema())


def test_the_schema_says_which_words_there_are() -> None:
    job = json_schema()["$defs"]["Job"]

    assert job["anyOf"] == [{"required": ["schedule"]}, {"required": ["template"]}]
    assert job["additionalProperties"] is False
    assert job["properties"]["overlap"]["enum"] == ["skip", "queue", "queue_latest", "allow", "cancel_running"]
    assert json_schema()["properties"]["version"] == {"const": 1}
    assert {"title", "json", "expect"} & set(json_schema()) == {"title"}


@pytest.mark.parametrize("model", [Defaults, JobModel, TaskModel])
def test_no_key_of_a_file_hides_one_of_the_models_own(model: Any) -> None:
    assert not {key for key in model.model_fields if key.startswith("model_")}


def test_durations_are_read_as_from_python() -> None:
    assert one("execution_timeout: PT90M").job.settings.execution_timeout == timedelta(minutes=90)


def test_a_file_names_who_is_told_of_failures() -> None:
    """A18: the same receivers as in Python; null takes back what the defaults say."""
    defaults = "defaults: {on_failure: {webhook: {url: 'https://example.org/hook', secret_env: OPS_SECRET}}}"
    usual = one("timezone: UTC", defaults).job.settings
    own = one("on_recovery: [{ping: 'https://example.org/x'}, {email: {to: ops@example.org}}]", defaults).job.settings

    assert usual.on_failure == own.on_failure == webhook("https://example.org/hook", secret_env="OPS_SECRET")
    assert own.on_recovery is not None
    assert own.on_recovery.as_data() == [{"ping": "https://example.org/x"}, {"email": {"to": "ops@example.org"}}]
    assert one("on_failure: null", defaults).job.settings.on_failure is None


def test_a_mistaken_receiver_is_told_with_its_place() -> None:
    """A18: in the words of a file."""
    [said] = mistakes(
        'version: 1\njobs:\n  a:\n    schedule: "0 * * * *"\n    command: work\n'
        "    on_failure: {webhook: {url: 'http://example.org/hook'}}\n"
    )

    assert said.startswith("6:17: on_failure: ")
    assert "is http:" in said
