"""The strip: sixty squares and six hollow ones, with long runs of what did not run folded to one."""

from everytick.domain.statuses import OccurrenceStatus
from everytick.web.pictures.small_strip import small_strip
from everytick.web.pictures.strip import PLANNED, Square, columns_of, folded, strip, strip_words


def squares(*words: str) -> list[Square]:
    return [Square(word, f"{word} {number}") for number, word in enumerate(words)]


def test_the_newest_sixty_end_at_now_and_six_planned_follow_it() -> None:
    columns = columns_of(squares(*["completed"] * 80), squares(*[PLANNED] * 9))

    assert (len(columns.past), len(columns.planned)) == (60, 6)
    assert columns.past[-1].index == 79
    assert columns.past[-1].at < columns.now < columns.planned[0].at
    assert [round(column.at * 66, 6) for column in columns.past[:2]] == [0.5, 1.5]


def test_a_young_job_has_its_few_squares_beside_now() -> None:
    columns = columns_of(squares("failed", "completed"), [])

    assert [round(column.at * 66, 6) for column in columns.past] == [58.5, 59.5]


def test_more_than_five_instants_that_did_not_run_are_one_square_with_their_number() -> None:
    short, long = folded(squares(*["missed"] * 5)), folded(squares("completed", *["skipped"] * 6, "failed"))

    assert [square.count for _, square in short] == [1] * 5
    assert [(index, square.count) for index, square in long] == [(0, 1), (6, 6), (7, 1)]
    assert "6 instants skipped" in long[1][1].title


def test_a_span_that_comes_with_its_count_is_folded_as_it_is() -> None:
    columns = columns_of([Square("missed", "no node was up", count=212), *squares("completed")], [])
    drawn = strip(columns)

    assert "×212" in drawn
    assert columns.past[0].width == 3 * columns.past[1].width
    assert "no node was up" in drawn


def test_every_status_has_a_shape_of_its_own() -> None:
    drawn = {
        status: strip(columns_of([Square(status)], []), label="").partition("nowline")[0] for status in OccurrenceStatus
    }

    assert len(set(drawn.values())) == len(OccurrenceStatus)


def test_it_says_in_one_sentence_what_it_shows() -> None:
    columns = columns_of(squares("completed", "completed", "failed"), squares(PLANNED))

    assert strip_words(columns) == "The last 3 occurrences: 2 completed, 1 failed; 1 planned"
    assert strip_words(columns_of([], [])) == "The last 0 occurrences: none yet"


def test_a_text_from_outside_is_escaped_and_nothing_is_styled_in_place() -> None:
    drawn = strip(columns_of([Square("failed", '<script>"x"</script>', 'javascript:"')], squares(PLANNED)))

    assert "<script>" not in drawn
    assert "style=" not in drawn
    assert "&lt;script&gt;" in drawn


def test_a_job_in_a_list_that_always_fails_is_drawn_small_and_its_latest_failures_say_why() -> None:
    """Forty of them once made a page of 140 KB, and the design allows 120."""
    picture = str(small_strip(squares(*["failed"] * 30), []))

    assert len(picture) < 1_700
    assert picture.count("<title>") == 4
    assert "<title>failed 29</title>" in picture
    assert picture.count("v10h-6z") == 26
    assert "30 failed" in picture
