"""A client is told what the application is told: equal values, whatever the question."""

import inspect
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from everytick import Everytick
from everytick.client import Client
from everytick.domain.agenda import MOST_NAMED, overview_of
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
    "queues": lambda asked, world: asked.queues(),
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


async def test_the_agenda_is_told_in_a_bounded_size(world: World, client: Client) -> None:
    for number in range(120):
        world.tick.job("0 3 29 3 *", name=f"night-{number:03}", timezone="UTC")(lambda: None)
    world.clock.advance("25d")  # to the day before the clocks of Europe go forward
    world.tick.job("30 2 * * *", name="berlin", timezone="Europe/Berlin")(lambda: None)
    await world.tick.sync()
    ours, theirs = await world.tick.agenda(), await client.agenda(crowds=2)

    assert theirs == overview_of(ours, 2)
    assert theirs.starts == sum(each.starts for each in theirs.quarters) > 120
    assert len(theirs.crowds) == 2
    assert (theirs.crowds[0].starts, len(theirs.crowds[0].jobs)) == (121, MOST_NAMED)
    [change] = theirs.changes
    assert (change.zone, change.is_fold, change.first) == ("Europe/Berlin", False, "2026-03-29T02:00:00")
    assert [(each.count, each.jobs) for each in change.concerned] == [(1, ("berlin",))]
    assert (await client.agenda(crowds=0)).crowds == ()


async def test_what_waits_for_a_second_person_is_told_without_its_changes(world: World, client: Client) -> None:
    [theirs], [ours] = await client.proposals(), await world.tick.proposals()

    assert (theirs.id, theirs.what, theirs.jobs, theirs.expires_at) == (ours.id, ours.what, ours.jobs, ours.expires_at)


async def test_a_job_that_is_not_there_is_the_same_error(client: Client) -> None:
    with pytest.raises(NotFound, match="there is no job 'nobody'") as caught:
        await client.status("nobody")

    assert (caught.value.what, caught.value.name) == ("job", "nobody")


OTHER_ARGUMENTS = {
    "agenda": "the application counts instants for a page; the client gets the overview",
    "apply preview apply_files preview_files": "the client sends documents and texts, the application takes values",
    "job": "the application's decorates a function too",
    "output output_from": "the client leaves it to the service how much is read",
    "wait": "each waits for handles of its own",
}
"""Verbs of both with other arguments, and why."""

IN_PROCESS = {
    "define template on_event acting_as": "definitions, listeners and names belong to one process",
    "run run_or_raise start stop start_background stop_background node_loop lifespan": "a node belongs to one process",
    "asgi serve serve_beside web_server metrics": "the service itself",
    "open_beside close_beside": "the store of a page of several stores",
    "sync": "it stores what the code of this process defines",
    "job_files": "it reads the folder of this process",
    "job_of job_tags jobs_and_proposals set_by_hand": "a page asks for records by their ids",
    "preview_move preview_pause preview_reschedule preview_resume preview_skip preview_undo": "dialogs of pages",
    "spread_plan apply_spread": "the page /agenda/spread shows the plan",
}
"""Verbs of an application that no route has, and why. The page of the HTTP API names the operations among them."""

NOT_COMPARED = {verb for verbs in (*OTHER_ARGUMENTS, *IN_PROCESS) for verb in verbs.split()}
PUBLIC = {name for name in dir(Everytick) if name[0] != "_" and inspect.isfunction(getattr(Everytick, name))}
VERBS = sorted(PUBLIC - NOT_COMPARED)
"""The operations and questions that every face has under one name: all of the class, so that none can be forgotten."""


def test_a_verb_without_a_route_is_one_of_the_application() -> None:
    only_here = {verb for verbs in IN_PROCESS for verb in verbs.split()}

    assert sorted(NOT_COMPARED - PUBLIC) == []
    assert {verb for verb in only_here if hasattr(Client, verb)} == set()


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
