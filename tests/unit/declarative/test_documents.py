"""State documents: they read back, and what is wrong with one has a name."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from everytick.declarative import (
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
)
from everytick.declarative.documents import PREFIX, data_of, document_of, read_document
from everytick.declarative.jobs import job_of, with_data
from tests.unit.declarative.kit import registration

GOOD: dict[str, Any] = {
    "version": 1,
    "name": "a",
    "cronExpression": "0 * * * *",
    "retryDelayMs": 300_000,
    "schedulerIdentifier": "first",
}


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(minutes=5), timedelta(microseconds=1), timedelta(days=9999)])
def test_what_is_written_on_a_job_reads_back(delay: timedelta) -> None:
    """S2-013, S2-060: to the microsecond."""
    document = document_of(registration("ä\n", "0 *  * * *", delay), "me")
    job = job_of("default", registration("ä\n", "0 *  * * *", delay), document)
    assert read_document(data_of(job), "ä\n".__eq__) == document


def test_the_document_says_what_was_registered() -> None:
    assert data_of(job_of("default", registration(), document_of(registration(), "first"))) == GOOD


@pytest.mark.parametrize("field", GOOD)
def test_a_field_that_is_missing_is_named(field: str) -> None:
    """S2-051, S2-050."""
    with pytest.raises(TaskMissingFieldError) as caught:
        read_document({key: given for key, given in GOOD.items() if key != field}, "a".__eq__)
    assert (str(caught.value), caught.value.details) == (f"Missing required field: {field}", {"field": field})
    assert isinstance(caught.value, TaskTryDeserializeError)


@pytest.mark.parametrize(
    ("field", "value", "expected", "actual"),
    [
        ("version", "1", "number", "string"),
        ("version", True, "number", "boolean"),
        ("name", 1, "string", "number"),
        ("cronExpression", None, "string", "null"),
        ("retryDelayMs", [1], "number", "array"),
        ("schedulerIdentifier", {}, "string", "object"),
    ],
)
def test_a_field_of_another_kind_is_named(field: str, value: object, expected: str, actual: str) -> None:
    """S2-052."""
    with pytest.raises(TaskInvalidTypeError) as caught:
        read_document({**GOOD, field: value}, "a".__eq__)
    assert str(caught.value) == f"Invalid type for field '{field}': expected {expected}, got {actual}"
    assert caught.value.details == {"field": field, "value": value, "expectedType": expected, "actualType": actual}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 2),
        ("name", "b"),
        ("cronExpression", "*/5 * * * *"),
        ("retryDelayMs", -1),
        ("retryDelayMs", float("nan")),
        ("retryDelayMs", 1e30),
        ("schedulerIdentifier", ""),
    ],
)
def test_a_value_that_cannot_be_is_named(field: str, value: object) -> None:
    """S2-053."""
    with pytest.raises(TaskInvalidValueError) as caught:
        read_document({**GOOD, field: value}, "a".__eq__)
    details = caught.value.details
    assert (details["field"], details["value"]) == (field, value)
    assert str(caught.value) == f"Invalid value for field '{field}': {details['reason']}"


@pytest.mark.parametrize("data", [None, [], "text", 3, True])
def test_what_is_no_document_is_told_whole(data: object) -> None:
    """S2-054."""
    job = with_data(job_of("default", registration(), document_of(registration(), "first")), data)
    with pytest.raises(TaskInvalidStructureError) as caught:
        read_document(data_of(job), "a".__eq__)
    assert caught.value.details == {"value": data}


@pytest.mark.parametrize("target", [None, 7, "no document", PREFIX, PREFIX + "[" * 100_000, PREFIX + "9" * 5000])
def test_whatever_stands_in_its_place_is_looked_at_as_it_is(target: Any) -> None:
    """S2-054: also what JSON cannot hold, or no reader of it."""
    job = job_of("default", registration(), document_of(registration(), "first"))
    broken = replace(job, tasks=(replace(job.tasks[0], target=target),))
    with pytest.raises(TaskInvalidStructureError):
        read_document(data_of(broken), "a".__eq__)
