"""Payloads: JSON in, the same JSON out, or a refusal at the door."""

import math
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everytick.domain.payload import PAYLOAD_LIMIT, Payload, payload
from everytick.errors import DefinitionError, InvalidPayload

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_what_is_accepted_reads_back_equal(given_value: Any) -> None:
    """Payloads are JSON, never pickle."""
    kept = payload(given_value)
    assert kept.read() == given_value
    assert payload(kept) is kept
    assert payload(kept.as_data()) == kept


def test_payloads_compare_by_content_and_are_safe_from_their_author() -> None:
    """A definition must not change with the caller's dict."""
    mine = {"b": [1], "a": 2}
    kept = payload(mine)
    mine["b"] = "changed"
    assert kept == payload({"a": 2, "b": [1]})
    assert hash(kept) == hash(Payload('{"a":2,"b":[1]}'))
    assert kept.read() is not kept.read()


def test_a_tuple_becomes_a_list() -> None:
    """JSON has one kind of list."""
    assert payload((1, (2,))).read() == [1, [2]]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (math.nan, "holds nan, which JSON does not have"),
        ({"a": [1, math.inf]}, r"holds inf at a\[1\]"),
        ({"a": {"b": {1: 2}}}, r"has the key 1 at a\.b, and JSON keys are text"),
        ({None: 1}, "has the key None, and JSON keys are text"),
        ({"when": datetime(2024, 1, 1, tzinfo=UTC)}, "holds a datetime at when, which is not JSON"),
        ({1, 2}, "holds a set"),
        (b"raw", "holds a bytes"),
        ("half \ud800", "half of a surrogate pair"),
        ([10**5000], "is not JSON: Exceeds the limit"),
    ],
)
def test_what_json_cannot_carry_is_refused_with_its_place(wrong: object, reason: str) -> None:
    """NaN above all: half of the world's parsers reject it."""
    with pytest.raises(InvalidPayload, match=reason):
        payload(wrong)


def test_a_payload_has_at_most_256_kilobytes() -> None:
    """The bound counts bytes of UTF-8, quotes included."""
    assert len(payload("x" * (PAYLOAD_LIMIT - 2)).text) == 262_144
    with pytest.raises(InvalidPayload, match=r"payload has 262,145 bytes as JSON, and at most 262,144 are allowed"):
        payload("x" * (PAYLOAD_LIMIT - 1))
    with pytest.raises(InvalidPayload, match="result has 6 bytes"):
        payload("éé", "result", limit=5)


def test_what_holds_itself_or_one_part_too_often_is_refused_at_once() -> None:
    """2^60 parts in sixty lists would otherwise never be counted."""
    own: list[object] = []
    own.append(own)
    with pytest.raises(InvalidPayload, match="nested deeper than 100 levels, or holds itself"):
        payload(own)
    bomb: list[object] = []
    for _ in range(60):
        bomb = [bomb, bomb]
    with pytest.raises(InvalidPayload, match="has more than 262,144 parts"):
        payload(bomb)
    with pytest.raises(InvalidPayload, match="has more than 262,144 parts"):
        payload([0] * 1_000_000)


def test_a_payload_may_be_nested_a_hundred_levels_deep() -> None:
    """Deeper than people write, shallower than parsers break."""
    deep: object = 1
    for _ in range(100):
        deep = {"in": deep}
    assert payload(deep).read() == deep
    with pytest.raises(InvalidPayload, match="nested deeper than 100 levels"):
        payload([deep])


def test_the_place_of_a_mistake_stays_short() -> None:
    """A key may be as long as the payload."""
    with pytest.raises(InvalidPayload, match=f"holds nan at {'k' * 39}…\\.x, which"):
        payload({"k" * 1000: {"x": math.nan}})


def test_the_refusal_is_a_definition_error_that_survives_a_process_boundary() -> None:
    """Errors carry data in attributes."""
    error = InvalidPayload("payload of job 'x'", "holds nan")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, InvalidPayload)
    assert isinstance(again, DefinitionError)
    assert (again.what, again.reason, str(again)) == (error.what, error.reason, str(error))
    assert error.code == "invalid_payload"
