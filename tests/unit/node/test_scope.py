"""The limit of jobs that a node passes over one by one (NodeScope.unknown)."""

import logging

import pytest

from everytick import schedule
from everytick.domain.job import Job, define_job, define_task
from everytick.node.scope import UNKNOWN_KEPT, Scope
from everytick.node.settings import NodeSettings
from everytick.runners.catalogue import Catalogue


def made(name: str, code: str = "shop") -> Job:
    """A job that needs the code of an application."""
    task = define_task(name, "work")
    return define_job(name, schedule("0 3 * * *"), policies={}, tasks=[task], code=code)


@pytest.fixture
def scope() -> Scope:
    """A node of the application `shop` that has heard of three texts of needs."""
    found = Scope("node-1", "shop", NodeSettings(), Catalogue({}))
    found.hear(("", "code:bank", "code:shop"))
    return found


def test_jobs_that_cannot_run_here_are_passed_over_one_by_one_up_to_a_thousand(scope: Scope) -> None:
    """C-41: what needs the same and can be run is still asked for."""
    jobs = [made(f"job-{number}") for number in range(UNKNOWN_KEPT)]
    for job in jobs:
        scope.cannot_run(job, "no such function")
    assert UNKNOWN_KEPT == 1_000
    assert scope.current.unknown == {job.id for job in jobs}
    assert scope.current.met == ("", "code:shop")


def test_beyond_a_thousand_all_that_need_the_same_are_left_to_other_nodes(
    scope: Scope, caplog: pytest.LogCaptureFixture
) -> None:
    """C-41: each question to the store carries the list; the error says what is left, and until when."""
    for number in range(UNKNOWN_KEPT):
        scope.cannot_run(made(f"job-{number}"), "no such function")
    with caplog.at_level(logging.ERROR, "everytick.node"):
        scope.cannot_run(made("one-more"), "no such function")
    assert scope.current.unknown == frozenset()
    assert "code:shop" not in scope.current.met
    [error] = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert "more than 1000 jobs that need code:shop cannot run here, 'one-more' among them" in error
    assert "looks again in a minute" in error

    scope.learn_again()
    assert "code:shop" in scope.current.met


def test_a_job_that_needs_something_else_is_still_passed_over_alone(scope: Scope) -> None:
    """A thousand unknown jobs of the application take nothing from the commands of the default queue."""
    for number in range(UNKNOWN_KEPT + 1):
        scope.cannot_run(made(f"job-{number}"), "no such function")
    command = made("command", code="")
    scope.cannot_run(command, "may not be called here")
    assert scope.current.unknown == {command.id}
    assert scope.current.met == ("",)
