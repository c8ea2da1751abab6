"""The year: where each day stands, and the mark that its worst outcome has."""

from datetime import date, timedelta

import pytest

from everytick.domain.statuses import OccurrenceStatus
from everytick.web.pictures.year import WEEKS, YearDay, day_words, months_of, place_of, year_days, year_grid, year_words
from everytick.web.words import length

S = OccurrenceStatus
MINUTE = timedelta(minutes=1)
TODAY = date(2026, 10, 23)


def day(month: int, number: int, took: timedelta | None = None, **counts: int) -> YearDay:
    return YearDay(date(2026, month, number), tuple((S(word), many) for word, many in counts.items()), took)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (date(2026, 1, 1), (0, 3)),
        (date(2026, 1, 4), (0, 6)),
        (date(2026, 1, 5), (1, 0)),
        (date(2026, 12, 31), (52, 3)),
        (date(2028, 12, 31), (52, 6)),
    ],
)
def test_a_column_is_a_week_and_a_row_a_weekday(given: date, place: tuple[int, int]) -> None:
    assert place_of(given) == place


def test_no_year_needs_more_columns_than_there_are() -> None:
    for year in range(1970, 2100):
        for first_weekday in range(7):
            assert place_of(date(year, 12, 31), first_weekday)[0] < WEEKS


def test_every_day_of_the_year_is_drawn_once() -> None:
    days = year_days(2028, [])
    drawn = year_grid(days, TODAY, length, "A year.")

    assert len(days) == 366
    assert drawn.count("<rect") == 366
    assert 'aria-label="A year."' in drawn


@pytest.mark.parametrize(
    ("counts", "worst"),
    [
        ({"completed": 5, "failed": 1, "missed": 3}, S.FAILED),
        ({"completed": 5, "missed": 1}, S.MISSED),
        ({"completed": 5, "completed_with_errors": 1}, S.COMPLETED_WITH_ERRORS),
        ({"completed": 5, "skipped": 9}, S.COMPLETED),
        ({"skipped": 9}, S.SKIPPED),
        ({}, None),
    ],
)
def test_the_worst_outcome_of_a_day_counts(counts: dict[str, int], worst: S | None) -> None:
    assert day(3, 4, None, **counts).worst is worst


@pytest.mark.parametrize(
    ("status", "box", "mark"),
    [
        ("failed", "m-wrong", "cut"),
        ("failed_stale", "o-wrong", "x-wrong"),
        ("missed", "h0", "o-look"),
        ("skipped", "h0", "m-lag"),
        ("canceled", "o-rest", "o-rest"),
        ("completed_with_errors", "m-look", "cut"),
    ],
)
def test_each_outcome_has_a_shape_of_its_own(status: str, box: str, mark: str) -> None:
    drawn = year_grid([day(3, 4, None, **{status: 2})], TODAY, length, "")

    assert f'<rect class="{box}"' in drawn
    assert f'class="{mark}"' in drawn.split("</g>")[1]
    assert f"<title>Wed 4 Mar: 2 {status}</title>" in drawn


def test_the_dot_of_a_good_day_grows_with_its_length() -> None:
    drawn = year_grid([day(3, 4, 4 * MINUTE, completed=1), day(3, 5, 16 * MINUTE, completed=1)], TODAY, length, "")

    assert 'r="2.8"' in drawn
    assert 'r="4.6"' in drawn


def test_days_to_come_are_hollow_and_today_is_outlined() -> None:
    coming = YearDay(date(2026, 10, 24), planned=True)
    past = YearDay(date(2026, 10, 22), planned=True)
    drawn = year_grid([past, YearDay(TODAY), coming], TODAY, length, "")

    assert drawn.count('class="m-ghost"') == 1
    assert drawn.count('class="cellnow"') == 1
    assert "<title>Sat 24 Oct: planned</title>" in drawn


def test_the_second_copy_is_by_length_in_five_steps_around_the_median() -> None:
    days = [day(3, number, number * MINUTE, completed=1) for number in range(1, 16)]
    drawn = year_grid(days, TODAY, length, "", by_length=True)

    assert [drawn.count(f'class="h{step}"') for step in range(6)] == [0, 4, 2, 4, 5, 0]
    long = year_grid([*days[4:11], day(4, 1, 19 * MINUTE, completed=1)], TODAY, length, "", by_length=True)
    assert long.count('class="h5"') == 1
    assert "m-wrong" not in year_grid([day(3, 4, failed=1)], TODAY, length, "", by_length=True)


def test_a_steady_job_has_the_middle_tone() -> None:
    days = [day(3, number, MINUTE * (1 + number / 100), completed=1) for number in range(1, 11)]
    drawn = year_grid(days, TODAY, length, "", by_length=True)

    assert [drawn.count(f'class="h{step}"') for step in range(6)] == [0, 0, 0, 10, 0, 0]


def test_the_months_are_the_table_behind_it() -> None:
    days = year_days(
        2026,
        [day(3, 4, 2 * MINUTE, completed=3), day(3, 5, 6 * MINUTE, completed=1, failed=2), day(5, 1, skipped=4)],
    )
    march, may = months_of(days)

    assert (march.name, march.total, march.took, march.worst_day) == ("Mar", 6, 3 * MINUTE, date(2026, 3, 5))
    assert march.counts == {S.COMPLETED: 4, S.FAILED: 2}
    assert (may.name, may.took, may.worst_day) == ("May", None, None)
    assert year_words(days) == "2 days with a run, 1 with a failure, 0 with a miss"


def test_a_day_says_what_it_was() -> None:
    assert day_words(day(3, 4, 2 * MINUTE, completed=1200, failed=1), length) == (
        "Wed 4 Mar: 1,200 completed, 1 failed; 2 min"
    )
    assert day_words(YearDay(TODAY), length) == "Fri 23 Oct: nothing"
