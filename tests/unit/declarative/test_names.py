"""Every text but the empty one is a task's name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everytick.declarative.names import checked_scheduler, job_name, prefix_of, task_name
from everytick.domain.names import checked_name
from everytick.errors import InvalidName


def test_an_ordinary_name_stands_as_it_is() -> None:
    """The issue's form: people find the task among the jobs of the core."""
    assert job_name("default", "send mail") == "declarative:default:send mail"


@given(st.text(st.characters(), min_size=1))
def test_every_name_becomes_one_that_a_job_can_carry_and_comes_back(name: str) -> None:
    """S2-003."""
    job = job_name("default", name)
    assert checked_name("job", job) == job
    assert job.startswith(prefix_of("default"))
    assert task_name("default", job) == name or len(job) == 200


@given(st.text(min_size=1, max_size=400), st.text(min_size=1, max_size=400))
def test_two_names_never_share_a_job(one: str, other: str) -> None:
    """S2-003."""
    assert (job_name("default", one) == job_name("default", other)) == (one == other)


def test_long_names_are_told_apart_by_what_was_cut() -> None:
    """S2-003: also where only the last of a thousand characters differs."""
    assert len({job_name("s", "x" * 1000 + end) for end in ("", "x", "y", "%")}) == 4


@pytest.mark.parametrize("name", ["%", "%25", "a%", " a", "a ", "a\n", "\ud800", "a\u202e", "x" * 1000])
def test_names_that_need_another_form(name: str) -> None:
    job = job_name("s", name)
    assert checked_name("job", job) == job
    assert name == "x" * 1000 or task_name("s", job) == name


@pytest.mark.parametrize("name", ["", " a", "x" * 101])
def test_a_scheduler_is_named_as_a_queue_is(name: str) -> None:
    with pytest.raises(InvalidName):
        checked_scheduler(name)
