"""A silent node had handed attempts over to engines: which of its attempts go on, and which are lost."""

from dataclasses import replace
from datetime import timedelta

import pytest

from everytick.deciding.advance import advance
from everytick.domain.retry import Retry
from everytick.domain.steps import DeadlinePassed, Reattached, Step
from tests.unit.deciding.lives import NOON, Life, Tasks, job

TWO: Tasks = {"far": {}, "near": {}}


def starts(step: Step) -> list[tuple[str, int, object]]:
    return [(start.task, start.number, start.began_at) for start in step.starts]


def reattached(life: Life, *tasks: str) -> Step:
    """Another node takes it over from what the store knows, an hour later."""
    life.state = life.stored
    life.now += timedelta(hours=1)
    step = advance(life.header, life.state, Reattached(frozenset(tasks)), life.now)
    life.state = step.after
    return step


def test_an_attempt_at_an_engine_goes_on_as_it_began() -> None:
    """Running, `orphans`: nothing is lost and nothing is written; its timeout counts from its start."""
    life = Life(job(task_timeout="2h"))
    life.claim()
    step = reattached(life, "a")
    assert (starts(step), step.rows, step.commits) == ([("a", 1, NOON)], (), False)
    assert (step.starts[0].deadline, step.after.lost) == (NOON + timedelta(hours=2), 0)
    assert life.end("a").after.status == "completed"


def test_a_later_attempt_goes_on_under_its_number() -> None:
    life = Life(job(retry=Retry(2, "1s")))
    life.claim()
    life.fail("a")
    life.wait_over("a")
    began = life.now
    assert starts(reattached(life, "a")) == [("a", 2, began)]


@pytest.mark.parametrize("on_orphan", ["fail", "resume"])
def test_what_ran_on_the_silent_node_is_lost_alone(on_orphan: str) -> None:
    """Of a job with tasks here and there only the ones here are lost; `on_orphan` says whether they begin again."""
    life = Life(job(TWO, mode="parallel", on_orphan=on_orphan))
    life.claim()
    step = reattached(life, "far")
    assert [(row.task, str(row.attempt)) for row in step.rows] == [("near", "lost")]
    wanted = [("far", 1, NOON), ("near", 2, None)] if on_orphan == "resume" else [("far", 1, NOON)]
    assert starts(step) == wanted
    # Fail fast: the peer at the engine is told to stop.
    assert [cancel.task for cancel in step.cancels] == ([] if on_orphan == "resume" else ["far"])


def test_a_deadline_that_passed_meanwhile_stops_it() -> None:
    life = Life(job(execution_timeout="30m"))
    life.claim()
    step = reattached(life, "a")
    assert [cancel.task for cancel in step.cancels] == ["a"]
    assert step.after.expired
    assert not life.take(DeadlinePassed()).commits


def test_a_request_to_stop_it_is_asked_for_again_by_the_next_beat() -> None:
    """The store keeps the request, and by then there is an attempt to tell."""
    life = Life(job(), cancel=None)
    life.claim()
    life.stored = replace(life.stored, cancel="enough")
    step = reattached(life, "a")
    assert (step.after.cancel, starts(step)) == (None, [("a", 1, NOON)])
