"""Ids against constants and against the standard library, which knows nothing of our code."""

import hashlib
import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from everytick.domain import ids

JOB = "job_31c3bed523fde97d087473a609b68b9d6c5fadd0"
TASK = "task_6887fcf3fdfdf2330f546c2b17b3fa0e55c3d996"
OCCURRENCE = "occ_72bb18be-33d4-5ec7-aee5-496f4c4b9d36"
RUN = "run_d2c68a69-0916-5fb4-8b88-ff93319c4cbe"
NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)

OCCURRENCES = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
RUNS = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
ATTEMPTS = uuid.UUID("6ba7b812-9dad-11d1-80b4-00c04fd430c8")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
instants = st.datetimes(timezones=st.just(UTC))


def test_a_job_id_is_the_sha1_of_its_name() -> None:
    """S0-012, C-25: no clock is mixed in."""
    assert ids.job_id("nightly-backup") == JOB


def test_a_second_job_of_a_renamed_job_s_old_name_counts_on() -> None:
    """C-25: the id made of the name is held by the renamed job."""
    assert ids.job_id("nightly-backup", 2) == "job_9e7c943da5363a12264ae8757d6fd9d9e025d656"


def test_a_task_id_is_the_sha1_of_job_and_name() -> None:
    """S0-012, C-25."""
    assert ids.task_id(JOB, "dump") == TASK


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (ids.occurrence_id(JOB, NEW_YEAR), OCCURRENCE),
        (
            ids.occurrence_id(JOB, NEW_YEAR + timedelta(milliseconds=250)),
            "occ_30789aad-0779-5a60-96de-603a964a2348",
        ),
        (ids.trigger_id(JOB, "order-17"), "occ_2db14d5d-5797-545d-af0d-a163c98119cd"),
        (ids.replay_id(JOB, "again"), "occ_502195a9-c31d-5afc-b830-9ea43f8f2646"),
        (ids.create_id(JOB, 1), "occ_ed51f522-cbb2-590e-9b68-36f2e7dd6349"),
        (ids.restart_id(JOB, NEW_YEAR), "occ_9b09edbf-732b-5e34-9615-5c5092fa5ffb"),
        (ids.backfill_again_id(JOB, "b1", NEW_YEAR), "occ_172dcd9a-36f3-5136-a6a3-029e77d17db5"),
        (ids.run_id(OCCURRENCE, TASK), RUN),
        (ids.attempt_id(RUN, 1), "attempt_8874d8c5-6767-535d-80c5-abc9c45b9f62"),
        (ids.attempt_id(RUN, 2), "attempt_25df8b99-e244-5e92-874c-9d8b73f5ac60"),
    ],
)
def test_every_kind_of_id_equals_its_vector(made: str, expected: str) -> None:
    """S0-008…011, C-24: constants computed once with another program."""
    assert made == expected


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), "0"),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "-1"),
        (datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC), "-1.500000"),
        (datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "0.000001"),
        (datetime(2024, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC), "1704067200.250000"),
        (datetime(2024, 1, 1, 5, 30, tzinfo=timezone(timedelta(hours=5, minutes=30))), "1704067200"),
        (datetime(1, 1, 1, tzinfo=UTC), "-62135596800"),
    ],
)
def test_seconds_are_the_floor_and_the_fraction_is_what_is_left(instant: datetime, text: str) -> None:
    """C-24: also before 1970, where seconds are negative."""
    assert ids.unix_text(instant) == text


def test_an_id_before_1970_equals_its_vector() -> None:
    """C-24: `<job id>:-1.500000`."""
    half_past = datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)
    assert ids.occurrence_id(JOB, half_past) == "occ_0d237549-7dbf-5ab8-8824-4949085cda67"


def test_a_naive_instant_has_no_id() -> None:
    """It names no moment, so no two nodes would agree."""
    with pytest.raises(TypeError):
        ids.occurrence_id(JOB, datetime(2024, 1, 1))  # noqa: DTZ001


@given(texts, texts, st.integers(1, 10**6), instants)
def test_ids_equal_what_the_standard_library_makes_of_the_same_text(
    first: str, second: str, number: int, instant: datetime
) -> None:
    """S1-011, S0-011, C-24, C-25: one SHA-1 sliced is still a version-5 UUID."""
    seconds, fraction = divmod((instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), 10**6)
    when = f"{seconds}.{fraction:06d}" if fraction else f"{seconds}"

    def occ(text: str) -> str:
        return f"occ_{uuid.uuid5(OCCURRENCES, f'{first}:{text}')}"

    assert ids.occurrence_id(first, instant) == occ(when)
    assert ids.trigger_id(first, second) == occ(f"trigger:{second}")
    assert ids.replay_id(first, second) == occ(f"replay:{second}")
    assert ids.create_id(first, number) == occ(f"create:{number}")
    assert ids.restart_id(first, instant) == occ(f"restart:{when}")
    assert ids.backfill_again_id(first, second, instant) == occ(f"backfill:{second}:{when}")
    assert ids.run_id(first, second) == f"run_{uuid.uuid5(RUNS, f'{first}:{second}')}"
    assert ids.attempt_id(first, number) == f"attempt_{uuid.uuid5(ATTEMPTS, f'{first}:{number}')}"
    assert ids.job_id(first) == f"job_{hashlib.sha1(f'job:{first}'.encode()).hexdigest()}"
    assert ids.task_id(first, second) == f"task_{hashlib.sha1(f'task:{first}:{second}'.encode()).hexdigest()}"


@given(instants, st.integers(-840, 840))
def test_an_instant_has_one_id_in_every_zone(instant: datetime, minutes: int) -> None:
    """S1-010, S0-008: the same moment on every node, whatever zone it was read in."""
    try:
        elsewhere = instant.astimezone(timezone(timedelta(minutes=minutes)))
    except OverflowError:
        reject()
    assert ids.occurrence_id(JOB, elsewhere) == ids.occurrence_id(JOB, instant)


@given(instants, instants)
def test_two_instants_never_share_their_text(one: datetime, other: datetime) -> None:
    """S0-008: a floor with a fraction beside it loses nothing."""
    assert (ids.unix_text(one) == ids.unix_text(other)) == (one == other)


@given(texts, texts, instants)
def test_two_jobs_share_no_id_at_one_instant(one: str, other: str, instant: datetime) -> None:
    """S1-011: the job is part of the text, so that keys of two schedules never collide at one second."""
    assume(one != other)

    assert ids.occurrence_id(ids.job_id(one), instant) != ids.occurrence_id(ids.job_id(other), instant)
