"""What nodes say of jobs that they cannot run."""

from dataclasses import replace
from datetime import UTC, datetime

from everytick import schedule
from everytick.domain.job import define_job, define_task
from everytick.domain.nodes import NodeFacts, unknown_targets

FACTS = NodeFacts("1.0", "3.11.4", "2025b", "h", 7, 50, ("default",), datetime(2026, 1, 1, tzinfo=UTC))
JOB = define_job("nightly", schedule("0 3 * * *"), policies={}, tasks=[define_task("nightly", "work")], code="shop")
IGNORANT = replace(FACTS, application="shop", met=("", JOB.needs), unknown_targets=((JOB.id, "no such function"),))


def test_a_node_of_another_application_says_nothing_of_a_job_that_it_is_never_offered() -> None:
    """C-41: it serves the same queue, and does not meet what the job needs."""
    other = replace(FACTS, application="other", met=("", "code:other"))
    assert unknown_targets([JOB], [IGNORANT, other]) == {"nightly": "no such function"}


def test_a_node_that_meets_the_needs_and_has_not_refused_the_job_may_run_it() -> None:
    able = replace(FACTS, application="shop", met=("", JOB.needs), queues=("default", "mail"))
    assert unknown_targets([JOB], [IGNORANT, able]) == {}


def test_a_node_that_leaves_all_that_needs_the_same_to_others_has_refused_the_job() -> None:
    """Beyond 1,000 jobs that it cannot run it no longer meets their needs."""
    assert unknown_targets([JOB], [replace(IGNORANT, met=("",))]) == {"nightly": "no such function"}
    assert unknown_targets([JOB], [FACTS]) == {}
