"""Names: what a job, task, queue or tag may be called."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everytick.domain.names import checked_name, did_you_mean
from everytick.errors import InvalidName


@pytest.mark.parametrize("name", ["a", "x" * 200, "nightly backup", "größe", "日次", "a:b/c", "👩\u200d💻", "a\u00a0b"])
def test_a_name_is_1_to_200_characters_that_people_can_read(name: str) -> None:
    """C-25: a joiner inside an emoji is no control character."""
    assert checked_name("job", name) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "is empty"),
        ("x" * 201, "has 201 characters: at most 200"),
        (" x", "begins or ends with a blank: write 'x'"),
        ("x\u00a0", "begins or ends with a blank"),
        ("a\nb", r"control character U\+000A at position 2"),
        ("a\x1b[31m", r"control character U\+001B at position 2"),
        ("a\x7fb", r"control character U\+007F"),
        ("a\u2028b", r"control character U\+2028"),
        ("a\u202eb", r"control character U\+202E"),
        ("a\ud800b", r"control character U\+D800"),
        (7, "must be text, not int"),
        (None, "must be text, not NoneType"),
    ],
)
def test_any_other_name_is_refused_with_what_to_do(name: object, reason: str) -> None:
    """The name may stand in a log, a terminal and a URL."""
    with pytest.raises(InvalidName, match=reason) as refusal:
        checked_name("job", name)
    assert str(refusal.value).startswith("job name '")
    assert str(refusal.value).isprintable()


@given(st.text(max_size=300))
def test_a_name_is_kept_as_it_is_or_refused(name: str) -> None:
    """Never silently changed, and what is accepted can be hashed into an id."""
    with suppress(InvalidName):
        assert checked_name("task", name) == name
        assert 1 <= len(name) <= 200
        assert name.encode()


@pytest.mark.parametrize(
    ("word", "hint"), [("skpi", " (did you mean 'skip'?)"), ("SKIP", " (did you mean 'skip'?)"), ("zebra", "")]
)
def test_the_nearest_known_word_is_offered(word: str, hint: str) -> None:
    """Case is not a reason to miss it; far words are not guessed."""
    assert did_you_mean(word, ["skip", "queue"]) == hint
