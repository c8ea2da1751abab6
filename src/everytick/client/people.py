"""`client.people`: users, tokens and the audit of a service, with the verbs of `tick.people`.

A password goes to the service as it is, and the text of a new token comes back once: use https where others listen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.answers import people
from everytick.client.questions import length_text
from everytick.domain.people import NewToken
from everytick.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import timedelta

    from everytick.client.service_calls import ServiceCalls
    from everytick.domain.deeds import DeedPage
    from everytick.domain.people import Grant, Role, Token, User


class RemotePeople:
    """The people of one service. Changes are signed with the name that the client's token proves."""

    def __init__(self, asking: ServiceCalls) -> None:
        self._asking = asking

    # ----------------------------------------------------------------------------------------------------- users

    async def users(self) -> Sequence[User]:
        """Return all users, by name. The hash of a password stays with the service."""
        return [people.user_of(user) for user in (await self._asking.read("/api/users"))["users"]]

    async def user(self, name: str) -> User:
        """Return the user of exactly this name, or raise NotFound."""
        users = [user for user in await self.users() if user.name == name]
        if not users:
            raise NotFound("user", name)
        return users[0]

    async def add_user(
        self, name: str, role: Role, *, grants: Collection[Grant] = (), password: str | None = None
    ) -> None:
        """Add a user. Without a password they come by a proxy or by OpenID Connect. The first one is an admin."""
        body = {"name": name, "role": str(role), "grants": _texts(grants), "password": password}
        await self._asking.change("POST", "/api/users", body=body)

    async def set_role(self, name: str, role: Role, grants: Collection[Grant] | None = None) -> bool:
        """Set the role of a user, and their grants if any are given. Return whether anything changed."""
        user = await self.user(name)
        wanted = user.grants if grants is None else tuple(grants)
        body = {"role": str(role), "grants": _texts(wanted)}
        await self._asking.change("PUT", "/api/users/{}", name, body=body, again=True)
        return (user.role, user.grants) != (role, wanted)

    async def set_password(self, name: str, password: str) -> None:
        """Set the password of a user and end all of their sessions."""
        await self._asking.change("PUT", "/api/users/{}/password", name, body={"password": password}, again=True)

    async def remove_user(self, name: str) -> None:
        """Remove a user, end their sessions and revoke their tokens. The last admin stays."""
        await self._asking.change("DELETE", "/api/users/{}", name)

    # ---------------------------------------------------------------------------------------------------- tokens

    async def tokens(self) -> Sequence[Token]:
        """Return all tokens, newest first, revoked and expired ones too."""
        return [people.token_of(token) for token in (await self._asking.read("/api/tokens"))["tokens"]]

    async def add_token(
        self,
        name: str,
        role: Role,
        *,
        grants: Collection[Grant] = (),
        owner: str = "",
        lasts: timedelta | None = None,
    ) -> NewToken:
        """Add a token and return it with its text, which is shown this once. With an owner it may do no more than they.

        If the answer is lost, the token is there and its text is lost: revoke it by its name.
        """
        more = {"grants": _texts(grants), "owner": owner, "lasts": length_text(lasts)}
        told = await self._asking.change("POST", "/api/tokens", body={"name": name, "role": str(role), **more})
        return NewToken(people.token_of(told), told["text"])

    async def revoke_token(self, named: str) -> Token:
        """Let a token open nothing from now on: by its id, or by the name of a living one. Return it."""
        tokens = [
            token for token in await self.tokens() if token.revoked_at is None and named in (token.id, token.name)
        ]
        if not tokens:
            raise NotFound("token", named)
        await self._asking.change("DELETE", "/api/tokens/{}", tokens[0].id)
        return tokens[0]

    # ----------------------------------------------------------------------------------------------------- deeds

    async def deeds(
        self, *, by: str | None = None, job: str | None = None, before: int | None = None, limit: int = 100
    ) -> DeedPage:
        """Return a page of what people did, newest first: of one person, about one job, older than a number."""
        return people.deeds_of(await self._asking.read("/api/audit", by=by, job=job, before=before, limit=limit))


def _texts(grants: Collection[Grant]) -> list[str]:
    return [str(grant) for grant in grants]
