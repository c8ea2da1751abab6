"""Which of the jobs that a start left out retire (C-42)."""

from datetime import UTC, datetime, timedelta

from everytick.deciding.retiring import STARTING, Definer, defined_by, retirable
from everytick.domain.definers import NameSet, Undefined, UndefinedJob

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)


def undefined(jobs: str, *sets: tuple[str, str], stored_at: datetime = LONG_AGO) -> Undefined:
    """What a store says of jobs of one letter each, and of sets given by hash and names."""
    told = tuple(NameSet(hash_, frozenset(names), stored_at) for hash_, names in sets)
    return Undefined(NOW, tuple(UndefinedJob(f"job_{name}", name, NOW) for name in jobs), told)


def names(jobs: tuple[UndefinedJob, ...]) -> str:
    return "".join(each.name for each in jobs)


def node(name: str, *hashes: str, lives: bool = True, beat_at: datetime = NOW) -> Definer:
    return Definer(name, hashes, beat_at, lives)


def test_what_a_living_node_defines_stays_and_the_rest_retires() -> None:
    """C-42: what a living node of the same application still defines is never removed."""
    seen = undefined("abc", ("one", "a"), ("two", "bx"), ("gone", "c"))
    assert names(retirable(seen, [node("n1", "one"), node("n2", "two"), node("n3", "gone", lives=False)])) == "c"
    assert names(retirable(seen, [node("n2", "two")])) == "ac"
    assert names(retirable(seen, ())) == "abc"


def test_a_start_that_has_just_stored_its_names_counts_as_living() -> None:
    """C-42: its node's row does not name the hash yet; a minute later it would."""
    assert names(retirable(undefined("a", ("new", "a"), stored_at=NOW - STARTING), ())) == "a"
    just = NOW - STARTING + timedelta(microseconds=1)
    assert names(retirable(undefined("a", ("new", "a"), stored_at=just), ())) == ""


def test_a_start_is_over_once_a_node_that_names_its_set_was_heard_of() -> None:
    """A restart that leaves a job out removes it at once, however young the node before it was."""
    stored_at = NOW - timedelta(seconds=5)
    seen = undefined("a", ("old", "a"), stored_at=stored_at)
    gone = node("n1", "old", lives=False, beat_at=stored_at + timedelta(seconds=1))
    assert names(retirable(seen, [gone])) == "a"
    older = node("n0", "old", lives=False, beat_at=stored_at - timedelta(seconds=1))
    assert names(retirable(seen, [older])) == ""
    assert names(retirable(seen, [gone, older])) == "a"


def test_nothing_retires_while_the_names_of_a_living_node_are_not_known() -> None:
    assert retirable(undefined("a", ("one", "b")), [node("n1", "one", "lost")]) == ()
    assert names(retirable(undefined("a", ("one", "b")), [node("n1", "one"), node("n2", "lost", lives=False)])) == "a"


def test_each_node_is_told_with_what_it_defines_of_the_jobs_left_out() -> None:
    seen = undefined("abc", ("one", "a"), ("two", "bx"), ("files", "c"))
    nodes = [node("n1", "one", "files"), node("n2", "two"), node("n3", "lost"), node("n4")]
    assert defined_by(seen, nodes) == {"n1": ("a", "c"), "n2": ("b",)}
