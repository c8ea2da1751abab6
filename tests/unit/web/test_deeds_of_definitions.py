"""What an admin changes of a definition on its pages, and what a second person answers."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from everytick import Everytick, Retry, Rollout, every
from everytick.access.people import CameBy, Person, Role
from everytick.errors import NotFound
from everytick.web.asgi import asgi
from tests.unit.web.forms_of_pages import FormOnPage, sent, sent_again, text_of, told

JOB = "/jobs/report/do"


@pytest.fixture
def tick() -> Everytick:
    made = Everytick("memory://", name="shop")

    @made.job(every("1h"), name="report", owner="api")
    def report() -> None: ...

    @made.job(every("1h"), name="coded")
    def coded() -> None: ...

    return made


async def test_a_job_is_disabled_and_enabled_again(client: httpx2.AsyncClient, tick: Everytick) -> None:
    page = await client.get(f"{JOB}/disable")
    assert "720 runs fall away" in text_of(page)
    answer = await sent_again(client, f"{JOB}/disable", page)
    assert await told(client, answer) == "Disabled report."
    assert not (await tick.job("report")).job.enabled
    assert not FormOnPage((await client.get(f"{JOB}/disable")).text).is_there

    await sent(client, f"{JOB}/enable")
    assert (await tick.job("report")).job.enabled


async def test_a_schedule_is_edited_after_its_runs_were_shown(client: httpx2.AsyncClient, tick: Everytick) -> None:
    """The planner's diff is on the page: what a schedule moves is seen before it is stored."""
    unseen = await sent(client, f"{JOB}/edit", schedule="every 2h")
    assert unseen.status_code == 409
    assert "was not shown yet" in text_of(unseen)
    said = text_of(unseen)
    assert "Then: every 2 hours" in said
    assert "360 runs give way" in said
    assert (await tick.job("report")).job.version == 1

    answer = await sent_again(client, f"{JOB}/edit", unseen)
    assert await told(client, answer) == "report is at version 2: every 2h."
    assert (await tick.job("report")).job.schedule.describe() == "every 2 hours, UTC"


async def test_policies_are_set_and_taken_back_after_what_changes_was_shown(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    """Whatever `update` takes, the page takes: a value is JSON or text, as on the command line."""
    await tick.update("report", queue="slow")
    asked = {"policies": 'priority=5\nretry = {"max": 2, "interval": "30s"}\n', "unset": "queue"}
    unseen = await sent(client, f"{JOB}/edit", **asked)
    assert (unseen.status_code, (await tick.job("report")).job.version) == (409, 2)
    said = text_of(unseen)
    for change in ("priority 0 → 5", "queue slow → default", "retry null → "):
        assert change in said, change

    answer = await sent_again(client, f"{JOB}/edit", unseen)
    assert await told(client, answer) == "report is at version 3: priority, queue and retry."
    job = (await tick.job("report")).job
    assert (job.settings.priority, job.settings.queue, job.settings.retry) == (5, "default", Retry(2, "30s"))
    assert job.schedule.describe() == "every hour, UTC"


async def test_an_edit_that_changes_nothing_says_so(client: httpx2.AsyncClient, tick: Everytick) -> None:
    answer = await sent(client, f"{JOB}/edit")
    assert await told(client, answer) == "report stays at version 1: nothing has changed."


async def test_what_others_made_of_the_schedule_stays_where_only_policies_were_typed(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    page = await client.get(f"{JOB}/edit", params={"policies": "priority=5"})
    await tick.update("report", "every 3h", by="ann")
    conflict = await sent_again(client, f"{JOB}/edit", page)
    assert conflict.status_code == 412
    answer = await sent_again(client, f"{JOB}/edit", conflict)

    assert answer.status_code == 303, text_of(answer)
    job = (await tick.job("report")).job
    assert (job.schedule.describe(), job.settings.priority) == ("every 3 hours, UTC", 5)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"policies": "priority"}, "names no policy and its value"),
        ({"policies": "priority=high"}, "priority"),
        ({"policies": "prioritie=5"}, "there is no policy 'prioritie'"),
        ({"policies": "by=root"}, "there is no policy 'by'"),
        ({"unset": "confirmed"}, "there is no policy 'confirmed'"),
        ({"policies": 'on_failure={"command": "rm -rf /"}'}, "is not taken over HTTP"),
    ],
)
async def test_a_policy_that_is_none_is_told_beside_its_field(
    client: httpx2.AsyncClient, tick: Everytick, typed: dict[str, str], why: str
) -> None:
    answer = await sent(client, f"{JOB}/edit", **typed)
    assert answer.status_code == 422
    assert why in text_of(answer)
    assert ('id="f-policies-wrong"' in answer.text) is ("policies" in typed)
    assert FormOnPage(answer.text).is_there
    assert (await tick.job("report")).job.version == 1


async def test_a_text_that_is_no_schedule_is_told_beside_its_field(client: httpx2.AsyncClient) -> None:
    page = await client.get(f"{JOB}/edit", params={"schedule": "61 * * * *"})
    assert 'id="f-schedule-wrong"' in page.text
    assert "must be 0 to 59" in text_of(page)


async def test_a_conflict_shows_both_sides(client: httpx2.AsyncClient, tick: Everytick) -> None:
    page = await client.get(f"{JOB}/edit", params={"schedule": "every 2h"})
    await tick.update("report", priority=7, by="ann")
    answer = await sent_again(client, f"{JOB}/edit", page)

    assert answer.status_code == 412
    said = text_of(answer)
    assert "What others changed priority: 0 → 7" in said
    assert "What you would change now schedule: every: 1h; tz=UTC → every: 2h; tz=UTC" in said
    assert (await tick.job("report")).job.schedule.describe() == "every hour, UTC"

    again = await sent_again(client, f"{JOB}/edit", answer)
    assert again.status_code == 303, text_of(again)
    job = (await tick.job("report")).job
    assert (job.schedule.describe(), job.settings.priority) == ("every 2 hours, UTC", 7)


async def test_an_older_version_is_stored_again(client: httpx2.AsyncClient, tick: Everytick) -> None:
    await tick.update("report", "every 2h")
    page = await client.get(f"{JOB}/rollback", params={"version": "1"})
    assert "schedule every: 2h; tz=UTC → every: 1h; tz=UTC" in text_of(page)
    answer = await sent_again(client, f"{JOB}/rollback", page)

    assert await told(client, answer) == "report is at version 3, equal to 1."
    assert (await tick.job("report")).job.schedule.describe() == "every hour, UTC"


@pytest.mark.parametrize(("end", "schedule"), [("keep", "every 2 hours, UTC"), ("back", "every hour, UTC")])
async def test_a_rollout_is_ended_by_hand(client: httpx2.AsyncClient, tick: Everytick, end: str, schedule: str) -> None:
    await tick.update("report", "every 2h", policy=Rollout(0.5))
    page = await client.get(f"{JOB}/rollout", params={"end": end})
    assert "Version 2 is on trial" in text_of(page)
    answer = await sent_again(client, f"{JOB}/rollout", page)

    assert (await told(client, answer)).startswith("The rollout of report is over")
    assert await tick.rollout("report") is None
    assert (await tick.job("report")).job.schedule.describe() == schedule


async def test_a_job_is_renamed(client: httpx2.AsyncClient, tick: Everytick) -> None:
    answer = await sent(client, f"{JOB}/rename", new="reports/daily")

    assert answer.headers["location"] == "/jobs/reports%2Fdaily"
    assert (await tick.job("reports/daily")).job.name == "reports/daily"


@pytest.mark.parametrize(("new", "why"), [("coded", "coded"), ("a" * 201, "200")])
async def test_a_name_that_is_none_or_taken_is_refused(
    client: httpx2.AsyncClient, tick: Everytick, new: str, why: str
) -> None:
    answer = await sent(client, f"{JOB}/rename", new=new)
    assert answer.status_code in (409, 422)
    assert why in text_of(answer)
    assert (await tick.job("report")).job.version == 1


async def test_a_job_of_code_is_changed_there_or_detached(client: httpx2.AsyncClient, tick: Everytick) -> None:
    refused = await sent(client, "/jobs/coded/do/rename", new="other")
    assert refused.status_code == 409
    assert "the code of application 'shop' defines it" in text_of(refused)

    answer = await sent_again(client, "/jobs/coded/do/rename", refused, detach="true")
    assert answer.status_code == 303, text_of(answer)
    assert (await tick.job("other")).job.owner == "api"


async def test_a_job_is_removed_once_its_name_is_typed(client: httpx2.AsyncClient, tick: Everytick) -> None:
    refused = await sent(client, f"{JOB}/remove", typed_name="repor")
    assert refused.status_code == 422
    assert 'id="f-typed_name-wrong"' in refused.text
    assert (await tick.job("report")).removed_at is None

    answer = await sent_again(client, f"{JOB}/remove", refused, typed_name="report")
    assert answer.headers["location"] == "/jobs"
    assert await told(client, answer) == "Removed report. Its history is kept."
    with pytest.raises(NotFound):
        await tick.job("report")


async def test_a_purge_says_what_is_deleted(client: httpx2.AsyncClient, tick: Everytick) -> None:
    page = await client.get(f"{JOB}/remove", params={"purge": "true"})
    assert "Its history is deleted" in text_of(page)
    answer = await sent_again(client, f"{JOB}/remove", page, typed_name="report")

    assert "Its history is deleted." in await told(client, answer)
    assert [record.job.name for record in await tick.jobs(removed=True)] == ["coded"]


async def test_a_job_that_is_gone_is_a_page_that_says_so(client: httpx2.AsyncClient) -> None:
    page = await client.get("/jobs/nothing/do/pause", headers={"accept": "text/html"})
    assert page.status_code == 404
    assert "Nothing is here." in page.text


# ----------------------------------------------------------------------------------------------------------- two people


@pytest.fixture
async def ben(tick: Everytick) -> AsyncIterator[httpx2.AsyncClient]:
    """A second admin with a browser of his own."""

    async def identify(_: Any) -> Person:
        return Person("ben", Role.ADMIN, came_by=CameBy.LOCAL)

    transport = httpx2.ASGITransport(asgi(tick, identify=identify), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        yield asking


async def proposed(client: httpx2.AsyncClient, tick: Everytick) -> str:
    """Let the first person ask for a removal that needs two, and return the id of the proposal."""
    await tick.update("report", protected="two_people")
    asked = await sent(client, f"{JOB}/remove", typed_name="report")
    assert asked.status_code == 409
    assert "It needs two people." in text_of(asked)
    answer = await sent_again(client, f"{JOB}/remove", asked)
    said = await told(client, answer)
    [proposal] = await tick.proposals()
    assert said.startswith(f"Proposed as {proposal.id}: the removal of job 'report'. Another person must approve it")
    return proposal.id


async def test_a_second_person_approves_a_proposal(
    client: httpx2.AsyncClient, ben: httpx2.AsyncClient, tick: Everytick
) -> None:
    id_ = await proposed(client, tick)
    own = await client.get(f"/proposals/{id_}/do/approve")
    assert "You have proposed it: another person must approve it." in text_of(own)
    assert not FormOnPage(own.text).is_there

    answer = await sent(ben, f"/proposals/{id_}/do/approve")
    assert (await told(ben, answer)).startswith("Approved: the removal of job 'report'")
    with pytest.raises(NotFound):
        await tick.job("report")


async def test_a_second_person_refuses_a_proposal(
    client: httpx2.AsyncClient, ben: httpx2.AsyncClient, tick: Everytick
) -> None:
    id_ = await proposed(client, tick)
    answer = await sent(ben, f"/proposals/{id_}/do/reject")

    assert (await told(ben, answer)).startswith("Refused: the removal of job 'report'")
    assert await tick.proposals() == []
    assert (await ben.get(f"/proposals/{id_}/do/approve")).status_code == 404
