"""Which tasks a replay from one of them on keeps."""

import pytest

from everytick.deciding.replaying import kept_tasks
from everytick.domain.job import define_job, define_task
from everytick.domain.statuses import RunStatus
from everytick.domain.steps import Rules, rules_of
from everytick.errors import Conflict, NotFound
from everytick.schedules.interval import every

R = RunStatus
ALL_WELL = dict.fromkeys(("a", "b", "c", "d"), R.SUCCESS)


def rules(mode: str = "sequential", **after: list[str]) -> Rules:
    tasks = [define_task("job", name, after=after.get(name, ())) for name in ("a", "b", "c", "d")]
    policies = {} if after else {"mode": mode}
    return rules_of(define_job("job", every("1h"), policies=policies, tasks=tasks))


def test_in_a_line_what_stands_before_it_is_kept() -> None:
    assert kept_tasks(rules(), ALL_WELL, "c") == ("a", "b")
    assert kept_tasks(rules(), {"a": R.SUCCESS, "b": R.SUCCESS, "c": R.FAILED, "d": R.CANCELED}, "c") == ("a", "b")
    assert kept_tasks(rules(), ALL_WELL, "a") == ()


def test_what_stands_before_it_must_have_succeeded() -> None:
    with pytest.raises(Conflict, match="task 'b' is timeout: replay from 'b', or the whole occurrence"):
        kept_tasks(rules(), {"a": R.SUCCESS, "b": R.TIMEOUT}, "c")
    with pytest.raises(Conflict, match="task 'a' is not part of that occurrence"):
        kept_tasks(rules(), {}, "b")


def test_side_by_side_the_others_are_kept_where_they_succeeded_and_run_where_not() -> None:
    assert kept_tasks(rules("parallel"), {**ALL_WELL, "b": R.FAILED}, "c") == ("a", "d")


def test_in_a_graph_it_and_all_that_come_after_it_run_again() -> None:
    """a → b → d and c apart: from b on, a and c are kept; d comes after b, at whatever distance."""
    graph = rules(b=["a"], d=["b"])
    assert kept_tasks(graph, ALL_WELL, "b") == ("a", "c")
    assert kept_tasks(graph, {**ALL_WELL, "c": R.FAILED}, "b") == ("a",)
    assert kept_tasks(graph, ALL_WELL, "a") == ("c",)
    with pytest.raises(Conflict, match="task 'a' is failed"):
        kept_tasks(graph, {"a": R.FAILED, "b": R.SKIPPED, "c": R.SUCCESS, "d": R.SKIPPED}, "d")


def test_a_task_that_the_job_does_not_have_is_said_so() -> None:
    with pytest.raises(NotFound, match="task 'x'"):
        kept_tasks(rules(), ALL_WELL, "x")
