"""Retry: what may be written, and what it becomes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everytick.domain.retry import ANY_FAILURE, RETRY_ON_FAILURE, Retry, retry
from everytick.errors import InvalidDuration, InvalidPolicies

durations = st.timedeltas(timedelta(0), timedelta(days=400))


class Flaky(Exception):
    """An exception of a user's own."""


def test_a_retry_counts_beyond_the_first_attempt_and_waits_constantly_unless_said() -> None:
    """S0-081, C-13, C-33."""
    assert Retry(3, "30s") == Retry(3, timedelta(seconds=30), 1.0, None, 0, ANY_FAILURE, False)
    assert Retry(3, "1m", factor=2).factor == 2.0
    assert Retry(3, "1m", max_interval="1m").max_interval == timedelta(minutes=1)


def test_a_mapping_says_the_same_as_the_value() -> None:
    """The same keys in Python, YAML and HTTP."""
    written = {"max": 10, "interval": "1m", "factor": 2, "max_interval": "1h", "jitter": 0.5, "on": ["timeout"]}
    assert retry(written) == Retry(10, "1m", 2.0, "1h", 0.5, "timeout")
    assert retry(None) is None
    assert retry(RETRY_ON_FAILURE) is RETRY_ON_FAILURE


def test_unlimited_retries_that_the_next_instant_supersedes_can_be_said() -> None:
    """C-13, S2-024: a delay of zero too."""
    unlimited = Retry(None, "0s", superseded_by_next=True)
    assert (unlimited.max, unlimited.interval, unlimited.superseded_by_next) == (None, timedelta(0), True)


def test_on_names_exception_classes_by_module_so_that_a_definition_is_data() -> None:
    """Order and repetition say nothing."""
    named = Retry(1, "1s", on=[Flaky, ConnectionError, "TimeoutError", "timeout", ConnectionError]).on
    assert set(named) == {"builtins.ConnectionError", "builtins.TimeoutError", "timeout", f"{__name__}.Flaky"}
    assert named == tuple(sorted(named))
    assert Retry(1, "1s", on=Flaky).on == (f"{__name__}.Flaky",)
    assert Retry(1, "1s", on="httpx.ConnectError").on == ("httpx.ConnectError",)


def test_an_exception_class_made_inside_a_function_can_be_named_too() -> None:
    """What is stored must read back."""

    class Local(Exception):
        pass

    once = Retry(1, "1s", on=Local)
    assert once.on[0].endswith("<locals>.Local")
    assert retry(once.as_data()) == once


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"max": -1}, "retry max '-1' must be from 0 to .*instead: max=None, for no limit"),
        ({"max": True}, "retry max 'True' must be a whole number"),
        ({"max": "3"}, "retry max '3' must be a whole number"),
        ({"max": 2**31}, "retry max '2147483648' must be from 0"),
        ({"factor": 0}, "retry factor '0' would make every further wait zero"),
        ({"factor": -2}, "retry factor '-2' must be a number of 0 or more"),
        ({"factor": float("nan")}, "retry factor 'nan' must be a number"),
        ({"factor": float("inf")}, "retry factor 'inf' must be a number"),
        ({"factor": 10**400}, "retry factor '1000*…' must be a number"),
        ({"factor": 10**5000}, "retry factor 'a very long int' must be a number"),
        ({"factor": "2"}, "retry factor '2' must be a number"),
        ({"factor": True}, "retry factor 'True' must be a number"),
        ({"jitter": 1.5}, "retry jitter '1.5' must be a number from 0 to 1"),
        ({"max_interval": "10s"}, "retry max_interval '10s' is shorter than the interval 30s"),
        ({"superseded_by_next": 1}, "retry superseded_by_next '1' must be true or false"),
        ({"on": ()}, r"retry on '\(\)' is empty, so that nothing would be retried"),
        ({"on": 5}, "retry on '5' must name exception classes or outcomes"),
        ({"on": [5]}, "retry on '5' is neither an exception class nor an outcome"),
        ({"on": int}, "is neither an exception class nor an outcome"),
        ({"on": "lost"}, "retry on 'lost' follows on_orphan, not retry"),
        ({"on": "canceled"}, "retry on 'canceled' is not retried"),
        ({"on": "success"}, "retry on 'success' is not a failure"),
        ({"on": "TimeOutError"}, r"is no built-in exception.*\(did you mean 'TimeoutError'\?\)"),
        ({"on": "int"}, "is no built-in exception"),
        ({"on": "a..b"}, "is no built-in exception"),
    ],
)
def test_nonsense_is_refused_at_birth(arguments: dict[str, Any], reason: str) -> None:
    """C-13: with what was read and what to write instead."""
    with pytest.raises(InvalidPolicies, match=reason):
        Retry(**{"max": 3, "interval": "30s", **arguments})


@pytest.mark.parametrize("interval", [30, "30", timedelta(seconds=-1)])
def test_an_interval_without_a_unit_is_no_interval(interval: Any) -> None:
    """Seconds or minutes? It does not say."""
    with pytest.raises(InvalidDuration):
        Retry(3, interval)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (3, r"retry '3' says no interval; instead: retry=Retry\(3, \"30s\"\)"),
        ({"max": 3}, "retry says no interval; its keys are max, interval"),
        ({"max": 3, "intervall": "1s"}, r"retry 'intervall' is not a key it has.*\(did you mean 'interval'\?\)"),
        ({"max": 3, 4: "1s"}, "retry '4' is not a key it has"),
    ],
)
def test_a_retry_without_its_parts_is_refused(written: object, reason: str) -> None:
    """Unknown keys come with a guess."""
    with pytest.raises(InvalidPolicies, match=reason):
        retry(written)


@given(
    st.builds(
        Retry,
        st.none() | st.integers(0, 100),
        durations,
        st.floats(0.5, 10),
        st.none() | st.just(timedelta(days=500)),
        st.floats(0, 1),
        st.sampled_from([ANY_FAILURE, ("timeout",), (Flaky, "failed")]),
        st.booleans(),
    )
)
def test_its_data_reads_back_equal(written: Retry) -> None:
    """S0-059: a diff that is stored is the diff that is read."""
    data = written.as_data()
    assert retry(data) == written
    assert hash(retry(data)) == hash(written)
    assert replace(written, max=7) == Retry(
        7,
        written.interval,
        written.factor,
        written.max_interval,
        written.jitter,
        written.on,
        written.superseded_by_next,
    )
