"""`tick.people`: users, tokens, sessions and the audit of an application's store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.access import signing_in
from everytick.access.credentials import Secret, hash_of, new_secret, new_token, read_token, same
from everytick.access.passwords import Passwords
from everytick.access.people import person_of_token, person_of_user
from everytick.app.acting import acting
from everytick.domain.deeds import DeedFilter
from everytick.domain.durations import later
from everytick.domain.names import checked_name
from everytick.domain.people import (
    AddFirstUser,
    AddToken,
    BeginSession,
    CameBy,
    Doer,
    EndSession,
    FailSignIn,
    Grant,
    NewToken,
    PutUser,
    RemoveUser,
    RevokeToken,
    Role,
    SeeSession,
    SessionKind,
    SetPassword,
    Token,
    User,
    UseToken,
    WebSession,
)
from everytick.errors import Conflict, InvalidName, NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence
    from datetime import timedelta

    from everytick.access.people import Person
    from everytick.domain.deeds import DeedPage
    from everytick.stores.addresses import AnyStore


class People:
    """The people of one store. Changes are signed by the person who acts; see `acting_as`."""

    def __init__(self, opened: Callable[[], Awaitable[AnyStore]], id_of_job: Callable[[str], Awaitable[str]]) -> None:
        self._opened, self._id_of_job = opened, id_of_job
        self._passwords = Passwords()

    # ----------------------------------------------------------------------------------------------------- users

    async def users(self) -> Sequence[User]:
        """Return all users, by name."""
        return await (await self._opened()).access.users()

    async def user(self, name: str) -> User:
        """Return the user of exactly this name, or raise NotFound."""
        found = await (await self._opened()).access.users([name])
        if not found:
            raise NotFound("user", name)
        return found[0]

    async def has_users(self) -> bool:
        """Whether there is a user who can sign in. Users always have admins among them: from the first on one stays."""
        return bool(await self.users())

    async def add_user(
        self, name: str, role: Role, *, grants: Collection[Grant] = (), password: str | None = None
    ) -> None:
        """Add a user. Without a password they come by a proxy or by OpenID Connect. The first one is an admin."""
        store, checked = await self._opened(), user_name(name)
        known = await self.users()
        if any(user.name == checked for user in known):
            raise Conflict(f"there is a user {checked} already")
        if not known and role is not Role.ADMIN:
            raise Conflict("the first user must be an admin: else no user could make another one")
        hashed = None if password is None else await self._passwords.hashed(password)
        await store.access.change(PutUser(checked, role, tuple(grants)), _doer())
        if hashed is not None:
            # Part of the same deed, so that it is told once.
            await store.access.change(SetPassword(checked, hashed))

    async def set_role(self, name: str, role: Role, grants: Collection[Grant] | None = None) -> bool:
        """Set the role of a user, and their grants if any are given. Return whether anything changed."""
        user = await self.user(name)
        change = PutUser(user.name, role, user.grants if grants is None else tuple(grants))
        return await (await self._opened()).access.change(change, _doer())

    async def set_password(self, name: str, password: str) -> None:
        """Set the password of a user and end all of their sessions."""
        await self.user(name)
        change = SetPassword(name, await self._passwords.hashed(password))
        await (await self._opened()).access.change(change, _doer())

    async def change_password(self, name: str, old: str, new: str) -> None:
        """Set the password of a user who knows the old one, and end all of their sessions.

        A wrong one counts as a failed sign-in: an open browser must not be a place to guess.
        """
        access, user = (await self._opened()).access, await self.user(name)
        await self._refuse_hasty(name)
        if not await self._passwords.fits(old, user.password_hash):
            await access.change(FailSignIn(name))
            raise Conflict("this is not your password")
        await self.set_password(name, new)

    async def remove_user(self, name: str) -> None:
        """Remove a user, end their sessions and revoke their tokens. The last admin stays."""
        await (await self._opened()).access.change(RemoveUser(name), _doer())

    # ---------------------------------------------------------------------------------------------------- tokens

    async def tokens(self) -> Sequence[Token]:
        """Return all tokens, newest first, revoked and expired ones too."""
        return await (await self._opened()).access.tokens()

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

        A grant such as `billing:operator` raises its role on the jobs with that tag, `job:etl:operator` on one job.
        """
        store, made = await self._opened(), new_token()
        if owner:
            await self.user(owner)
        end = None if lasts is None else later(await store.now(), lasts).replace(microsecond=0)
        token = Token(made.id, checked_name("token", name), made.hash, role, tuple(grants), owner, end)
        await store.access.change(AddToken(token), _doer())
        return NewToken(token, made.text)

    async def revoke_token(self, named: str) -> Token:
        """Let a token open nothing from now on: by its id, or by the name of a living one. Return it."""
        found = [token for token in await self.tokens() if token.revoked_at is None and named in (token.id, token.name)]
        if not found:
            raise NotFound("token", named)
        await (await self._opened()).access.change(RevokeToken(found[0].id), _doer())
        return found[0]

    async def person_of_token(self, text: str, address: str) -> Person | None:
        """Return who asks with this token, None if it opens nothing."""
        read = read_token(text)
        if read is None:
            return None
        store = await self._opened()
        found, now = await store.access.tokens([read[0]]), await store.now()
        # Compared also where there is none, so that the time tells nothing about ids.
        token = found[0] if found else None
        is_right = same(read[1], token.hash if token is not None else hash_of(""))
        if token is None or not is_right or not token.is_live(now):
            return None
        if token.used_at is None or now - token.used_at >= signing_in.TOKEN_SEEN_EVERY:
            await store.access.change(UseToken(token.id))
        return person_of_token(token, address)

    # -------------------------------------------------------------------------------------------------- sessions

    async def sign_in(self, name: str, password: str, address: str) -> Secret | None:
        """Begin a session and return its secret; None if name and password do not fit.

        An unknown name takes as long and is counted as well, so that the answer does not tell which names there are.
        Raises SignInDelayed after many failures, before the password is looked at.
        """
        access = (await self._opened()).access
        await self._refuse_hasty(name)
        found = await access.users([name])
        user = found[0] if found else None
        if not await self._passwords.fits(password, None if user is None else user.password_hash) or user is None:
            await access.change(FailSignIn(name))
            return None
        return await self.begin_session(user, address)

    async def _refuse_hasty(self, name: str) -> None:
        """Raise SignInDelayed if an attempt with this name has to wait after those that went wrong."""
        store = await self._opened()
        wait = signing_in.wait_after(await store.access.failures(name), await store.now())
        if wait:
            raise signing_in.SignInDelayed(max(1, round(wait.total_seconds())))

    async def begin_session(self, user: User, address: str) -> Secret:
        """Begin the session of a user who has proved who they are, and return its secret."""
        store, made = await self._opened(), new_secret()
        now = await store.now()
        end = signing_in.session_end(now, now)
        session = WebSession(made.hash, SessionKind.COOKIE, user, now, end, now, address)
        await store.access.change(BeginSession(session), Doer(user.name, CameBy.SESSION, address))
        return made

    async def person_of_session(self, secret: str, address: str) -> Person | None:
        """Return the person whose session has this secret, with the role that they have now; None if it has ended."""
        store, hashed = await self._opened(), hash_of(secret)
        session = await store.access.session(hashed)
        if session is None or session.kind is not SessionKind.COOKIE or session.user is None:
            return None
        now = await store.now()
        if signing_in.is_seen_anew(session, now):
            await store.access.change(SeeSession(hashed, signing_in.session_end(session.began_at, now)))
        return person_of_user(session.user, CameBy.SESSION, address)

    async def sign_out(self, secret: str) -> bool:
        """End the session with this secret. Return whether there was one."""
        return await self.end_session(hash_of(secret))

    async def end_session(self, hashed: str) -> bool:
        """End the session that is listed under this hash. Return whether there was one."""
        return await (await self._opened()).access.change(EndSession(hashed), acting())

    async def sessions(self) -> Sequence[WebSession]:
        """Return the sessions of browsers that have not ended, the last used first."""
        return await (await self._opened()).access.sessions()

    # --------------------------------------------------------------------------------------------- the first admin

    async def first_link(self) -> Secret:
        """Return the secret of a link that makes the first admin, once and within an hour."""
        store, made = await self._opened(), new_secret()
        now = await store.now()
        link = WebSession(made.hash, SessionKind.LINK, None, now, now + signing_in.LINK_LASTS, now)
        await store.access.change(BeginSession(link))
        return made

    async def is_first_link(self, secret: str) -> bool:
        """Whether this link still makes the first admin."""
        found = await (await self._opened()).access.session(hash_of(secret))
        return found is not None and found.kind is SessionKind.LINK and not await self.has_users()

    async def take_first_link(self, secret: str, name: str, password: str, address: str) -> Secret | None:
        """Make the first admin and begin their session; None if the link is used, over or unknown."""
        checked, hashed = user_name(name), await self._passwords.hashed(password)
        change = AddFirstUser(checked, hashed, hash_of(secret))
        doer = Doer(checked, CameBy.SESSION, address)
        if not await (await self._opened()).access.change(change, doer):
            return None
        return await self.begin_session(await self.user(checked), address)

    # ----------------------------------------------------------------------------------------------------- deeds

    async def deeds(
        self, *, by: str | None = None, job: str | None = None, before: int | None = None, limit: int = 100
    ) -> DeedPage:
        """Return a page of what people did, newest first: of one person, about one job, older than a number.

        Nothing changes or deletes a deed. A job is found by the name that it has or had.
        """
        id_ = None if job is None else await self._id_of_job(job)
        return await (await self._opened()).access.deeds(DeedFilter(by, id_, before, limit))


def user_name(name: str) -> str:
    """Return the name if a user may have it."""
    checked = checked_name("user", name)
    if ":" in checked or "/" in checked:
        # `code:shop` and `ann/ci` are names of code and of tokens in the audit.
        raise InvalidName("user", name, "must have neither a colon nor a slash")
    return checked


def _doer() -> Doer:
    """Return the person who acts; code of the program itself where none does."""
    return acting() or Doer("code", CameBy.COMMAND)
