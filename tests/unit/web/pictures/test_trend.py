"""The trend: how long each took, and what is usual."""

from collections.abc import Sequence
from datetime import timedelta

from everytick.web.pictures.strip import PLANNED, Square, columns_of
from everytick.web.pictures.trend import Took, bands, dates, outliers, trend
from everytick.web.pictures.usual import step_of, usual
from everytick.web.words import length

MINUTE = timedelta(minutes=1)


def test_the_band_is_made_of_twenty_good_runs_before() -> None:
    lengths = [MINUTE * (100 if number < 5 else 10) for number in range(30)]
    found = bands(["completed"] * 30, lengths)

    assert found[2] is None
    assert found[24].p95 > 10 * MINUTE  # type: ignore[union-attr]
    assert found[25].p95 == 10 * MINUTE  # type: ignore[union-attr]
    assert len(found) == 31


def test_failed_runs_are_kept_out_of_the_band() -> None:
    found = bands(["completed"] * 10 + ["failed"] * 10, [MINUTE] * 10 + [MINUTE * 60] * 10)

    assert found[-1] == usual([MINUTE] * 3)


def test_at_most_two_outliers_are_named_the_largest() -> None:
    lengths = [10 * MINUTE] * 20 + [16 * MINUTE, 40 * MINUTE, 1 * MINUTE, 12 * MINUTE]
    statuses = ["completed"] * 24
    found = outliers(statuses, lengths, bands(statuses, lengths))

    assert [each.index for each in found] == [22, 21]


def test_a_usual_run_is_no_outlier() -> None:
    lengths = [10 * MINUTE, 11 * MINUTE, 9 * MINUTE] * 8
    statuses = ["completed"] * 24

    assert outliers(statuses, lengths, bands(statuses, lengths)) == []


def drawn(lengths: Sequence[timedelta | None], statuses: list[str]) -> str:
    columns = columns_of([Square(status) for status in statuses], [Square(PLANNED)] * 6)
    return str(trend(columns, [Took(each) for each in lengths], length))


def test_a_failed_run_is_a_cross_and_the_band_goes_on_past_now() -> None:
    picture = drawn([10 * MINUTE] * 20 + [21 * MINUTE], ["completed"] * 20 + ["failed"])

    assert picture.count('class="m-wrong"') == 1
    assert "21 min, failed" in picture
    assert "p50 10 min" in picture
    assert " 100.00 " in picture.partition('class="band"')[2]


def test_the_words_of_an_outlier_stand_before_every_stem_and_before_the_line_of_now() -> None:
    """They were drawn with their own run, so that the stems of later runs went through them."""
    picture = drawn([10 * MINUTE] * 20 + [40 * MINUTE] + [10 * MINUTE] * 5, ["completed"] * 26)

    assert picture.index("40 min: 4.0") > picture.rindex('class="stem"')
    assert picture.index("p50 10 min") > picture.index('class="nowline"')


def test_a_usual_length_of_two_units_has_a_line_of_its_own() -> None:
    """Beside `p50` it ran over the line of now."""
    picture = drawn([7 * MINUTE + timedelta(seconds=12)] * 20, ["completed"] * 20)

    assert ">p50<" in picture
    assert ">7 min 12 s<" in picture


def test_one_run_that_hung_for_a_day_does_not_flatten_the_others() -> None:
    picture = drawn([10 * MINUTE] * 20 + [24 * 60 * MINUTE], ["completed"] * 21)

    assert ">10 min<" in picture
    assert "1 d: 144 × usual" in picture


def test_a_job_without_a_run_and_one_of_no_length_are_drawn() -> None:
    assert 'class="band"' not in drawn([None], ["missed"])
    assert "svg" in drawn([timedelta(0)] * 30, ["completed"] * 30)
    assert "svg" in drawn([], [])


def test_dates_stand_below_every_seventh_column_once_each() -> None:
    columns = columns_of([Square("completed")] * 60, [])
    picture = str(dates(columns, [Took(MINUTE, f"day {number // 10}") for number in range(60)]))

    assert picture.count("<text") == 7
    assert ">now<" in picture


def test_steps_are_those_that_people_count_in() -> None:
    assert step_of(21 * MINUTE, 4) == 10 * MINUTE
    assert step_of(timedelta(seconds=40), 4) == timedelta(seconds=10)
    assert step_of(timedelta(days=36500), 4) >= timedelta(days=9125)
