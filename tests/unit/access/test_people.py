"""Roles and grants: what a person may do."""

import pytest

from everytick.access.people import CameBy, Grant, Person, Role, local_admin, person_of_token
from everytick.domain.people import Token, role_of
from everytick.errors import InvalidSetting


def test_a_role_may_do_what_those_below_it_may() -> None:
    assert Role.VIEWER < Role.OPERATOR < Role.ADMIN
    assert [Person("ana", Role.OPERATOR).may(role) for role in Role] == [True, True, False]


def test_a_grant_raises_the_role_on_jobs_with_its_tag_alone() -> None:
    ana = Person("ana", Role.VIEWER, (Grant("billing", Role.OPERATOR), Grant("etl", Role.ADMIN)))

    assert ana.may(Role.OPERATOR, ["billing", "nightly"])
    assert not ana.may(Role.ADMIN, ["billing"])
    assert ana.may(Role.ADMIN, ["etl", "billing"])
    assert not ana.may(Role.OPERATOR, ["nightly"])
    assert not ana.may(Role.OPERATOR)


def test_a_grant_never_lowers_a_role() -> None:
    ana = Person("ana", Role.ADMIN, (Grant("billing", Role.VIEWER),))

    assert ana.role_on(["billing"]) is Role.ADMIN


def test_payloads_are_hidden_from_viewers() -> None:
    assert not Person("ana", Role.VIEWER).sees_payloads()
    assert Person("ana", Role.VIEWER, (Grant("billing", Role.OPERATOR),)).sees_payloads(["billing"])
    assert Person("ana", Role.OPERATOR).sees_payloads()


def test_a_service_without_users_is_the_local_admins() -> None:
    assert local_admin("127.0.0.1") == Person("local", Role.ADMIN, (), CameBy.LOCAL, "127.0.0.1")


@pytest.mark.parametrize(
    ("word", "role"),
    [("viewer", Role.VIEWER), ("read", Role.VIEWER), ("operate", Role.OPERATOR), ("admin", Role.ADMIN)],
)
def test_roles_are_read_from_their_words_and_scopes(word: str, role: Role) -> None:
    assert role_of(word) is role


def test_another_word_is_no_role() -> None:
    with pytest.raises(InvalidSetting, match="viewer, operator, admin"):
        role_of("root")


@pytest.mark.parametrize(
    ("token", "owner", "expected"),
    [
        (Role.ADMIN, Role.VIEWER, Role.VIEWER),
        (Role.VIEWER, Role.ADMIN, Role.VIEWER),
        (Role.ADMIN, None, Role.VIEWER),
        (Role.OPERATOR, Role.OPERATOR, Role.OPERATOR),
    ],
)
def test_a_token_may_do_no_more_than_its_owner_may_now(token: Role, owner: Role | None, expected: Role) -> None:
    """S3, S6: also where the owner's role was lowered, or the owner removed, after the token was made."""
    grants = (Grant("billing", Role.ADMIN),)
    person = person_of_token(Token("id", "ci", "hash", token, grants, owner="ana", owner_role=owner))

    assert person.role is expected
    assert person.role_on(["billing"]) is (owner or Role.VIEWER)


def test_a_token_without_an_owner_may_do_what_it_says() -> None:
    assert person_of_token(Token("id", "ci", "hash", Role.ADMIN)).role is Role.ADMIN
