"""`store.access` in memory: the readable specification of people, sessions and deeds."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

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
from everytick.stores.memory.base import Shared
from everytick.stores.memory.facts import FactVerbs
from everytick.stores.memory.jobs import JobVerbs


class MemoryAccess:
    """People, their secrets and sessions, deeds, and changes that are written together with their deed."""

    def __init__(self, shared: Shared, facts: FactVerbs, jobs: JobVerbs) -> None:
        self._shared, self._tables, self._facts, self._jobs = shared, shared.tables, facts, jobs

    # ------------------------------------------------------------------------------------- changes with their deed

    async def request(self, subject: str, fact: Fact, doer: Doer) -> Receipt:
        """Write one fact, as `JobStore.request` does, and its deed in the same transaction."""
        receipt = self._facts.request(subject, fact)
        if receipt.changed:
            job_id, shown = self._shown(subject, fact, receipt)
            self._tell(doer, said_of_fact(fact), shown, job_id)
        return receipt

    def _shown(self, subject: str, fact: Fact, receipt: Receipt) -> tuple[str | None, str]:
        if isinstance(fact, LIMITING):
            return None, receipt.id
        if not isinstance(fact, Cancel):
            return subject, f"job {self._job_name(subject)}"
        known = self._tables.occurrences.get(subject)
        job_id = None if known is None else known.job.id
        name = None if job_id is None else self._job_name(job_id)
        return job_id, f"occurrence {subject}" + (f" of job {name}" if name is not None else "")

    def _job_name(self, job_id: str) -> str | None:
        row = self._tables.jobs.get(job_id)
        return None if row is None else row.name

    async def apply(self, changes: Sequence[Edit], by: str, doer: Doer) -> list[Stored]:
        """Make every change, as `JobStore.apply` does, and its deed in the same transaction."""
        stored = self._jobs.apply(changes, by)
        for change, result in zip(changes, stored, strict=True):
            if result.changed:
                self._tell(doer, said_of_edit(change, result.version), f"job {change.name}", result.job_id)
        return stored

    async def purge(self, job_id: str, limit: int, doer: Doer) -> bool:
        """Delete a removed job, as `JobStore.purge` does, and tell the deed with the last of it."""
        name = self._job_name(job_id)
        is_deleted = self._jobs.purge(job_id, limit)
        if is_deleted and name is not None:
            self._tell(doer, ("purged", "and all of its history", ""), f"job {name}", job_id)
        return is_deleted

    def _tell(self, doer: Doer, said: Said, subject: str, job_id: str | None = None) -> None:
        did, detail, reason = said
        deed = Deed(len(self._tables.deeds) + 1, self._shared.now(), doer, did, subject, detail, reason, job_id)
        self._tables.deeds.append(deed)

    # ------------------------------------------------------------------------------------------ people and secrets

    async def change(self, change: AccessChange, doer: Doer | None = None) -> bool:
        """Change what is known of people, and tell the deed. Return whether anything changed."""
        is_new = isinstance(change, people.PutUser) and change.name not in self._tables.users
        changed = self._change(change, "" if doer is None else doer.name, self._shared.now())
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
                self._tables.users[user.name] = replace(user, password_hash=change.password_hash)
                self._end_sessions(user.name)
                return True
            case people.RemoveUser():
                self._refuse_without_admin(change.name, None)
                del self._tables.users[self._user(change.name).name]
                self._end_sessions(change.name)
                for token in self._tables.tokens.values():
                    if token.owner == change.name and token.revoked_at is None:
                        self._tables.tokens[token.id] = replace(token, revoked_at=now)
                return True
            case people.AddToken():
                token = replace(change.token, added_at=now, added_by=by)
                if any(known.name == token.name and known.revoked_at is None for known in self._tables.tokens.values()):
                    raise Conflict(token_name_taken(token.name))
                self._tables.tokens[token.id] = token
                return True
            case people.RevokeToken():
                known = self._tables.tokens.get(change.id)
                if known is None or known.revoked_at is not None:
                    return False
                self._tables.tokens[change.id] = replace(known, revoked_at=now)
                return True
            case people.UseToken():
                known = self._tables.tokens.get(change.id)
                if known is not None:
                    self._tables.tokens[change.id] = replace(known, used_at=now)
                return known is not None
            case people.BeginSession():
                return self._begin_session(change.session, now)
            case people.SeeSession():
                session = self._tables.sessions.get(change.hash)
                if session is not None:
                    self._tables.sessions[change.hash] = replace(session, seen_at=now, expires_at=change.expires_at)
                return session is not None
            case people.EndSession():
                return self._tables.sessions.pop(change.hash, None) is not None
            case people.FailSignIn():
                name = name_of_failures(change.name)
                count = self._tables.failures.get(name, SignInFailures()).count + 1
                self._tables.failures[name] = SignInFailures(count, now)
                self._forget_failures(now)
                return True

    def _put_user(self, change: people.PutUser, by: str, now: datetime) -> bool:
        self._refuse_without_admin(change.name, change.role)
        known = self._tables.users.get(change.name)
        user = User(change.name, change.role, added_at=now, added_by=by) if known is None else known
        self._tables.users[change.name] = replace(user, role=change.role, grants=change.grants)
        return known != self._tables.users[change.name]

    def _add_first_user(self, change: people.AddFirstUser, now: datetime) -> bool:
        link = self._tables.sessions.get(change.link)
        if self._tables.users or link is None or link.kind is not SessionKind.LINK or link.expires_at <= now:
            return False
        del self._tables.sessions[change.link]
        self._tables.users[change.name] = User(change.name, Role.ADMIN, (), change.password_hash, now)
        return True

    def _begin_session(self, session: WebSession, now: datetime) -> bool:
        self._tables.sessions = {hash: open_ for hash, open_ in self._tables.sessions.items() if open_.expires_at > now}
        self._tables.sessions[session.hash] = session
        if session.user is not None:
            self._tables.failures.pop(name_of_failures(session.user.name), None)
            self._forget_failures(now)
        return True

    def _refuse_without_admin(self, name: str, role: Role | None) -> None:
        if last_admin(list(self._tables.users.values()), name, role):
            raise Conflict(f"user {name} is the last admin: make another user an admin first")

    def _user(self, name: str) -> User:
        if name not in self._tables.users:
            raise NotFound("user", name)
        return self._tables.users[name]

    def _end_sessions(self, name: str) -> None:
        self._tables.sessions = {
            hash: session
            for hash, session in self._tables.sessions.items()
            if session.user is None or session.user.name != name
        }

    def _forget_failures(self, now: datetime) -> None:
        kept_since = now - FAILURES_KEPT
        self._tables.failures = {
            name: failures
            for name, failures in self._tables.failures.items()
            if failures.failed_at and failures.failed_at >= kept_since
        }

    # -------------------------------------------------------------------------------------------------- questions

    async def users(self, names: Collection[str] | None = None) -> Sequence[User]:
        """Return these users, or all, by name."""
        return [self._tables.users[name] for name in sorted(self._tables.users) if names is None or name in names]

    async def tokens(self, ids: Collection[str] | None = None) -> Sequence[Token]:
        """Return these tokens, or all, newest first."""
        tokens = [self._with_owner(token) for token in self._tables.tokens.values() if ids is None or token.id in ids]
        tokens.sort(key=lambda token: token.id)
        return sorted(tokens, key=lambda token: token.added_at or self._shared.now(), reverse=True)

    def _with_owner(self, token: Token) -> Token:
        owner = self._tables.users.get(token.owner)
        return token if owner is None else replace(token, owner_role=owner.role, owner_grants=owner.grants)

    async def session(self, hash: str) -> WebSession | None:
        """Return the session that has not ended, with its user as they are now."""
        session = self._tables.sessions.get(hash)
        if session is None or session.expires_at <= self._shared.now():
            return None
        if session.kind is SessionKind.LINK or session.user is None:
            return session
        user = self._tables.users.get(session.user.name)
        return None if user is None else replace(session, user=user)

    async def sessions(self) -> Sequence[WebSession]:
        """Return the sessions of browsers that have not ended, the last used first."""
        known = [await self.session(hash) for hash in sorted(self._tables.sessions)]
        open_ = [session for session in known if session is not None and session.kind is SessionKind.COOKIE]
        return sorted(open_, key=lambda session: session.seen_at, reverse=True)[:MOST_SESSIONS]

    async def failures(self, name: str) -> SignInFailures:
        """Return how often signing in with this name went wrong."""
        return self._tables.failures.get(name_of_failures(name), SignInFailures())

    async def deeds(self, filter: DeedFilter) -> DeedPage:
        """Return a page of deeds, newest first."""
        deeds = [
            deed
            for deed in reversed(self._tables.deeds)
            if filter.by in (None, deed.doer.name)
            and filter.job_id in (None, deed.job_id)
            and (filter.before is None or deed.number < filter.before)
        ]
        return as_of_page(deeds[: filter.limit + 1], filter.limit)
