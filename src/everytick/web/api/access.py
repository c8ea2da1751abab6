"""`/api/users`, `/api/tokens`, `/api/audit`: people and what they did. No route changes or deletes a deed."""

from datetime import timedelta
from typing import Annotated

from fastapi import Query, Response
from pydantic import Field, SecretStr

from everytick.access.passwords import LONGEST_PASSWORD
from everytick.access.people import Role
from everytick.answers.people import deed_data, token_data, user_data
from everytick.domain.durations import duration
from everytick.domain.people import grant_of, role_of
from everytick.web.api.shapes import By, Flag, Moment, Routes, Shape, done, told
from everytick.web.asking import Tick, Who

routes = Routes("access")
router = routes.router

Words = Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=100)]
RoleWord = Annotated[str, Field(pattern="^(viewer|operator|admin)$", examples=["operator"])]
Grants = Annotated[list[str], Field(description="Tags on which the role is higher.", examples=[["billing:operator"]])]
GivenName = Annotated[str, Field(min_length=1, max_length=200, examples=["ann"])]
TokenName = Annotated[str, Field(min_length=1, max_length=200, examples=["deploy"])]
Password = Annotated[SecretStr, Field(max_length=LONGEST_PASSWORD, examples=["correct horse battery staple"])]
TokenId = Annotated[str, Field(examples=["3f2a1b2c4d5e6f70"])]

# ------------------------------------------------------------------------------------------------------------ requests


class GivenRole(Shape):
    """The role of a user and the tags on which it is higher."""

    role: RoleWord
    grants: Words = Field(default=[], examples=[["billing:operator"]])


class GivenUser(GivenRole):
    """A new user. Without a password they come by a proxy or by OpenID Connect."""

    name: GivenName
    password: Annotated[Password | None, Field(examples=["correct horse battery staple"])] = None


class GivenPassword(Shape):
    """A new password."""

    password: Password


class GivenToken(GivenRole):
    """A new token. It ends after `lasts`, such as `90d`; with an owner it may do no more than this user."""

    name: TokenName
    owner: str = Field(default="", max_length=200, examples=[""])
    lasts: str | None = Field(default=None, max_length=50, examples=["90d"])


# ------------------------------------------------------------------------------------------------------------- answers


class PersonData(Shape):
    """Who asks. `came_by` says how they proved it."""

    name: By
    role: RoleWord
    grants: Grants
    came_by: Annotated[str, Field(examples=["token"])]


class UserData(Shape):
    """A user."""

    name: By
    role: RoleWord
    grants: Grants
    has_password: Flag
    added_at: Moment | None
    added_by: By


class UsersData(Shape):
    """Every user."""

    users: list[UserData]


class TokenData(Shape):
    """A token, without its text. `used_at` is when it was used last, to the hour."""

    id: TokenId
    name: TokenName
    role: RoleWord
    grants: Grants
    owner: By | None
    is_live: Flag
    expires_at: Moment | None
    added_at: Moment | None
    added_by: By
    used_at: Moment | None
    revoked_at: Moment | None


class NewTokenData(TokenData):
    """A token that was added. Its text is shown this once."""

    text: Annotated[str, Field(description="What its program sends.", examples=["tick_…"])]


class TokensData(Shape):
    """Every token."""

    tokens: list[TokenData]


class DeedData(Shape):
    """What a person did: what, to which subject, when, and from where."""

    number: Annotated[int, Field(examples=[7])]
    at: Moment
    by: By
    came_by: Annotated[str, Field(examples=["token"])]
    address: Annotated[str, Field(examples=["192.0.2.7"])]
    did: Annotated[str, Field(examples=["pause"])]
    subject: Annotated[str, Field(examples=["nightly-backup"])]
    detail: Annotated[str, Field(examples=[""])]
    reason: Annotated[str, Field(examples=["holiday"])]
    job_id: Annotated[str | None, Field(examples=["job_0c5c1d1f7f0e5f0f9a3f7c1f2d9b8a61"])]
    text: Annotated[str, Field(description="The same as a sentence.", examples=["paused nightly-backup"])]


class DeedsData(Shape):
    """A page of deeds. `before` asks for the next one, and is null on the last."""

    deeds: list[DeedData]
    before: Annotated[int | None, Field(examples=[6])]


@routes.question("/api/me", PersonData)
async def me(who: Who) -> Response:
    """Return the person who asks, with role and grants."""
    grants = [str(grant) for grant in who.grants]
    return told({"name": who.name, "role": str(who.role), "grants": grants, "came_by": str(who.came_by)})


# ---------------------------------------------------------------------------------------------------------------- users


@routes.question("/api/users", UsersData, role=Role.ADMIN)
async def list_users(tick: Tick) -> Response:
    """Return every user, by name."""
    return told({"users": [user_data(user) for user in await tick.people.users()]})


@routes.operation("/api/users", UserData, status=201, role=Role.ADMIN)
async def add_user(tick: Tick, body: GivenUser) -> Response:
    """Add a user and return them. The first one must be an admin."""
    password = None if body.password is None else body.password.get_secret_value()
    grants = [grant_of(text) for text in body.grants]
    await tick.people.add_user(body.name, role_of(body.role), grants=grants, password=password)
    return told(user_data(await tick.people.user(body.name)), 201)


@routes.operation("/api/users/{user:name}", UserData, role=Role.ADMIN, method="PUT")
async def set_role(tick: Tick, user: str, body: GivenRole) -> Response:
    """Set role and grants of a user and return them. It holds from the next request on."""
    await tick.people.set_role(user, role_of(body.role), [grant_of(text) for text in body.grants])
    return told(user_data(await tick.people.user(user)))


@routes.operation("/api/users/{user:name}/password", None, status=204, role=Role.ADMIN, method="PUT")
async def set_password(tick: Tick, user: str, body: GivenPassword) -> Response:
    """Set the password of a user and end their sessions."""
    await tick.people.set_password(user, body.password.get_secret_value())
    return done()


@routes.operation("/api/users/{user:name}", None, status=204, role=Role.ADMIN, method="DELETE")
async def remove_user(tick: Tick, user: str) -> Response:
    """Remove a user, end their sessions and revoke their tokens. The last admin stays."""
    await tick.people.remove_user(user)
    return done()


# --------------------------------------------------------------------------------------------------------------- tokens


@routes.question("/api/tokens", TokensData, role=Role.ADMIN)
async def list_tokens(tick: Tick) -> Response:
    """Return every token, newest first, revoked and expired ones too."""
    now = await tick.now()
    return told({"tokens": [token_data(token, now) for token in await tick.people.tokens()]})


@routes.operation("/api/tokens", NewTokenData, status=201, role=Role.ADMIN)
async def add_token(tick: Tick, body: GivenToken) -> Response:
    """Add a token. `text` is what its program sends; it is shown this once."""
    made = await tick.people.add_token(
        body.name,
        role_of(body.role),
        grants=[grant_of(text) for text in body.grants],
        owner=body.owner,
        lasts=_lasts(body.lasts),
    )
    return told({**token_data(made.token, await tick.now()), "text": made.text}, 201)


def _lasts(given: str | None) -> timedelta | None:
    return None if given is None else duration(given)


@routes.operation("/api/tokens/{token:name}", None, status=204, role=Role.ADMIN, method="DELETE")
async def revoke_token(tick: Tick, token: str) -> Response:
    """Let a token open nothing from now on: by its id, or by the name of a living one."""
    await tick.people.revoke_token(token)
    return done()


# ---------------------------------------------------------------------------------------------------------------- audit


@routes.question("/api/audit", DeedsData)
async def list_deeds(
    tick: Tick,
    by: Annotated[str | None, Query(max_length=200, examples=["ann"])] = None,
    job: Annotated[str | None, Query(max_length=200, examples=["nightly-backup"])] = None,
    before: Annotated[int | None, Query(ge=1, lt=2**63, examples=[6])] = None,
    limit: Annotated[int, Query(ge=1, le=1000, examples=[100])] = 100,
) -> Response:
    """Return deeds, newest first. `before` of the answer asks for the next page; it is null on the last."""
    found = await tick.people.deeds(by=by, job=job, before=before, limit=limit)
    return told({"deeds": [deed_data(deed) for deed in found.deeds], "before": found.before})
