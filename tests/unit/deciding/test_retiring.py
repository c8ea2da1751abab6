"""Which of the jobs that a start left out retire (C-42)."""

from datetime import UTC, datetime, timedelta

from everytick.deciding.retiring import STARTING, defined_by, retirable
from everytick.domain.definers import NameSet, Undefined, UndefinedJob

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)


def undefined(jobs: str, *sets: tuple[str, str], stored_at: datetime = LONG_AGO) -> Undefined:
    """What a store says of jobs of one letter each, and of sets given by hash and names."""
    told = tuple(NameSet(hash_, frozenset(names), stored_at) for hash_, names in sets)
    return Undefined(NOW, tuple(UndefinedJob(f"job_{name}", name, NOW) for name in jobs), told)


def names(jobs: tuple[UndefinedJob, ...]) -> str:
    return "".join(each.name for each in jobs)


def test_what_a_living_node_defines_stays_and_the_rest_retires() -> None:
    """C-42: what a living node of the same application still defines is never removed."""
    seen = undefined("abc", ("one", "a"), ("two", "bx"), ("gone", "c"))
    assert names(retirable(seen, {"one", "two"})) == "c"
    assert names(retirable(seen, {"two"})) == "ac"
    assert names(retirable(seen, ())) == "abc"


def test_a_start_that_has_just_stored_its_names_counts_as_living() -> None:
    """Its node's row does not name the hash yet."""
    assert names(retirable(undefined("a", ("new", "a"), stored_at=NOW - STARTING), ())) == "a"
    just = NOW - STARTING + timedelta(microseconds=1)
    assert names(retirable(undefined("a", ("new", "a"), stored_at=just), ())) == ""


def test_nothing_retires_while_the_names_of_a_living_node_are_not_known() -> None:
    assert retirable(undefined("a", ("one", "b")), {"one", "lost"}) == ()


def test_each_node_is_told_with_what_it_defines_of_the_jobs_left_out() -> None:
    seen = undefined("abc", ("one", "a"), ("two", "bx"), ("files", "c"))
    nodes = {"n1": ("one", "files"), "n2": ("two",), "n3": ("lost",), "n4": ()}
    assert defined_by(seen, nodes) == {"n1": ("a", "c"), "n2": ("b",)}
