"""`client.people`: users, tokens and the audit over HTTP, as `tick.people` has them."""

import inspect
from dataclasses import replace
from datetime import timedelta

import pytest

from everytick.answers.people import NOT_TOLD
from everytick.app.people import People
from everytick.client import Client
from everytick.client.people import RemotePeople
from everytick.domain.people import Grant, Role
from everytick.errors import Conflict, InvalidName, NotFound
from tests.unit.web.api.conftest import JOB, World

VERBS = [name for name in vars(RemotePeople) if not name.startswith("_")]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_the_arguments_that_it_has_in_the_application(verb: str) -> None:
    def arguments(kind: type) -> inspect.Signature:
        return inspect.signature(getattr(kind, verb))

    assert arguments(RemotePeople) == arguments(People)


async def test_users_are_added_changed_and_removed(world: World, client: Client) -> None:
    people, grants = client.people, (Grant("crm", Role.OPERATOR),)
    await people.add_user("ann@example.org", Role.VIEWER, password="correct horse battery staple")
    assert await people.set_role("ann@example.org", Role.OPERATOR, grants)
    assert not await people.set_role("ann@example.org", Role.OPERATOR), "grants stay where none are given"
    await people.set_password("ann@example.org", "another horse battery staple")

    ours = await world.tick.people.user("ann@example.org")
    assert (ours.role, ours.grants) == (Role.OPERATOR, grants)
    assert await people.user("ann@example.org") == replace(ours, password_hash=NOT_TOLD)
    assert await world.tick.people.sign_in("ann@example.org", "another horse battery staple", "") is not None
    assert [user.name for user in await people.users()] == [user.name for user in await world.tick.people.users()]
    await people.remove_user("ann@example.org")
    with pytest.raises(NotFound, match=r"there is no user 'ann@example\.org'"):
        await people.user("ann@example.org")


async def test_the_text_of_a_token_is_told_once(world: World, client: Client) -> None:
    made = await client.people.add_token("deploy", Role.OPERATOR, owner="zoe", lasts=timedelta(days=90))
    person = await world.tick.people.person_of_token(made.text, "")

    assert person is not None
    assert (person.name, person.role) == ("zoe/deploy", Role.OPERATOR)
    assert made.text not in repr(made)
    ours = [replace(each, hash=NOT_TOLD, owner_role=None) for each in await world.tick.people.tokens()]
    assert await client.people.tokens() == ours
    assert (await client.people.revoke_token("deploy")).id == made.token.id
    assert await world.tick.people.person_of_token(made.text, "") is None
    with pytest.raises(NotFound, match="there is no token 'deploy'"):
        await client.people.revoke_token("deploy")


async def test_mistakes_are_the_errors_of_the_application(world: World, client: Client) -> None:
    with pytest.raises(Conflict, match="there is a user zoe already"):
        await client.people.add_user("zoe", Role.VIEWER)
    with pytest.raises(InvalidName, match="neither a colon nor a slash"):
        await client.people.add_user("code:x", Role.VIEWER)
    with pytest.raises(NotFound, match="there is no user 'nobody'"):
        await client.people.set_password("nobody", "correct horse battery staple")


async def test_deeds_are_read_page_by_page(world: World, client: Client) -> None:
    await client.pause(JOB, reason="holiday")
    await client.people.remove_user("ben")
    ours = await world.tick.people.deeds(limit=2)

    assert await client.people.deeds(limit=2) == ours
    assert await client.people.deeds(before=ours.before) == await world.tick.people.deeds(before=ours.before)
    assert str((await client.people.deeds(job=JOB)).deeds[0]) == f"ann paused job {JOB}: holiday"
    assert await client.people.deeds(by="nobody") == await world.tick.people.deeds(by="nobody")
