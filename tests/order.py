"""The order in which several workers go through the test files.

pytest-xdist hands each worker a stretch of the list, and a worker that is done takes over the
end of another one's. In the order of the folders one worker gets nearly all tests that start
processes and wait for them, and the others leave it the longest ones for the end, while the
cores have little to do. Here every worker gets its part of them, between tests that compute.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

WAITING = "tests/acceptance/"
"""The folder of the tests that start processes and wait for them most of their time."""

SHARE = 0.8
"""Where in its stretch a worker has begun the last of these: what others take over at the end is to be short."""

T = TypeVar("T")


def spread(tests: Sequence[T], workers: int, path_of: Callable[[T], str]) -> list[T]:
    """Return the tests in an order in which each of so many stretches mixes waiting and computing files.

    The tests of a file stay together and in their order, since they may share a fixture.
    """
    files: dict[str, list[T]] = {}
    for test in tests:
        files.setdefault(path_of(test), []).append(test)
    waiting = [found for path, found in files.items() if path.startswith(WAITING)]
    computing = [found for path, found in files.items() if not path.startswith(WAITING)]
    stretches = (_mixed(waiting[number::workers], computing[number::workers]) for number in range(workers))
    return [test for stretch in stretches for file in stretch for test in file]


def _mixed(waiting: list[list[T]], computing: list[list[T]]) -> Iterator[list[T]]:
    """Give both kinds of files; those that wait stand at even distances in the first part."""
    left = list(waiting)
    distance = SHARE * sum(len(file) for file in computing) / max(1, len(waiting))
    passed = 0
    for file in computing:
        while left and passed >= distance * (len(waiting) - len(left)):
            yield left.pop(0)
        yield file
        passed += len(file)
    yield from left
