"""The cascade: the origin of each setting, and the defaults."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everytick.domain.config import (
    POLICIES,
    UNSET,
    Effective,
    Level,
    Overrides,
    Settings,
    overrides,
)
from everytick.domain.payload import payload
from everytick.domain.policies import Failure, LateOverlap, Overlap, Recovery
from everytick.domain.retry import RETRY_ON_FAILURE, Retry
from everytick.errors import InvalidDuration, InvalidInstant, InvalidName, InvalidPayload, InvalidPolicies
from everytick.schedules.codec import schedule

WRITTEN: dict[str, list[Any]] = {
    "horizon": [None, 1, 1000, "30d"],
    "timezone": ["Europe/Berlin", "UTC"],
    "overlap": ["skip", "queue", "allow"],
    "max_concurrent": [None, 1, 7],
    "mode": ["parallel", "graph"],
    "failure": ["fail_fast", "continue", "retry_on_failure"],
    "retry": [None, {"max": 0, "interval": "0s"}, {"max": 3, "interval": "30s", "on": "timeout"}],
    "execution_timeout": [None, "30m"],
    "task_timeout": [None, "5s"],
    "recovery": ["execute_all", {"strategy": "bounded_window", "max_occurrences": 3, "max_duration": "6h"}],
    "late_overlap": ["queue", "skip", "allow"],
    "grace": ["1s", "2h"],
    "on_create": ["immediately", {"backfill_from": "2024-01-01T00:00:00Z"}],
    "on_orphan": ["fail", "resume"],
    "update_policy": ["immediate", "graceful", "graceful 3", "windowed 36h"],
    "priority": [0, -5, 9],
    "queue": ["default", "slow"],
    "spread": [None, "15m"],
    "jitter": [None, "30s"],
    "payload": [None, {"x": [1, None]}, "text", 0],
    "description": ["", "Nightly."],
    "tags": [[], ["a", "b"]],
    "enabled": [True, False],
    "start": [None, "2024-01-01T00:00:00Z"],
    "end": [None, "2034-01-01T00:00:00.5Z"],
    "skip_if_successful": [True, False],
    "depends_on": [None, "extract", ["a", {"job": "b", "within": "1h", "otherwise": "skip"}]],
    "stop_schedule": [None, schedule("0 6 * * *")],
    "restart_schedule": [None, schedule("every 1h")],
    "max_queued": [1, 1000],
    "late_cap": [1, 1000],
    "max_lost": [None, 0, 3],
    "on_store_outage": ["wait", "fire_local"],
    "retention": [{"success": None, "keep_last": 0}, {"failure": "1d"}],
    "on_failure": [None, {"webhook": {"url": "https://example.org/hook", "secret_env": "OPS_SECRET"}}],
    "on_success": [None, {"ping": "https://example.org/check"}],
    "on_breach": [None, {"ping": "https://example.org/check"}],
    "success_within": [None, "26h"],
    "start_by": [None, "5m"],
    "finish_by": [None, "1h", "06:00"],
    "on_recovery": [None, [{"command": ["logger", "{{ job }}"], "env": {"A": "b"}}, {"email": {"to": "a@b.org"}}]],
    "protected": [True, False, "no", "confirm", "two_people"],
    "runner": [None, "process"],
}
LEVELS = list(Level)[1:]


def written(level: Level) -> st.SearchStrategy[dict[str, Any]]:
    """What one level may write: any of its policies, some of them UNSET."""
    alike = Level.JOB if level is Level.TEMPLATE else level
    known = [key for key, policy in POLICIES.items() if alike in policy.levels]
    return st.fixed_dictionaries({}, optional={key: st.sampled_from([UNSET, *WRITTEN[key]]) for key in known})


cascades = st.tuples(*(written(level) for level in LEVELS))


def merged(given_levels: tuple[dict[str, Any], ...]) -> Settings:
    found = Settings()
    for level, what in zip(LEVELS, given_levels, strict=True):
        found = found.overridden_by(overrides(level, what))
    return found


@given(cascades)
def test_every_value_is_that_of_the_last_level_that_set_it(levels: tuple[dict[str, Any], ...]) -> None:
    """S0-076: unset never overrides, whatever None and zero say elsewhere; the origin tells who it was."""
    settings = merged(levels)
    for key, effective in settings.effective().items():
        setters = [level for level, what in zip(LEVELS, levels, strict=True) if what.get(key, UNSET) is not UNSET]
        assert effective.origin == settings.origin(key) == (setters[-1] if setters else Level.DEFAULT)
        if setters:
            said = levels[LEVELS.index(setters[-1])][key]
            assert effective.value == overrides(setters[-1], {key: said}).get(key)
        elif key not in ("late_overlap", "retry"):
            assert effective.value == getattr(Settings(), key)


@given(cascades, st.sampled_from(LEVELS))
def test_a_level_that_sets_nothing_changes_nothing(levels: tuple[dict[str, Any], ...], silent: Level) -> None:
    """S0-076: saying UNSET, and saying nothing, are the same."""
    emptied = tuple({} if level is silent else what for level, what in zip(LEVELS, levels, strict=True))
    unset = tuple(
        dict.fromkeys(what, UNSET) if level is silent else what for level, what in zip(LEVELS, levels, strict=True)
    )
    assert merged(emptied) == merged(unset)


@given(st.sampled_from(LEVELS).flatmap(lambda level: st.tuples(st.just(level), written(level))))
def test_a_level_stores_what_it_sets_and_reads_it_back_equal(what: tuple[Level, dict[str, Any]]) -> None:
    """S0-059: config is stored as diffs; schedules read back from their text."""
    level, said = what
    diff = overrides(level, said)
    assert set(diff) == {key for key, value in said.items() if value is not UNSET}
    data = json.loads(json.dumps(diff.as_data()))
    for key in ("stop_schedule", "restart_schedule"):
        if data.get(key) is not None:
            data[key] = schedule(data[key])
    assert overrides(level, data) == diff
    assert hash(overrides(level, data)) == hash(diff)


def test_the_defaults_are_the_contract_s() -> None:
    """S0-016, S0-017, S0-064, S0-065, S0-083, C-06, C-08, C-10, C-11."""
    settings = Settings()
    assert (settings.overlap, settings.mode, settings.failure) == ("skip", "sequential", "fail_fast")
    assert (settings.retry, settings.execution_timeout) == (None, None)
    assert settings.task_timeout == timedelta(minutes=5)
    assert settings.recovery == Recovery("execute_last")
    assert (settings.late_overlap, settings.on_create.begin, settings.on_orphan) == ("queue", "next", "fail")
    assert (settings.grace, settings.timezone) == (timedelta(seconds=60), "UTC")
    assert (settings.late_cap, settings.max_queued, settings.max_lost) == (1000, 1000, 3)
    assert (settings.max_concurrent, str(settings.update_policy)) == (None, "immediate")
    assert (settings.enabled, settings.queue, settings.priority) == (True, "default", 0)
    assert set(settings.effective().values()) >= {Effective(Overlap.SKIP, Level.DEFAULT)}


def test_unset_is_neither_none_nor_zero() -> None:
    """S0-076: a job that says "no retries" is not one that says nothing."""
    application = overrides(Level.APPLICATION, {"retry": Retry(3, "30s"), "max_lost": 5})
    says_nothing = Settings().overridden_by(application).overridden_by(overrides(Level.JOB, {"retry": UNSET}))
    says_none = (
        Settings().overridden_by(application).overridden_by(overrides(Level.JOB, {"retry": None, "max_lost": 0}))
    )

    assert (says_nothing.retry, says_nothing.origin("retry")) == (Retry(3, "30s"), Level.APPLICATION)
    assert (says_none.retry, says_none.origin("retry")) == (None, Level.JOB)
    assert (says_none.max_lost, says_none.origin("max_lost")) == (0, Level.JOB)
    assert overrides(Level.JOB, {"retry": None}).get("retry") is None
    assert overrides(Level.JOB, {}).get("retry") is UNSET
    assert repr(UNSET) == "UNSET"


def test_a_level_that_says_what_is_the_default_has_still_said_it() -> None:
    """The origin is who said it, not whether it changed anything."""
    settings = Settings().overridden_by(overrides(Level.JOB, {"overlap": "skip"}))
    assert settings.origin("overlap") is Level.JOB


def test_late_instants_run_at_once_where_all_do_unless_late_overlap_is_set() -> None:
    """C-12: queue, and allow where `overlap` is allow."""
    allow = Settings().overridden_by(overrides(Level.APPLICATION, {"overlap": "allow"}))
    assert (allow.late_overlap, allow.origin("late_overlap")) == (LateOverlap.ALLOW, Level.DEFAULT)
    back = allow.overridden_by(overrides(Level.JOB, {"overlap": "queue"}))
    assert back.late_overlap is LateOverlap.QUEUE
    said = allow.overridden_by(overrides(Level.JOB, {"late_overlap": "skip"}))
    assert (said.late_overlap, said.origin("late_overlap")) == (LateOverlap.SKIP, Level.JOB)


def test_retry_on_failure_brings_a_retry_policy_where_none_is_set() -> None:
    """S0-088: three times after 30 seconds; a level that set its own, or none, keeps it."""
    job = Settings().overridden_by(overrides(Level.JOB, {"failure": "retry_on_failure"}))
    assert (job.retry, job.origin("retry")) == (RETRY_ON_FAILURE, Level.DEFAULT)
    assert Retry(3, "30s") == RETRY_ON_FAILURE
    task = job.overridden_by(overrides(Level.TASK, {"failure": "continue"}))
    assert (task.failure, task.retry) == (Failure.CONTINUE, None)
    own = job.overridden_by(overrides(Level.TASK, {"retry": Retry(1, "1s")}))
    assert own.retry == Retry(1, "1s")
    none = Settings().overridden_by(overrides(Level.JOB, {"failure": "retry_on_failure", "retry": None}))
    assert none.retry is None


def test_levels_are_merged_in_their_order_or_not_at_all() -> None:
    """S0-076: a task cannot come before its job."""
    task = Settings().overridden_by(overrides(Level.TASK, {"task_timeout": "1s"}))
    with pytest.raises(AssertionError, match="job comes before task in the cascade"):
        task.overridden_by(overrides(Level.JOB, {"task_timeout": "2s"}))
    with pytest.raises(AssertionError, match="bananas is not a policy"):
        task.origin("bananas")


def test_a_level_may_speak_again() -> None:
    """A single occurrence may be amended twice; the last word counts."""
    once = Settings().overridden_by(overrides(Level.OCCURRENCE, {"priority": 1, "queue": "slow"}))
    twice = once.overridden_by(overrides(Level.OCCURRENCE, {"priority": 2}))
    assert (twice.priority, twice.queue) == (2, "slow")


def test_a_task_may_set_what_concerns_one_task() -> None:
    """S0-078: failure, retry and timeout, and by which runner."""
    known = {key for key, policy in POLICIES.items() if Level.TASK in policy.levels}
    assert known == {"failure", "retry", "task_timeout", "runner", "description"}


def test_a_job_may_set_everything_s0_asks_for() -> None:
    """S0-077."""
    known = {key for key, policy in POLICIES.items() if Level.JOB in policy.levels}
    assert known == set(POLICIES)
    assert known >= {"timezone", "overlap", "mode", "failure", "retry", "execution_timeout", "task_timeout", "recovery"}


def test_every_field_of_settings_is_a_policy() -> None:
    """The fields declare the policies: keywords, schema and pages follow from them (tests/tidy/test_generated.py)."""
    assert [*POLICIES, "origins"] == list(Settings.__annotations__)
    assert set(WRITTEN) == set(POLICIES)


def test_an_unknown_policy_comes_with_a_guess_or_with_all_there_are() -> None:
    """Unknown keys are errors with "did you mean"."""
    with pytest.raises(InvalidPolicies, match=r"job 'etl': there is no policy 'overlp' \(did you mean 'overlap'\?\)$"):
        overrides(Level.JOB, {"overlp": "skip"}, "etl")
    with pytest.raises(InvalidPolicies, match="there is no policy 'zebra'; instead: timezone, or overlap"):
        overrides(Level.JOB, {"zebra": 1})
    unnamed: dict[Any, object] = {5: 1}
    with pytest.raises(InvalidPolicies, match="there is no policy '5'"):
        overrides(Level.JOB, unnamed)


def test_a_policy_at_the_wrong_level_is_refused_with_where_it_belongs() -> None:
    """S0-078: a task has no overlap; an application has no stop schedule."""
    with pytest.raises(
        InvalidPolicies, match="overlap cannot be set for one task; instead: overlap of the job, or here"
    ):
        overrides(Level.TASK, {"overlap": "skip"}, "etl")
    with pytest.raises(InvalidPolicies, match="grace cannot be set for one occurrence"):
        overrides(Level.OCCURRENCE, {"grace": "1s"})
    with pytest.raises(InvalidPolicies, match="stop_schedule is one job's own"):
        overrides(Level.APPLICATION, {"stop_schedule": None})


@pytest.mark.parametrize("written", ["6:00", "24:00", "06:60", "06:00:30", "06:00 Europe/Berlin"])
def test_a_time_of_day_that_is_none_is_refused_with_what_to_write(written: str) -> None:
    with pytest.raises(InvalidPolicies, match=r"finish_by '.*' is no time of day; instead: finish_by=.06:00., or"):
        overrides(Level.JOB, {"finish_by": written}, "etl")


@pytest.mark.parametrize(
    ("what", "error", "text"),
    [
        (
            {"task_timeout": 5},
            InvalidDuration,
            r"write \"5s\", \"5m\" or \"5h\" \(read as task_timeout of task 'load' of job 'etl'\)",
        ),
        ({"start": "2024-01-01"}, InvalidInstant, r"\(read as start of task 'load' of job 'etl'\)"),
        ({"queue": ""}, InvalidName, r"queue name '': .*\(read as queue of task 'load' of job 'etl'\)"),
        ({"payload": float("nan")}, InvalidPayload, "payload of task 'load' of job 'etl' holds nan"),
        ({"grace": "0.9s"}, InvalidPolicies, "job 'etl': task 'load': grace '0.9s' must be at least 1s"),
    ],
)
def test_a_refusal_says_for_which_policy_of_which_job(what: dict[str, Any], error: type[Exception], text: str) -> None:
    """What was read, where, why, what to do."""
    with pytest.raises(error, match=text):
        overrides(Level.JOB, what, "etl", "task 'load'")


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ({"grace": "999ms"}, "grace '999ms' must be at least 1s"),
        ({"task_timeout": "0s"}, "task_timeout '0s' must be longer than zero; instead: task_timeout=None, for none"),
        ({"execution_timeout": "PT0S"}, "execution_timeout 'PT0S' must be longer than zero"),
        ({"spread": "0s"}, "spread '0s' must be longer than zero"),
        ({"max_concurrent": 0}, "max_concurrent '0' must be from 1 .*instead: enabled=False"),
        ({"max_queued": 0}, 'max_queued .0. must be from 1 .*instead: overlap="skip"'),
        ({"late_cap": 0}, 'late_cap .0. must be from 1 .*instead: recovery="mark_as_missed"'),
        ({"max_lost": -1}, "max_lost '-1' must be from 0 .*instead: max_lost=None"),
        ({"priority": 40_000}, "priority '40000' must be from -32,768 to 32,767"),
        ({"enabled": 1}, "enabled '1' must be true or false"),
        ({"overlap": None}, "overlap 'None' is not known"),
        ({"stop_schedule": "0 6 * * *"}, "stop_schedule '0 6 . . .' is not a schedule"),
    ],
)
def test_values_that_make_no_sense_are_refused(what: dict[str, Any], text: str) -> None:
    """Refused: `grace` under 1 s and every count or length of nothing."""
    with pytest.raises(InvalidPolicies, match=text):
        overrides(Level.JOB, what, "etl")


def test_values_are_read_into_their_types() -> None:
    """Durations are timedelta inside, instants aware UTC."""
    read = overrides(
        Level.JOB, {"task_timeout": "1m30s", "start": "2024-01-01T01:00:00+01:00", "tags": "x", "payload": {"a": 1}}
    )
    assert dict(read.items) == {
        "task_timeout": timedelta(seconds=90),
        "start": datetime(2024, 1, 1, tzinfo=UTC),
        "tags": ("x",),
        "payload": payload({"a": 1}),
    }
    assert Overrides(Level.JOB).as_data() == {}
