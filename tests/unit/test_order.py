"""The order in which several workers go through the test files."""

from tests.order import WAITING, spread

FILES = {f"{WAITING}test_{n}.py": 2 for n in range(40)} | {f"tests/unit/test_{n}.py": 20 for n in range(40)}
TESTS = [(path, number) for path, count in FILES.items() for number in range(count)]


def _path(test: tuple[str, int]) -> str:
    return test[0]


def test_each_worker_gets_its_part_of_the_files_that_wait() -> None:
    found = spread(TESTS, 4, _path)

    stretch = len(found) // 4
    parts = [found[start : start + stretch] for start in range(0, len(found), stretch)]
    assert [len({path for path, _ in part if path.startswith(WAITING)}) for part in parts] == [10, 10, 10, 10]
    assert [any(path.startswith(WAITING) for path, _ in part[-stretch // 10 :]) for part in parts] == [False] * 4


def test_every_test_stays_and_those_of_a_file_stay_together() -> None:
    found = spread(TESTS, 3, _path)

    assert sorted(found) == sorted(TESTS)
    paths = [path for path, _ in found]
    starts = [path for before, path in zip([None, *paths], paths, strict=False) if path != before]
    assert len(starts) == len(FILES)
    assert [test for path in FILES for test in found if test[0] == path] == TESTS


def test_files_of_one_kind_alone_keep_their_order() -> None:
    waiting = [test for test in TESTS if test[0].startswith(WAITING)]

    assert spread(waiting, 1, _path) == waiting
    assert spread([], 4, _path) == []
