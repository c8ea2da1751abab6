"""The load map: five steps of one hue, numbers where they matter."""

import re

from everytick.web.pictures.loadmap import LoadMap, load_map, step_of, steps_of


def _map(*full: tuple[int, int, int], base: int = 10) -> LoadMap:
    counts = [[base] * 24 for _ in range(7)]
    for row, hour, count in full:
        counts[row][hour] = count
    return LoadMap(tuple(map(tuple, counts)), now=(4, 14))


def test_there_is_a_cell_for_each_hour_and_one_outline_for_now() -> None:
    drawn = load_map(_map((0, 9, 200)), "said")
    assert len(re.findall(r'<rect class="h\d"', drawn)) == 168
    assert drawn.count('class="cellnow"') == 1
    assert 'role="img" aria-label="said"' in drawn


def test_only_the_fullest_and_the_emptiest_cells_have_a_number() -> None:
    drawn = load_map(_map((0, 9, 200), (1, 9, 195), (6, 23, 3)), "said")
    numbers = re.findall(r'class="m[^"]*">(\d+)</text>', drawn)
    assert sorted(numbers) == ["195", "200", "3"]


def test_hours_that_are_as_full_as_most_others_have_no_number() -> None:
    counts = [[600] * 24 for _ in range(7)]
    counts[3][23] = 598

    drawn = load_map(LoadMap(tuple(map(tuple, counts))), "")

    assert re.findall(r'class="m[^"]*">(\d+)</text>', drawn) == ["598"]
    assert not re.findall(r'class="m[^"]*">', load_map(_map(), "all the same"))


def test_steps_are_round_and_the_last_is_near_the_most() -> None:
    assert steps_of(244) == (25, 75, 120, 180, 230)
    assert steps_of(0) == (1, 1, 1, 1, 1)
    assert [step_of(count, steps_of(1)) for count in (0, 1)] == [0, 5]
    assert [step_of(count, steps_of(2)) for count in (0, 1, 2)] == [0, 3, 5]
    assert list(steps_of(9_999)) == sorted(steps_of(9_999))


def test_labels_are_escaped() -> None:
    drawn = load_map(LoadMap(((0,) * 24,) * 7, ("<b>",) * 7), "<script>")
    assert "<script>" not in drawn
    assert "<b>" not in drawn
