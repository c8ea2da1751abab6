"""Times on the wire: ours means what the driver's own means."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everytick.stores.postgres.codecs import set_codecs

TIMES = [
    datetime(2026, 11, 15, 12, 34, 56, 789_012, tzinfo=UTC),
    datetime(1, 1, 2, tzinfo=UTC),
    datetime.max,  # noqa: DTZ901 - without end, to the driver
    datetime.min,  # noqa: DTZ901
    datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_998, tzinfo=UTC),
    datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=-9, minutes=-30))),
    datetime(2026, 3, 29, 2, 30),  # noqa: DTZ001 - what a task may give
    date(2026, 3, 29),
]


@pytest.mark.parametrize("time", TIMES, ids=str)
async def test_a_time_goes_in_and_out_as_the_drivers_own_would(db: Any, time: date) -> None:
    """A task's own statements, in its transaction, go the same way."""
    asked = "select $1::timestamptz, array[$1::timestamptz, null], $1::timestamptz::text"
    plain = tuple(await db.fetchrow(asked, time))
    await set_codecs(db)
    assert tuple(await db.fetchrow(asked, time)) == plain


async def test_more_times_than_are_remembered_are_read_all_the_same(db: Any) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    await set_codecs(db)
    asked = "select $1::timestamptz + n * interval '1 second' from generate_series(0, 9999) n order by n"
    for _ in range(2):
        found = [row[0] for row in await db.fetch(asked, begin)]
        assert found == [begin + timedelta(seconds=n) for n in range(10_000)]


async def test_two_times_that_only_their_fold_tells_apart_are_written_an_hour_apart(db: Any) -> None:
    """To Python they are equal, and what was written of the first must not be taken for the second."""
    await set_codecs(db)
    first = datetime(2026, 11, 1, 1, 30, tzinfo=ZoneInfo("America/New_York"))
    second = first.replace(fold=1)
    for _ in range(2):
        assert await db.fetchval("select $2::timestamptz - $1::timestamptz", first, second) == timedelta(hours=1)


async def test_more_times_than_are_remembered_are_written_all_the_same(db: Any) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    await set_codecs(db)
    times = [begin + timedelta(seconds=n) for n in range(10_000)]
    asked = "select array_agg(at order by n) from unnest($1::timestamptz[]) with ordinality t(at, n)"
    for _ in range(2):
        assert await db.fetchval(asked, times) == times
