"""What each registration is to the store."""

import pytest

from everytick.declarative import TaskInvalidStructureError
from everytick.declarative.documents import data_of
from everytick.declarative.jobs import unscheduled, with_data
from everytick.declarative.resolution import Kind, resolve
from everytick.stores.base import JobRecord
from tests.unit.declarative.kit import NOON, nothing, read, record, registration


def kinds(given: object, stored: dict[str, JobRecord], orphaned: tuple[str, ...] = ()) -> dict[str, str]:
    return {name: str(kind) for name, kind in resolve("default", read(given), stored, orphaned, "me").kinds.items()}


def test_what_the_store_does_not_know_is_new() -> None:
    """S2-058, S2-059."""
    resolution = resolve("default", read(("a", "0 * * * *", nothing, "5m")), {}, (), "me")
    assert resolution.kinds == {"a": Kind.NEW}
    assert [job.name for job in resolution.puts] == ["declarative:default:a"]
    assert (resolution.before, resolution.created) == ((), ("a",))


def test_what_is_identical_is_preserved_and_nothing_is_put() -> None:
    """S2-058, S2-060, S2-066: the instance that wrote it stays the one that is named."""
    stored = {"a": record(registration())}
    resolution = resolve("default", read(("a", "0 * * * *", nothing, "5m")), stored, (), "me")
    assert (resolution.kinds, resolution.puts, resolution.edited) == ({"a": Kind.PRESERVED}, (), frozenset())


@pytest.mark.parametrize(
    ("expression", "delay", "kind"),
    [
        ("0 * * * *", "300s", "Preserved"),
        ("0 *  * * *", "5m", "Overridden"),
        ("00 * * * *", "5m", "Overridden"),
        ("0 * * * *", "5m1us", "Overridden"),
    ],
)
def test_identical_means_equal_text_and_equal_delay(expression: str, delay: str, kind: str) -> None:
    """S2-060: the same minutes written otherwise are an override, the same delay written otherwise is not."""
    assert kinds(("a", expression, nothing, delay), {"a": record(registration())}) == {"a": kind}


def test_an_override_is_put_and_what_was_there_is_remembered() -> None:
    """S2-059, S2-062."""
    before = record(registration())
    resolution = resolve("default", read(("a", "30 * * * *", nothing, "5m")), {"a": before}, (), "me")
    [put] = resolution.puts
    assert data_of(put) == {**data_of(before.job), "cronExpression": "30 * * * *", "schedulerIdentifier": "me"}  # type: ignore[dict-item]
    assert (resolution.before, resolution.edited) == ((before.job,), frozenset({"a"}))


@pytest.mark.parametrize("expression", ["0 * * * *", "30 * * * *"])
def test_what_an_earlier_instance_left_running_is_orphaned(expression: str) -> None:
    """S2-058, S2-061: with the same configuration or another."""
    given = ("a", expression, nothing, "5m")
    assert kinds(given, {"a": record(registration())}, orphaned=("a",)) == {"a": "Orphaned"}


def test_what_is_not_registered_is_kept_and_not_scheduled() -> None:
    stored = {"a": record(registration("a")), "b": record(registration("b"))}
    resolution = resolve("default", read(("a", "0 * * * *", nothing, "5m")), stored, (), "me")
    [put] = resolution.puts
    assert (put.name, put.enabled) == ("declarative:default:b", False)
    again = {"a": stored["a"], "b": JobRecord(put, 2, NOON, None)}
    assert resolve("default", read(("a", "0 * * * *", nothing, "5m")), again, (), "me").puts == ()


def test_what_is_registered_again_is_scheduled_again() -> None:
    stored = {"a": JobRecord(unscheduled(record(registration()).job), 2, NOON, None)}
    resolution = resolve("default", read(("a", "0 * * * *", nothing, "5m")), stored, (), "me")
    assert resolution.kinds == {"a": Kind.PRESERVED}
    assert [job.enabled for job in resolution.puts] == [True]


def test_an_unreadable_document_is_told_and_an_unregistered_one_is_left_alone() -> None:
    """S2-054: it harms nothing else."""
    broken = JobRecord(with_data(record(registration()).job, []), 2, NOON, None)
    with pytest.raises(TaskInvalidStructureError):
        kinds(("a", "0 * * * *", nothing, "5m"), {"a": broken})
    assert kinds(("b", "0 * * * *", nothing, "5m"), {"a": broken}) == {"b": "New"}


def test_the_same_inputs_give_the_same_answer() -> None:
    """S2-065."""
    stored = {"a": record(registration()), "b": record(registration("b"))}
    given = read(("a", "30 * * * *", nothing, "5m"), ("c", "0 * * * *", nothing, "5m"))
    assert resolve("default", given, stored, ("a",), "me") == resolve("default", given, stored, ("a",), "me")
