"""The registry of a beat: what it accepts, what it refuses in which words, and when a schedule runs next."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from everytick.beat import (
    DuplicateSchedule,
    InvalidRegistration,
    InvalidTimezone,
    Priority,
    RegistrationFailed,
    Registry,
    Schedule,
)
from everytick.errors import DefinitionError, InvalidInstant, NotFound


def hourly(**changes: Any) -> Schedule:
    return Schedule(**{"id": "cleanup_hourly", "cron": "0 * * * *", "job": "cleanup_old_data", **changes})


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def test_a_schedule_has_the_fields_of_the_contract_and_their_defaults() -> None:
    """S3-002: only id, cron and job must be given."""
    kept = Registry().register(hourly())

    assert (kept.payload, kept.priority, kept.timezone, kept.enabled, kept.description) == (
        None, Priority.NORMAL, "UTC", True, "",
    )  # fmt: skip


def test_a_payload_is_a_value_or_json_in_bytes() -> None:
    """S3-002: and what is registered does not change with the author's own value."""
    registry, given = Registry(), {"max_age_days": 30}
    registry.register(hourly(payload=given))
    registry.register(hourly(id="bytes", payload=b'{"max_age_days": 30}'))
    given["max_age_days"] = 1

    contents = [
        entry.payload.read() for id in ("cleanup_hourly", "bytes") if (entry := registry.entry(id)) and entry.payload
    ]
    assert contents == [{"max_age_days": 30}, {"max_age_days": 30}]


@pytest.mark.parametrize("id", ["a", "cleanup_hourly", "Weekly-Report", "7", "_", "-", "x" * 200])
def test_ids_of_letters_digits_underscores_and_hyphens_are_accepted(id: str) -> None:
    """S3-004."""
    assert Registry().register(hourly(id=id)).id == id


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"id": ""}, "ID must not be empty: give letters, digits, underscores and hyphens"),
        ({"id": None}, "ID must not be empty: give letters, digits, underscores and hyphens"),
        ({"id": "a b"}, "ID 'a b' has ' ' at position 2: use letters, digits, underscores and hyphens"),
        ({"id": "a:b"}, "ID 'a:b' has ':' at position 2: use letters, digits, underscores and hyphens"),
        ({"id": "täglich"}, "ID 'täglich' has 'ä' at position 2: use letters, digits, underscores and hyphens"),
        ({"id": "cleanup\n"}, r"ID 'cleanup\n' has '\\n' at position 8: use letters, digits, underscores and hyphens"),
        ({"id": "x" * 201}, "ID has 201 characters: at most 200 are allowed"),
        ({"job": ""}, "Job must not be empty: give the name by which workers know it"),
        ({"job": " "}, "Job must not be empty: give the name by which workers know it"),
        ({"job": 7}, "Job must be text, got 7"),
        ({"timezone": 7}, "Timezone must be text, got 7"),
        ({"timezone": "Nowhere/City"}, "invalid timezone Nowhere/City: it is not a known time zone"),
        ({"timezone": "Berlin"}, "invalid timezone Berlin: it is not a known time zone; did you mean Europe/Berlin?"),
        ({"timezone": "../etc"}, "invalid timezone ../etc: it is not an IANA time zone name like Europe/Berlin"),
        ({"timezone": "posix:UTC0"}, "Timezone must be a name like Europe/Berlin, got posix:UTC0"),
        ({"priority": "hgih"}, "Priority must be high, normal, low, got hgih (did you mean 'high'?)"),
        ({"payload": b"{"}, "Payload must be JSON: Expecting property name"),
        ({"payload": {1, 2}}, "payload holds a set, which is not JSON: use text, numbers, lists or dicts"),
        ({"enabled": "yes"}, "Enabled must be True or False, got yes"),
        ({"description": 7}, "Description must be text, got 7"),
        ({"cron": ""}, 'Invalid cron expression "": '),
        ({"cron": "61 * * * *"}, 'Invalid cron expression "61 * * * *": minute field '),
        ({"cron": "0 0 12 * * *"}, 'Invalid cron expression "0 0 12 * * *": '),
        ({"cron": "0 0 30 2 *"}, ""),
    ],
)  # fmt: skip
def test_what_is_mistaken_is_refused_with_its_cause(
    changes: dict[str, Any], cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S3-004, S3-007, S3-022, S3-032: at registration, before anything is kept, and without a log line."""
    registry = Registry()

    with pytest.raises(InvalidRegistration) as refused:
        registry.register(hourly(**changes))

    assert str(refused.value).startswith(f"invalid schedule: {cause}")
    assert isinstance(refused.value, DefinitionError)
    assert registry.list() == ()
    assert caplog.records == []


def test_an_id_is_registered_once() -> None:
    """S3-004, S3-007: and the first one stays."""
    registry = Registry()
    first = registry.register(hourly())

    with pytest.raises(DuplicateSchedule, match=r"^schedule with ID cleanup_hourly already exists$"):
        registry.register(hourly(cron="@daily"))

    assert registry.get("cleanup_hourly") is first


def test_the_id_may_stand_before_the_schedule() -> None:
    """S3-006: the form with two arguments."""
    registry = Registry()
    registry.register("cleanup", Schedule(cron="0 * * * *", job="cleanup_old_data"))
    registry.must_register("again", hourly(id="again"))

    assert [schedule.id for schedule in registry.list()] == ["cleanup", "again"]
    with pytest.raises(InvalidRegistration, match="ID is given twice and differs: other and cleanup_hourly"):
        registry.register("other", hourly())
    wrong: Any = "cleanup"
    with pytest.raises(InvalidRegistration, match="expected a Schedule, got cleanup"):
        registry.register(wrong)
    with pytest.raises(InvalidRegistration, match="expected an ID and a Schedule"):
        registry.register("cleanup", wrong)


def test_get_list_and_next_run_answer_without_changing_anything() -> None:
    """S3-006: list keeps the order, and a list that was returned stays as it was."""
    registry = Registry()
    registry.register(hourly())
    before = registry.list()
    registry.register(hourly(id="other"))

    assert [schedule.id for schedule in before] == ["cleanup_hourly"]
    assert [schedule.id for schedule in registry.list()] == ["cleanup_hourly", "other"]
    assert registry.get("nobody") is None
    assert registry.next_run("other", at("2025-11-10T15:00:00Z")) == at("2025-11-10T16:00:00Z")
    assert registry.next_run(hourly(id="unknown"), at("2025-11-10T15:00:01Z")) == at("2025-11-10T16:00:00Z")
    with pytest.raises(NotFound, match="there is no schedule 'nobody'"):
        registry.next_run("nobody", at("2025-11-10T15:00:00Z"))
    with pytest.raises(InvalidInstant):
        registry.next_run("other", datetime(2025, 11, 10))  # noqa: DTZ001, it is refused


def test_must_register_ends_the_program_with_a_sentence() -> None:
    """S3-007."""
    with pytest.raises(RegistrationFailed) as failed:
        Registry().must_register(hourly(job=""))
    assert str(failed.value).startswith("failed to register schedule: invalid schedule: Job must not be empty")

    program = "from everytick.beat import *; Registry().must_register(Schedule(id='a', cron='?', job='b'))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.startswith("failed to register schedule: invalid schedule: Invalid cron expression")
    assert "Traceback" not in ended.stderr


def test_many_threads_register_and_read_at_once() -> None:
    """S3-006: safe for concurrent use; of those that want one id, one gets it."""
    registry = Registry()

    def register(number: int) -> bool:
        registry.list()
        try:
            registry.register(hourly(id=f"schedule-{number % 250}", description=str(number)))
        except DuplicateSchedule:
            return False
        return registry.get(f"schedule-{number % 250}") is not None

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(register, range(1_000)))

    assert outcomes.count(True) == 250
    assert len(registry) == len(registry.list()) == 250


def test_a_disabled_schedule_stays_registered() -> None:
    """S3-005."""
    registry = Registry()
    registry.register(hourly(enabled=False))

    assert [schedule.enabled for schedule in registry.list()] == [False]


def test_the_next_run_is_evaluated_in_the_zone_of_the_schedule() -> None:
    """S3-008, S3-029: 02:00 in New York, before and after the clocks change, and in the night they skip it."""
    registry = Registry()
    registry.register(hourly(id="daily_backup", cron="0 2 * * *", timezone="America/New_York"))

    runs = [at("2026-03-05T12:00:00Z")]
    for _ in range(5):
        found = registry.next_run("daily_backup", runs[-1])
        assert found is not None
        runs.append(found)

    assert [f"{run:%d %H:%M}" for run in runs[1:]] == ["06 07:00", "07 07:00", "08 07:00", "09 06:00", "10 06:00"]


def test_an_unknown_zone_is_named_with_its_cause() -> None:
    """S3-008: when the next run is asked for."""
    with pytest.raises(InvalidTimezone, match=r"^invalid timezone Nowhere/City: it is not a known time zone$"):
        Registry().next_run(hourly(timezone="Nowhere/City"), at("2026-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("expression", "after", "following"),
    [
        ("*/15 * * * *", "2026-01-31T23:50:00Z", "2026-02-01T00:00:00Z"),
        ("0 9 * * 1", "2026-01-01T00:00:00Z", "2026-01-05T09:00:00Z"),
        ("0 0 1 * *", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("0 0 31 * *", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 * * 0", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("30 2 * * 1-5", "2026-01-02T03:00:00Z", "2026-01-05T02:30:00Z"),
        ("0 6,18 * * *", "2026-01-01T06:00:00Z", "2026-01-01T18:00:00Z"),
        ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        ("@daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("@monthly", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"),
        ("@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    ],
)
def test_the_expressions_of_the_contract_name_the_times_it_says(expression: str, after: str, following: str) -> None:
    """S3-009, S3-010, S3-033: steps, ranges, lists, Sunday as 0, descriptors; month ends and leap days."""
    assert Registry().next_run(hourly(cron=expression), at(after)) == at(following)
