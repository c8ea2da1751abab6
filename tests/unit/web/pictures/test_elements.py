"""Elements: whatever stands in a job's name or an error, no page has markup of it."""

from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from everytick.web.pictures.elements import element, joined
from everytick.web.pictures.marks import cap, glyph, word

HOSTILE = "\"'><script>alert(1)</script>&"


@given(st.text())
@example(HOSTILE)
def test_texts_and_attributes_are_escaped_as_everywhere(text: str) -> None:
    """L2: one hostile text in every place."""
    assert (
        element("text", text, class_="m", data_job=text)
        == f'<text class="m" data-job="{escape(text)}">{escape(text)}</text>'
    )
    assert joined((text, Markup("<b>"))) == f"{escape(text)}<b>"


@given(st.text())
@example(HOSTILE)
def test_a_mark_of_any_word_is_escaped(text: str) -> None:
    """L2: the words of statuses are ours, and stay harmless if they ever were not."""
    drawn = (glyph(text, text, text), word("failed", "marks.svg", text), word(text, text), cap(text, text, text))
    assert all("<script" not in each and "\"'>" not in each for each in drawn)
    assert all(each.count("<svg") == each.count("</svg>") for each in drawn)


def test_numbers_are_short_and_nothing_is_left_out() -> None:
    drawn = element("rect", x=0, y=1.5, width=1 / 3, height=2.0, rx=None, is_on=True)
    assert drawn == '<rect x="0" y="1.5" width="0.33" height="2" is-on="True"/>'
    assert isinstance(drawn, Markup)
