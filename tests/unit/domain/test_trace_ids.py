"""The ids of traces follow from those of occurrences."""

import re

from hypothesis import given
from hypothesis import strategies as st

from everytick.domain.ids import job_id, occurrence_id
from everytick.domain.trace_ids import span_id, trace_id, traceparent
from tests.stores.clock import START


def test_the_trace_of_an_occurrence_has_its_number() -> None:
    id_ = occurrence_id(job_id("report"), START)
    assert trace_id(id_) == id_.removeprefix("occ_").replace("-", "")


@given(st.text(max_size=60), st.text(max_size=60))
def test_every_id_makes_a_valid_header(occurrence: str, attempt: str) -> None:
    header = traceparent(occurrence, attempt)
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", header)
    assert trace_id(occurrence).strip("0")
    assert span_id(attempt).strip("0")


def test_ids_of_nothing_but_zeros_are_not_used_as_they_are() -> None:
    zeros = "occ_00000000-0000-0000-0000-000000000000"
    assert trace_id(zeros).strip("0")
    assert span_id("occ_00000000-0000-0000-8000-000000000001").strip("0")
