"""What is an expression and what is not: the engine draws the line where the grammar draws it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everytick import cron
from everytick.errors import FieldParseError, InvalidSchedule
from tests.oracle.cron import GRAMMAR, MACROS, accepts
from tests.oracle.strategies import expressions

ALPHABET = "0123456789*,-/?LW#@ \tH()janmonfrisuSUN7\n٣\u00a0"
MISTAKES = st.sampled_from(["61x", "5-", "-", "2199-1970", "1,,2", "!", "9999", "*/0", "1--2", "5/"])
DIALECTS = pytest.mark.parametrize("dialect", ["posix", "vixie", "quartz"])


EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(["", *ALPHABET]), st.sampled_from([0, 1])), min_size=1, max_size=3
)


def edited(text: str, edits: list[tuple[float, str, int]]) -> str:
    """Return the text with characters put in, taken out or changed."""
    for part, put, cut in edits:
        at = round(part * len(text))
        text = text[:at] + put + text[at + cut :]
    return text


def accepted(text: str, dialect: str) -> bool:
    try:
        cron(text, dialect=dialect)
    except InvalidSchedule:
        return False
    return True


@DIALECTS
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_every_expression_of_the_grammar_is_accepted(dialect: str, data: st.DataObject) -> None:
    """S2-027, S2-028, C-01."""
    text = data.draw(expressions(dialect))

    assert accepts(text, dialect)
    assert accepted(text, dialect)


@DIALECTS
@settings(max_examples=500, deadline=None)
@given(data=st.data(), edits=EDITS)
def test_a_nearly_right_expression_is_accepted_only_if_the_grammar_has_it(
    dialect: str, data: st.DataObject, edits: list[tuple[float, str, int]]
) -> None:
    """S2-029 … S2-037; J5, J7, J8."""
    text = edited(data.draw(expressions(dialect)), edits)

    assert accepted(text, dialect) == accepts(text, dialect)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(MACROS)), EDITS)
def test_a_nearly_right_macro_is_refused(macro: str, edits: list[tuple[float, str, int]]) -> None:
    """S3-010."""
    text = edited(macro, edits)

    assert accepted(text, "vixie") == accepts(text, "vixie")


@DIALECTS
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_refusal_names_the_field_and_carries_its_cause(dialect: str, data: st.DataObject) -> None:
    """S2-045, S2-047, S2-048: the field that is wrong is named when only one is."""
    fields = data.draw(expressions(dialect)).split(" ")
    # A missing "?" would be a second mistake, and which of two is named first is not promised.
    place = data.draw(st.sampled_from([place for place, field in enumerate(fields) if field != "?"]))
    fields[place] = data.draw(MISTAKES)
    field = GRAMMAR[dialect][place].name

    with pytest.raises(InvalidSchedule) as refusal:
        cron(" ".join(fields), dialect=dialect)

    assert refusal.value.field == field
    assert refusal.value.text == " ".join(fields)
    assert isinstance(refusal.value.__cause__, FieldParseError)
    assert refusal.value.__cause__.details == {"fieldValue": fields[place], "fieldName": field}
