"""`store.access` in memory: the readable specification of people, sessions and deeds."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from everytick.domain import people
from everytick.domain.changes import Edit
from everytick.domain.deeds import Deed, DeedFilter, DeedPage, Said, said_of_access, said_of_edit, said_of_fact
from everytick.domain.facts import LIMITING, Cancel, Fact
from everytick.domain.people import AccessChange, Doer, Role, SessionKind, SignInFailures, Token, User, WebSession
from everytick.errors import Conflict, NotFound
from everytick.stores.access_rules import (
    FAILURES_KEPT,
    MOST_SESSIONS,
    as_of_page,
    last_admin,
    name_of_failures,
    token_name_taken,
)
from everytick.stores.base import Receipt, Stored


class _Jobs(Protocol):
    """What this needs of the store whose changes it signs."""

    async def request(self, subject: str, fact: Fact) -> Receipt: ...
    async def apply(self, changes: Sequence[Edit], by: str = "") -> list[Stored]: ...
    async def purge(self, job_id: str, limit: int = 1000) -> bool: ...
    def job_name(self, job_id: str) -> str | None: ...
    def job_of_occurrence(self, occurrence_id: str) -> str | None: ...


class MemoryAccess:
    """People, their secrets and sessions, deeds, and changes that are written together with their deed."""

    def __init__(self, jobs: _Jobs, clock: Callable[[], datetime]) -> None:
        self._jobs, self._now = jobs, clock
        self._users: dict[str, User] = {}
        self._tokens: dict[str, Token] = {}
        self._sessions: dict[str, WebSession] = {}
        self._failures: dict[str, SignInFailures] = {}
        self._deeds: list[Deed] = []

    # ------------------------------------------------------------------------------------- changes with their deed

    async def request(self, subject: str, fact: Fact, doer: Doer) -> Receipt:
        """Write one fact, as `JobStore.request` does, and its deed in the same transaction."""
        receipt = await self._jobs.request(subject, fact)
        if receipt.changed:
            job_id, shown = self._shown(subject, fact, receipt)
            self._tell(doer, said_of_fact(fact), shown, job_id)
        return receipt

    def _shown(self, subject: str, fact: Fact, receipt: Receipt) -> tuple[str | None, str]:
        if isinstance(fact, LIMITING):
            return None, receipt.id
        if not isinstance(fact, Cancel):
            return subject, f"job {self._jobs.job_name(subject)}"
        job_id = self._jobs.job_of_occurrence(subject)
        name = None if job_id is None else self._jobs.job_name(job_id)
        return job_id, f"occurrence {subject}" + (f" of job {name}" if name is not None else "")

    async def apply(self, changes: Sequence[Edit], by: str, doer: Doer) -> list[Stored]:
        """Make every change, as `JobStore.apply` does, and its deed in the same transaction."""
        stored = await self._jobs.apply(changes, by)
        for change, each in zip(changes, stored, strict=True):
            if each.changed:
                self._tell(doer, said_of_edit(change, each.version), f"job {change.name}", each.job_id)
        return stored

    async def purge(self, job_id: str, limit: int, doer: Doer) -> bool:
        """Delete a removed job, as `JobStore.purge` does, and tell the deed with the last of it."""
        name = self._jobs.job_name(job_id)
        is_deleted = await self._jobs.purge(job_id, limit)
        if is_deleted and name is not None:
            self._tell(doer, ("purged", "and all of its history", ""), f"job {name}", job_id)
        return is_deleted

    def _tell(self, doer: Doer, said: Said, subject: str, job_id: str | None = None) -> None:
        did, detail, reason = said
        deed = Deed(len(self._deeds) + 1, self._now(), doer, did, subject, detail, reason, job_id)
        self._deeds.append(deed)

    # ------------------------------------------------------------------------------------------ people and secrets

    async def change(self, change: AccessChange, doer: Doer | None = None) -> bool:
        """Change what is known of people, and tell the deed. Return whether anything changed."""
        is_new = isinstance(change, people.PutUser) and change.name not in self._users
        changed = self._change(change, "" if doer is None else doer.name, self._now())
        said = said_of_access(change, is_new=is_new) if changed else None
        if said is not None and doer is not None:
            did, shown, detail = said
            self._tell(doer, (did, detail, ""), shown)
        return changed

    def _change(self, change: AccessChange, by: str, now: datetime) -> bool:
        match change:
            case people.PutUser():
                return self._put_user(change, by, now)
            case people.AddFirstUser():
                return self._add_first_user(change, now)
            case people.SetPassword():
                user = self._user(change.name)
                self._users[user.name] = replace(user, password_hash=change.password_hash)
                self._end_sessions(user.name)
                return True
            case people.RemoveUser():
                self._refuse_without_admin(change.name, None)
                del self._users[self._user(change.name).name]
                self._end_sessions(change.name)
                for token in self._tokens.values():
                    if token.owner == change.name and token.revoked_at is None:
                        self._tokens[token.id] = replace(token, revoked_at=now)
                return True
            case people.AddToken():
                token = replace(change.token, added_at=now, added_by=by)
                if any(each.name == token.name and each.revoked_at is None for each in self._tokens.values()):
                    raise Conflict(token_name_taken(token.name))
                self._tokens[token.id] = token
                return True
            case people.RevokeToken():
                known = self._tokens.get(change.id)
                if known is None or known.revoked_at is not None:
                    return False
                self._tokens[change.id] = replace(known, revoked_at=now)
                return True
            case people.UseToken():
                known = self._tokens.get(change.id)
                if known is not None:
                    self._tokens[change.id] = replace(known, used_at=now)
                return known is not None
            case people.BeginSession():
                return self._begin_session(change.session, now)
            case people.SeeSession():
                session = self._sessions.get(change.hash)
                if session is not None:
                    self._sessions[change.hash] = replace(session, seen_at=now, expires_at=change.expires_at)
                return session is not None
            case people.EndSession():
                return self._sessions.pop(change.hash, None) is not None
            case people.FailSignIn():
                name = name_of_failures(change.name)
                count = self._failures.get(name, SignInFailures()).count + 1
                self._failures[name] = SignInFailures(count, now)
                self._forget_failures(now)
                return True

    def _put_user(self, change: people.PutUser, by: str, now: datetime) -> bool:
        self._refuse_without_admin(change.name, change.role)
        known = self._users.get(change.name)
        user = User(change.name, change.role, added_at=now, added_by=by) if known is None else known
        self._users[change.name] = replace(user, role=change.role, grants=change.grants)
        return known != self._users[change.name]

    def _add_first_user(self, change: people.AddFirstUser, now: datetime) -> bool:
        link = self._sessions.get(change.link)
        if self._users or link is None or link.kind is not SessionKind.LINK or link.expires_at <= now:
            return False
        del self._sessions[change.link]
        self._users[change.name] = User(change.name, Role.ADMIN, (), change.password_hash, now)
        return True

    def _begin_session(self, session: WebSession, now: datetime) -> bool:
        self._sessions = {hash: each for hash, each in self._sessions.items() if each.expires_at > now}
        self._sessions[session.hash] = session
        if session.user is not None:
            self._failures.pop(name_of_failures(session.user.name), None)
            self._forget_failures(now)
        return True

    def _refuse_without_admin(self, name: str, role: Role | None) -> None:
        if last_admin(list(self._users.values()), name, role):
            raise Conflict(f"user {name} is the last admin: make another user an admin first")

    def _user(self, name: str) -> User:
        if name not in self._users:
            raise NotFound("user", name)
        return self._users[name]

    def _end_sessions(self, name: str) -> None:
        self._sessions = {
            hash: each for hash, each in self._sessions.items() if each.user is None or each.user.name != name
        }

    def _forget_failures(self, now: datetime) -> None:
        kept_since = now - FAILURES_KEPT
        self._failures = {
            name: each for name, each in self._failures.items() if each.failed_at and each.failed_at >= kept_since
        }

    # -------------------------------------------------------------------------------------------------- questions

    async def users(self, names: Collection[str] | None = None) -> Sequence[User]:
        """Return these users, or all, by name."""
        return [self._users[name] for name in sorted(self._users) if names is None or name in names]

    async def tokens(self, ids: Collection[str] | None = None) -> Sequence[Token]:
        """Return these tokens, or all, newest first."""
        found = [self._with_owner(token) for token in self._tokens.values() if ids is None or token.id in ids]
        found.sort(key=lambda token: token.id)
        return sorted(found, key=lambda token: token.added_at or self._now(), reverse=True)

    def _with_owner(self, token: Token) -> Token:
        owner = self._users.get(token.owner)
        return token if owner is None else replace(token, owner_role=owner.role, owner_grants=owner.grants)

    async def session(self, hash: str) -> WebSession | None:
        """Return the session that has not ended, with its user as they are now."""
        found = self._sessions.get(hash)
        if found is None or found.expires_at <= self._now():
            return None
        if found.kind is SessionKind.LINK or found.user is None:
            return found
        user = self._users.get(found.user.name)
        return None if user is None else replace(found, user=user)

    async def sessions(self) -> Sequence[WebSession]:
        """Return the sessions of browsers that have not ended, the last used first."""
        found = [await self.session(hash) for hash in sorted(self._sessions)]
        open_ = [each for each in found if each is not None and each.kind is SessionKind.COOKIE]
        return sorted(open_, key=lambda each: each.seen_at, reverse=True)[:MOST_SESSIONS]

    async def failures(self, name: str) -> SignInFailures:
        """Return how often signing in with this name went wrong."""
        return self._failures.get(name_of_failures(name), SignInFailures())

    async def deeds(self, filter: DeedFilter) -> DeedPage:
        """Return a page of deeds, newest first."""
        found = [
            deed
            for deed in reversed(self._deeds)
            if filter.by in (None, deed.doer.name)
            and filter.job_id in (None, deed.job_id)
            and (filter.before is None or deed.number < filter.before)
        ]
        return as_of_page(found[: filter.limit + 1], filter.limit)
