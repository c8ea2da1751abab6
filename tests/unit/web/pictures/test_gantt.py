"""The Gantt: rows, waits, and long idle stretches folded to a break."""

import re
from datetime import UTC, datetime, timedelta

from everytick.domain.statuses import AttemptStatus, RunStatus
from everytick.web.pictures.gantt import MOST_ROWS, AttemptBar, TaskRow, folded_scale, gantt, shortened
from everytick.web.words import length

ZERO = datetime(2026, 10, 23, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(minutes: float) -> datetime:
    return ZERO + minutes * MINUTE


def bar(number: int, start: float, end: float | None, status: str = "success") -> AttemptBar:
    return AttemptBar(number, AttemptStatus(status), at(start), None if end is None else at(end))


def drawn(
    rows: list[TaskRow],
    ready: float = 0,
    now: float = 1000,
    usual_end: float | None = None,
    rare_end: float | None = None,
) -> str:
    picture = gantt(
        rows,
        ready=at(ready),
        now=at(now),
        words=length,
        clock=lambda moment: f"{moment:%H:%M}",
        usual_end=None if usual_end is None else at(usual_end),
        rare_end=None if rare_end is None else at(rare_end),
    )
    return str(picture.axis) + "".join(str(each) for _, each in picture.rows)


def test_attempts_are_numbered_and_retry_waits_hatched_with_their_length() -> None:
    bars = (bar(1, 0, 3, "failed"), bar(2, 4, 7, "failed"), bar(3, 9, 15, "failed"))
    picture = drawn([TaskRow("load", RunStatus.FAILED, bars=bars, after="gave up")])

    assert [f">{number}<" in picture for number in (1, 2, 3)] == [True] * 3
    assert picture.count("url(#p-look)") == 2
    assert ">1 min<" in picture
    assert ">2 min<" in picture
    assert "gave up" in picture
    assert "+5 min" in picture
    assert "+10 min" in picture


def test_a_task_that_went_well_at_once_has_no_number() -> None:
    assert ">1<" not in drawn([TaskRow("extract", RunStatus.SUCCESS, bars=(bar(1, 0, 5),))])


def test_a_wait_for_a_slot_stands_before_the_first_attempt() -> None:
    assert "waited 5 min for a slot" in drawn([TaskRow("extract", RunStatus.SUCCESS, bars=(bar(1, 5, 10),))])


def test_a_skipped_task_says_why() -> None:
    picture = drawn(
        [
            TaskRow("load", RunStatus.FAILED, bars=(bar(1, 0, 5, "failed"),)),
            TaskRow("report", RunStatus.SKIPPED, after="not started: load failed"),
        ]
    )

    assert "not started: load failed" in picture
    assert "skip-mark" in picture


def test_a_stretch_of_over_half_the_width_is_folded_and_says_how_long_it_is() -> None:
    bars = (bar(1, 0, 3, "failed"), bar(2, 123, 126))
    picture = drawn([TaskRow("load", RunStatus.SUCCESS, bars=bars)])
    scale = folded_scale(at(0), at(126), [(at(0), at(3)), (at(123), at(126))])

    assert "fold-edge" in picture
    assert ">2 h<" in picture
    assert [(fold.start, fold.end) for fold in scale.folds] == [(at(3), at(123))]
    assert round(scale(at(123)) - scale(at(3)), 4) == 0.024
    assert round(scale(at(3)), 3) == round(1 - scale(at(123)), 3) == 0.488


def test_nothing_is_folded_where_something_always_runs() -> None:
    assert folded_scale(at(0), at(90), [(at(0), at(40)), (at(30), at(90))]).folds == ()


def test_several_long_stretches_are_folded_one_after_the_other() -> None:
    scale = folded_scale(at(0), at(1000), [(at(0), at(2)), (at(300), at(302)), (at(998), at(1000))])

    assert len(scale.folds) == 2


def places(texts: str, picture: str) -> list[float]:
    return [float(each) for each in re.findall(rf'{texts}[^>]*x="([\d.]+)%"', picture)]


def test_nothing_is_folded_behind_the_last_end_and_a_word_has_room_on_the_folded_scale() -> None:
    """A first attempt and one three hours later, of six minutes each: the room for the word is no half an hour."""
    bars = (bar(1, 0, 6.5, "failed"), bar(2, 186.5, 192.5))
    picture = drawn([TaskRow("mirror", RunStatus.SUCCESS, bars=bars, after="6 min")])
    short = (bar(1, 0, 6.5, "failed"), bar(2, 186.5, 186.6, "failed"))
    behind = drawn([TaskRow("mirror", RunStatus.FAILED, bars=short, after="gave up")])

    assert picture.count("fold-words") == picture.count("fold-edge") == 1
    assert ">3 h<" in picture
    assert ">6 min<" in picture
    assert behind.count("fold-edge") == 1
    [word] = re.findall(r'<text[^>]*t-wrong[^>]*x="([\d.]+)%"[^>]*>gave up', behind)
    assert 75 < float(word) < 95


def test_a_wait_for_the_next_attempt_is_folded_before_it() -> None:
    """The ghost of the next attempt stands behind the fold, and what the fold says stands inside of the picture."""
    row = TaskRow("mirror", RunStatus.PENDING, bars=(bar(1, 0, 6, "failed"),), next_at=at(306))
    picture = drawn([row], now=7)

    [fold] = places("<text class=.m fold-words.", picture)
    [ghost] = places("m-ghost.", picture)
    assert fold < ghost


def test_the_length_of_a_fold_at_an_edge_stands_inside() -> None:
    picture = drawn([TaskRow("late", RunStatus.SUCCESS, bars=(bar(1, 200, 206),))])

    assert re.search(r'<text class="fold-words" x="0"[^>]*>3 h 20 min<', picture)


def test_a_running_occurrence_goes_past_now_to_its_usual_end() -> None:
    picture = drawn([TaskRow("extract", RunStatus.RUNNING, bars=(bar(1, 0, None, "running"),))], now=6, usual_end=10)

    assert "m-present" in picture
    assert "m-ghost" in picture
    assert "nowline" in picture
    assert "60%" in picture


def test_the_next_attempt_of_a_task_that_waits_is_drawn() -> None:
    row = TaskRow("load", RunStatus.PENDING, bars=(bar(1, 0, 3, "failed"),), next_at=at(8))
    picture = drawn([row], now=5)

    assert "url(#p-look)" in picture
    assert "m-ghost" in picture


def test_of_more_than_forty_tasks_those_that_matter_are_shown() -> None:
    rows = [TaskRow(f"t{number}", RunStatus.SUCCESS, bars=(bar(1, number, 2 * number),)) for number in range(60)]
    rows[7] = TaskRow("t7", RunStatus.FAILED, bars=(bar(1, 7, 8, "failed"),))
    chosen, left = shortened(rows)

    assert [row.task for row in chosen] == ["t7", *(f"t{number}" for number in range(50, 60))]
    assert left == 49
    assert shortened(rows[:MOST_ROWS]) == (rows[:MOST_ROWS], 0)


def test_an_occurrence_that_never_started_is_drawn() -> None:
    assert "svg" in drawn([TaskRow("load", RunStatus.PENDING)])
    assert drawn([]) != ""


def test_a_name_from_outside_is_escaped_and_nothing_is_styled_in_place() -> None:
    row = TaskRow("<script>", RunStatus.FAILED, bars=(bar(1, 0, 1, "failed"),), after="<b>")
    picture = drawn([row])

    assert "<script>" not in picture
    assert "<b>" not in picture
    assert "style=" not in picture


def test_a_word_stands_inside_a_long_bar_that_ends_where_the_picture_ends() -> None:
    long = TaskRow("a", RunStatus.RUNNING, bars=(bar(1, 0, None, "running"),), after="10 min so far")

    assert 'class="on r" x="100%" dx="-7" y="23">10 min so far</text>' in drawn([long], now=10)


def test_the_word_of_the_last_attempt_stands_behind_it_and_never_before_the_first() -> None:
    """`gave up` once stood before the first attempt, and was read as the reason for the others."""
    bars = (bar(1, 6, 8, "failed"), bar(2, 9, 11, "failed"), bar(3, 14.5, 15, "failed"))
    picture = drawn([TaskRow("load", RunStatus.FAILED, bars=bars, after="gave up")])
    [place] = re.findall(r'<text class="t-wrong" x="([\d.]+)%" dx="7" y="23">gave up</text>', picture)

    assert 85 < float(place) < 92


def test_what_runs_longer_than_nearly_all_before_it_is_hatched_and_no_word_stands_on_it() -> None:
    row = TaskRow("a", RunStatus.RUNNING, bars=(bar(1, 0, None, "running"),), after="3 of 40, shards")
    picture = drawn([row], now=60, usual_end=20, rare_end=24)
    [solid] = re.findall(r'<rect class="m-present" x="0%" y="11" width="([\d.]+)%"', picture)
    [hatched] = re.findall(r'<rect class="w-look" height="16" x="([\d.]+)%"', picture)
    [word] = re.findall(r'<text class="ink" x="([\d.]+)%" dx="7" y="23">3 of 40, shards</text>', picture)

    assert float(solid) == float(hatched) < float(word)


def test_the_word_of_a_run_stands_in_the_hollow_bar_to_its_usual_end() -> None:
    """It once stood before the bar, on the line of the wait for a slot."""
    row = TaskRow("a", RunStatus.RUNNING, bars=(bar(1, 5, None, "running"),), after="2 min so far")
    picture = drawn([row], now=7, usual_end=15)
    [ghost] = re.findall(r'<rect class="m-ghost" x="([\d.]+)%"', picture)

    assert f'<text class="ink" x="{ghost}%" dx="7" y="23">2 min so far</text>' in picture


def test_a_run_of_milliseconds_has_no_break_and_its_word_stands_behind_it() -> None:
    millisecond = 1 / 60_000
    failed = bar(1, 2 * millisecond, 3 * millisecond, "failed")
    picture = drawn([TaskRow("load", RunStatus.FAILED, bars=(failed,), after="failed")])

    assert "fold-edge" not in picture
    assert '<text class="t-wrong" x="30%" dx="7" y="23">failed</text>' in picture


def test_places_of_the_axis_behind_a_fold_are_told_apart() -> None:
    """Steps of seconds four hours after the start once had the same words."""
    bars = (bar(1, 0, 1, "failed"), bar(2, 241, 242))
    said = re.findall(r">(\+[^<]+)</text>", drawn([TaskRow("load", RunStatus.SUCCESS, bars=bars)]))

    assert "+4 h 01 min 30 s" in said
    assert len(said) == len(set(said))
