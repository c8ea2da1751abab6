"""`H` and `spread`: a job's own numbers, the same on every node, and no answer before the job is known."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everytick import cron, schedule
from everytick.errors import UnboundSchedule
from tests.oracle.cron import by_dates, hashed, read

JOBS = st.text("0123456789abcdef", min_size=4, max_size=8).map(lambda tail: f"job_{tail}")
HASHED = [
    "H H * * *",
    "H * * * *",
    "H H(2-4) * * *",
    "H/15 * * * *",
    "H(10-20)/5 H * * *",
    "H H H * *",
    "H H(0-7) H(1-28) * *",
    "0 0 1 H *",
    "H H * * H",
    "H(0-29) */2 * * 1-5",
    "H H/6 * * *",
    "H H * H(3-5) H(1-5)",
    "H(0-5)/30 H * * *",
]
NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(HASHED), JOBS)
def test_a_hashed_field_takes_its_number_from_the_job(text: str, job_id: str) -> None:
    """C-01: SHA-1 of `<job id>:<field name>`, first 8 bytes, modulo the size of the range."""
    rule, through = read(text, job_id=job_id), NOON + timedelta(days=20)

    found = cron(text).bound(job_id, None).instants(NOON, through)

    assert list(found) == by_dates(rule, UTC, NOON, through)


def test_the_numbers_of_a_known_job_are_these() -> None:
    """C-01: minute 11 and hour 5 for this job, from the output of `sha1sum`."""
    bound = cron("H H * * *").bound("job_42", None)

    assert bound.next_after(NOON) == datetime(2025, 1, 2, 5, 11, tzinfo=UTC)


@pytest.mark.parametrize("text", HASHED)
def test_an_unbound_hash_refuses_to_answer(text: str) -> None:
    """C-01: a number that no job has chosen would differ from the job's own later."""
    unbound = cron(text)

    with pytest.raises(UnboundSchedule):
        unbound.next_after(NOON)
    with pytest.raises(UnboundSchedule):
        unbound.last_at(NOON)
    with pytest.raises(UnboundSchedule):
        unbound.instants(NOON, NOON + timedelta(days=1))


@given(st.sampled_from(HASHED), JOBS)
def test_binding_leaves_the_schedule_itself_unbound(text: str, job_id: str) -> None:
    """Schedules are values: the one stored is the one every job binds for itself."""
    unbound = cron(text)

    unbound.bound(job_id, None)

    assert unbound == cron(text)


def test_a_schedule_without_a_hash_is_the_same_for_every_job() -> None:
    plain = cron("0 5 * * *")

    assert plain.bound("job_1", None) == plain


@given(JOBS)
def test_spread_delays_every_instant_by_one_and_the_same_part_of_its_length(job_id: str) -> None:
    """The same number on every node; the rhythm of the schedule is kept."""
    plain, spread = cron("0 */2 * * *"), schedule("cron: 0 */2 * * *; spread=15m").bound(job_id, None)
    delay, reach = timedelta(seconds=hashed(job_id, "spread", 900)), timedelta(days=2)

    moved = [at + delay for at in plain.instants(NOON - delay, NOON + reach - delay)]

    assert list(spread.instants(NOON, NOON + reach)) == moved


def test_an_unbound_spread_refuses_to_answer() -> None:
    with pytest.raises(UnboundSchedule):
        schedule("cron: 0 */2 * * *; spread=15m").next_after(NOON)
