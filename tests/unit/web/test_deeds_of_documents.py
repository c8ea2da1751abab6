"""A document of jobs on its page: shown before it is stored, whole or not at all, with targets that are allowed."""

import httpx2
import pytest

from everytick import Everytick, every
from everytick.errors import NotFound
from tests.unit.web.forms_of_pages import FormOnPage, sent, sent_again, text_of, told

APPLY = "/do/apply"
TWO = """\
version: 1
jobs:
  tidy: {schedule: '@daily', call: 'shop.jobs:tidy'}
  sweep:
    schedule: every 2h
    call: shop.jobs:sweep
"""


@pytest.fixture
def tick() -> Everytick:
    made = Everytick("memory://", name="shop", allow_calls=("shop",))

    @made.job(every("1h"), name="coded")
    def coded() -> None: ...

    return made


async def names(tick: Everytick) -> list[str]:
    return sorted(record.job.name for record in await tick.jobs())


async def test_a_document_is_shown_and_then_stored(client: httpx2.AsyncClient, tick: Everytick) -> None:
    """Jobs are made on a page, and become new versions there."""
    unseen = await sent(client, APPLY, document=TWO)
    assert (unseen.status_code, await names(tick)) == (409, ["coded"])
    assert "was not shown yet" in text_of(unseen)
    assert "tidy is added next: " in text_of(unseen)
    answer = await sent_again(client, APPLY, unseen)
    assert await told(client, answer) == "Jobs stored: 2 added."
    assert await names(tick) == ["coded", "sweep", "tidy"]

    seen = await sent(client, APPLY, document=TWO.replace("2h", "3h"), look="1")
    assert "sweep is changed schedule, " in text_of(seen)
    assert "1 job as before" in text_of(seen)
    assert await told(client, await sent_again(client, APPLY, seen)) == "Jobs stored: 1 changed."
    assert (await tick.job("sweep")).job.version == 2


async def test_jobs_of_pages_that_are_not_named_go_if_that_is_asked_for(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    await sent_again(client, APPLY, await sent(client, APPLY, document=TWO))
    one = TWO.partition("  sweep")[0]
    seen = await sent(client, APPLY, document=one, prune="true", look="1")
    assert "sweep is removed" in text_of(seen)
    assert await told(client, await sent_again(client, APPLY, seen)) == "Jobs stored: 1 removed."
    assert await names(tick) == ["coded", "tidy"]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("version: 1\njobs:\n  tidy: {schedule: '99 * * * *', call: 'shop.jobs:tidy'}\n", "3:"),
        ("jobs: [", "1:"),
        ("version: 1\njobs:\n  evil: {schedule: '@daily', call: 'os:system'}\n", "allow_calls"),
        ("version: 1\njobs:\n  evil: {schedule: '@daily', command: 'true'}\n", "is not taken over HTTP"),
        ("version: 1\nuse: [/etc/passwd]\njobs: {}\n", "names no files"),
        ("", "is required"),
    ],
)
async def test_what_is_wrong_stands_beside_the_document(
    client: httpx2.AsyncClient, tick: Everytick, document: str, why: str
) -> None:
    """S10, S14: neither code that is not registered nor a file of this host."""
    answer = await sent(client, APPLY, document=document)
    assert answer.status_code == 422
    assert 'id="f-document-wrong"' in answer.text
    assert why in text_of(answer)
    assert FormOnPage(answer.text).typed["document"].strip() == document.strip()
    assert await names(tick) == ["coded"]


async def test_a_job_of_another_owner_is_left_alone(client: httpx2.AsyncClient, tick: Everytick) -> None:
    answer = await sent(client, APPLY, document=TWO.replace("tidy:", "coded:"))
    assert answer.status_code in (409, 422)
    assert "coded" in text_of(answer)
    assert await names(tick) == ["coded"]


async def test_what_has_moved_since_it_was_shown_stores_nothing(client: httpx2.AsyncClient, tick: Everytick) -> None:
    await sent_again(client, APPLY, await sent(client, APPLY, document=TWO))
    seen = await sent(client, APPLY, document=TWO.replace("2h", "3h"), look="1")
    await tick.update("sweep", priority=3)
    answer = await sent_again(client, APPLY, seen)
    assert answer.status_code == 409
    assert (await tick.job("sweep")).job.version == 2

    other = await sent_again(client, APPLY, seen, document=TWO.replace("tidy:", "another:"))
    assert other.status_code == 409
    with pytest.raises(NotFound):
        await tick.job("another")
