"""A client is told what the application is told: equal values, whatever the question."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from everytick import Everytick
from everytick.client import Client
from everytick.errors import NotFound
from tests.unit.web.api.conftest import JOB, NOON, World

SPAN = (NOON - timedelta(days=1), NOON + timedelta(hours=4))


async def _listed(found: Any) -> list[Any]:
    return [each async for each in found]


QUESTIONS: dict[str, Callable[[Any, World], Any]] = {
    "jobs": lambda asked, world: asked.jobs(),
    "removed jobs": lambda asked, world: asked.jobs(removed=True),
    "job": lambda asked, world: asked.job(JOB),
    "status": lambda asked, world: asked.status(JOB),
    "next_runs": lambda asked, world: asked.next_runs(JOB, 3),
    "upcoming": lambda asked, world: asked.upcoming(JOB, 3, skipped=True),
    "instants": lambda asked, world: asked.instants(JOB, *SPAN, limit=5),
    "promises": lambda asked, world: asked.promises(),
    "breaches": lambda asked, world: asked.breaches(),
    "breaches of one": lambda asked, world: asked.breaches(JOB, is_open=True),
    "explain": lambda asked, world: asked.explain(JOB, NOON + timedelta(hours=1)),
    "explain what ran": lambda asked, world: asked.explain("failing", NOON),
    "versions": lambda asked, world: asked.versions("api-job"),
    "compare": lambda asked, world: asked.compare("api-job", 1, 2),
    "rollout": lambda asked, world: asked.rollout(JOB),
    "coverage": lambda asked, world: asked.coverage(JOB, *SPAN),
    "days": lambda asked, world: asked.days(JOB, 2026),
    "occurrence": lambda asked, world: asked.occurrence(world.done),
    "entry": lambda asked, world: asked.entry(world.failed),
    "occurrences_beginning": lambda asked, world: asked.occurrences_beginning(world.done[4:12]),
    "now": lambda asked, world: asked.now(),
    "nodes": lambda asked, world: asked.nodes(),
    "reports": lambda asked, world: asked.reports(),
    "limits": lambda asked, world: asked.limits(),
    "backfills": lambda asked, world: asked.backfills(),
    "window": lambda asked, world: asked.window(*SPAN, jobs=[JOB]),
    "buckets": lambda asked, world: asked.buckets(*SPAN, "1h"),
    "lengths": lambda asked, world: asked.lengths([JOB]),
    "last_runs": lambda asked, world: asked.last_runs([JOB, "failing"], 5),
    "counts": lambda asked, world: asked.counts(JOB),
    "failures": lambda asked, world: asked.failures(SPAN[0]),
    "alike": lambda asked, world: asked.alike("nothing", SPAN[0]),
    "usual_length": lambda asked, world: asked.usual_length(JOB),
    "preview_update": lambda asked, world: asked.preview_update("api-job", "0 6 * * *", priority=7),
}


async def test_every_question_has_the_answer_that_the_application_gives(world: World, client: Client) -> None:
    for name, question in QUESTIONS.items():
        theirs, ours = await question(client, world), await question(world.tick, world)
        if name == "preview_update":
            assert (theirs.changes, theirs.runs) == (ours.changes, ours.runs)
        else:
            assert theirs == (list(ours) if isinstance(theirs, list) else ours), name


async def test_the_history_is_followed_over_its_pages_with_the_promises_that_were_broken(
    world: World, client: Client
) -> None:
    ours = await _listed(await world.tick.history(JOB))
    theirs = await _listed(await client.history(JOB, limit=1))

    assert theirs == ours
    assert len(theirs) > 2
    assert await client.unkept(theirs) == await world.tick.unkept(ours)
    assert await client.job_names(each.job_id for each in theirs) == {ours[0].job_id: JOB}
    assert await client.payload_of(ours[0]) == {"secret": "s3cr3t"}


async def test_what_waits_for_a_second_person_is_told_without_its_changes(world: World, client: Client) -> None:
    [theirs], [ours] = await client.proposals(), await world.tick.proposals()

    assert (theirs.id, theirs.what, theirs.jobs, theirs.expires_at) == (ours.id, ours.what, ours.jobs, ours.expires_at)


async def test_a_job_that_is_not_there_is_the_same_error(client: Client) -> None:
    with pytest.raises(NotFound, match="there is no job 'nobody'") as caught:
        await client.status("nobody")

    assert (caught.value.what, caught.value.name) == ("job", "nobody")


VERBS = """
    pause resume trigger reschedule rewind skip move amend add undo cancel replay backfill backfills find_backfill
    update remove rename enable disable rollback end_rollout approve reject set_limit remove_limit brake release
    jobs status statuses next_runs upcoming instants events history occurrence explain nodes promises breaches versions
    compare rollout preview_update limits proposals reports now
    window buckets lengths last_runs counts failures alike days coverage
""".split()
"""The operations and questions that every face has under one name."""


ONLY_HERE = {"within", "policies", "policy", "schedule"}
"""Arguments of which the client takes less: no request carries a connection, and it sends schedules and policies as
texts and JSON, which the service checks."""


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_the_same_arguments_in_the_client_as_in_the_application(verb: str) -> None:
    """`within` is a connection of the caller's own, which no request can carry."""

    def arguments(kind: type) -> list[tuple[str, object, object]]:
        given = inspect.signature(getattr(kind, verb)).parameters.values()
        return [(each.name, each.kind, each.default) for each in given if each.name != "within"]

    assert arguments(Client) == arguments(Everytick)


@pytest.mark.parametrize("verb", VERBS)
def test_an_argument_has_the_same_type_in_the_client_as_in_the_application(verb: str) -> None:
    """A type checker finds a misspelt word in a call of either: no third list of the verbs could tell it."""

    def types(kind: type) -> dict[str, object]:
        given = inspect.signature(getattr(kind, verb)).parameters.values()
        return {each.name: each.annotation for each in given if each.name not in ONLY_HERE}

    assert types(Client) == types(Everytick)
