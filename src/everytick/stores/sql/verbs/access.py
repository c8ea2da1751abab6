"""The verbs of `store.access`: people, their secrets and sessions, and changes that are written with their deed."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from everytick.domain import people
from everytick.domain.changes import Edit
from everytick.domain.deeds import Deed, DeedFilter, DeedPage, Said, said_of_access, said_of_edit, said_of_fact
from everytick.domain.facts import LIMITING, Cancel, Fact
from everytick.domain.people import (
    CameBy,
    Doer,
    Grant,
    Role,
    SessionKind,
    SignInFailures,
    Token,
    User,
    WebSession,
    role_of,
)
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
from everytick.stores.sql.access_queries import AccessQueries
from everytick.stores.sql.commands import Ask, Rows, Verb, many
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row
from everytick.stores.sql.verbs import editing, facts, purging

# ----------------------------------------------------------------------------------------- changes with their deed


def request(cold: ColdQueries, q: AccessQueries, subject: str, fact: Fact, doer: Doer) -> Verb[Receipt]:
    """Write one fact and, if it changes anything, its deed."""
    receipt: Receipt = yield from facts.request(cold, subject, fact)
    yield from sign(q, receipt, subject, fact, doer)
    return receipt


def sign(q: AccessQueries, receipt: Receipt, subject: str, fact: Fact, doer: Doer) -> Verb[None]:
    """Write the deed of a fact that was written in this transaction, if it changed anything."""
    if not receipt.changed:
        return
    job_id: str | None = None
    if isinstance(fact, LIMITING):
        shown = receipt.id
    elif isinstance(fact, Cancel):
        found: Rows = yield q.job_of_occurrence(occurrence_id=subject)
        job_id = found[0]["job_id"] if found else None
        shown = f"occurrence {subject}" + (f" of job {found[0]['name']}" if found else "")
    else:
        job_id = subject
        [named] = yield q.job_named(job_id=subject)
        shown = f"job {named['name']}"
    yield q.add_deed(**_deed(doer, said_of_fact(fact), shown, (yield Ask.NOW), job_id))


def apply(cold: ColdQueries, q: AccessQueries, changes: Sequence[Edit], by: str, doer: Doer) -> Verb[list[Stored]]:
    """Make every change, or none, and write a deed for each that changes anything."""
    stored: list[Stored] = yield from editing.apply(cold, changes, by)
    now: datetime = yield Ask.NOW
    done = [(change, result) for change, result in zip(changes, stored, strict=True) if result.changed]
    yield many(
        q.add_deed,
        [
            _deed(doer, said_of_edit(change, result.version), f"job {change.name}", now, result.job_id)
            for change, result in done
        ],
    )
    return stored


def purge(cold: ColdQueries, q: AccessQueries, job_id: str, limit: int, doer: Doer) -> Verb[bool]:
    """Delete some occurrences of a removed job. The deed is written with the job's own end."""
    found: Rows = yield q.job_named(job_id=job_id)
    is_deleted = yield from purging.purge(cold, job_id, limit)
    if is_deleted and found:
        shown = f"job {found[0]['name']}"
        yield q.add_deed(**_deed(doer, ("purged", "and all of its history", ""), shown, (yield Ask.NOW), job_id))
    return is_deleted


def _deed(doer: Doer, said: Said, subject: str, at: datetime, job_id: str | None = None) -> dict[str, Any]:
    did, detail, reason = said
    return {
        "done_at": at,
        "done_by": doer.name,
        "came_by": str(doer.came_by),
        "address": doer.address,
        "did": did,
        "subject": subject,
        "detail": detail,
        "reason": reason,
        "job_id": job_id,
    }


# -------------------------------------------------------------------------------------------------- people and secrets


def change(q: AccessQueries, change: people.AccessChange, doer: Doer | None) -> Verb[bool]:
    """Make the change and write its deed. Return whether it changed anything."""
    now: datetime = yield Ask.NOW
    by = "" if doer is None else doer.name
    is_new = False
    match change:
        case people.PutUser():
            yield from _refuse_without_admin(q, change.name, change.role)
            given = {"name": change.name, "role": str(change.role), "grants": _grants(change.grants)}
            is_new = bool((yield q.add_user(**given, password_hash=None, now=now, added_by=by)))
            changed = is_new or bool((yield q.change_user(**given)))
        case people.AddFirstUser():
            changed = yield from _add_first_user(q, change, now)
        case people.SetPassword():
            changed = bool((yield q.set_password(name=change.name, password_hash=change.password_hash)))
            if not changed:
                raise NotFound("user", change.name)
            yield q.end_sessions(name=change.name)
        case people.RemoveUser():
            yield from _refuse_without_admin(q, change.name, None)
            changed = bool((yield q.remove_user(name=change.name)))
            if not changed:
                raise NotFound("user", change.name)
            yield q.end_sessions(name=change.name)
            yield q.revoke_tokens(name=change.name, now=now)
        case people.AddToken():
            changed = yield from _add_token(q, change.token, now, by)
        case people.RevokeToken():
            changed = bool((yield q.revoke_token(id=change.id, now=now)))
        case people.UseToken():
            changed = bool((yield q.use_token(id=change.id, now=now)))
        case people.BeginSession():
            changed = yield from _begin_session(q, change.session, now)
        case people.SeeSession():
            changed = bool((yield q.see_session(hash=change.hash, now=now, expires_at=change.expires_at)))
        case people.EndSession():
            changed = bool((yield q.end_session(hash=change.hash)))
        case people.FailSignIn():
            name = name_of_failures(change.name)
            yield q.add_failure(name=name, now=now)
            yield q.forget_failures(name=None, forgotten_at=now - FAILURES_KEPT)
            changed = True
    said = said_of_access(change, is_new=is_new) if changed and doer is not None else None
    if said is not None and doer is not None:
        did, shown, detail = said
        yield q.add_deed(**_deed(doer, (did, detail, ""), shown, now))
    return changed


def _refuse_without_admin(q: AccessQueries, name: str, role: Role | None) -> Verb[None]:
    """Refuse to remove the last admin: no person could give the role back."""
    known: Rows = yield q.hold_users()
    if last_admin([_user(row) for row in known], name, role):
        raise Conflict(f"user {name} is the last admin: make another user an admin first")


def _add_first_user(q: AccessQueries, change: people.AddFirstUser, now: datetime) -> Verb[bool]:
    found: Rows = yield q.session_of(hash=change.link, now=now)
    if not found or found[0]["kind"] != SessionKind.LINK or not (yield q.is_without_users()):
        return False
    if not (yield q.end_session(hash=change.link)):
        return False
    added: Rows = yield q.add_user(
        name=change.name, role=str(Role.ADMIN), grants="{}", password_hash=change.password_hash, now=now, added_by=""
    )
    return bool(added)


def _add_token(q: AccessQueries, token: Token, now: datetime, by: str) -> Verb[bool]:
    added: Rows = yield q.add_token(
        id=token.id,
        name=token.name,
        hash=token.hash,
        role=str(token.role),
        grants=_grants(token.grants),
        owner=token.owner,
        expires_at=token.expires_at,
        now=now,
        added_by=by,
    )
    if not added:
        raise Conflict(token_name_taken(token.name))
    return True


def _begin_session(q: AccessQueries, session: WebSession, now: datetime) -> Verb[bool]:
    name = "" if session.user is None else session.user.name
    yield q.forget_sessions(now=now)
    yield q.begin_session(
        hash=session.hash,
        kind=str(session.kind),
        name=name,
        began_at=session.began_at,
        expires_at=session.expires_at,
        seen_at=session.seen_at,
        address=session.address,
    )
    if session.user is not None:
        yield q.forget_failures(name=name_of_failures(name), forgotten_at=now - FAILURES_KEPT)
    return True


# ----------------------------------------------------------------------------------------------------------- questions


def users(q: AccessQueries, names: Collection[str] | None) -> Verb[list[User]]:
    """Return these users, or all, by name."""
    found: Rows = yield q.users(is_any=names is None, names=list(names or ()))
    return [_user(row) for row in found]


def tokens(q: AccessQueries, ids: Collection[str] | None) -> Verb[list[Token]]:
    """Return these tokens, or all, newest first."""
    found: Rows = yield q.tokens(is_any=ids is None, ids=list(ids or ()))
    return [_token(row) for row in found]


def session(q: AccessQueries, hash: str) -> Verb[WebSession | None]:
    """Return the session that has not ended, with its user as they are now."""
    found: Rows = yield q.session_of(hash=hash, now=(yield Ask.NOW))
    return _session(found[0]) if found else None


def sessions(q: AccessQueries) -> Verb[list[WebSession]]:
    """Return the sessions of browsers that have not ended, the last used first."""
    found: Rows = yield q.sessions(now=(yield Ask.NOW), limit=MOST_SESSIONS)
    return [_session(row) for row in found]


def failures(q: AccessQueries, name: str) -> Verb[SignInFailures]:
    """Return the failed attempts to sign in with this name."""
    found: Rows = yield q.failures_of(name=name_of_failures(name))
    return SignInFailures(found[0]["count"], found[0]["failed_at"]) if found else SignInFailures()


def deeds(q: AccessQueries, asked: DeedFilter) -> Verb[DeedPage]:
    """Return deeds, newest first."""
    shared: dict[str, Any] = {"before": asked.before or 2**63 - 1, "limit": asked.limit + 1}
    found: Rows
    if asked.by is None:
        found = yield q.deeds(**shared) if asked.job_id is None else q.deeds_of(**shared, job_id=asked.job_id)
    elif asked.job_id is None:
        found = yield q.deeds_by(**shared, done_by=asked.by)
    else:
        found = yield q.deeds_by_of(**shared, done_by=asked.by, job_id=asked.job_id)
    return as_of_page([_told(row) for row in found], asked.limit)


# ---------------------------------------------------------------------------------------------------------------- rows


def _grants(grants: Sequence[Grant]) -> str:
    return json.dumps({grant.tag: str(grant.role) for grant in grants})


def _read_grants(text: str) -> tuple[Grant, ...]:
    return tuple(Grant(tag, role_of(role)) for tag, role in json.loads(text).items())


def _user(row: Row) -> User:
    role, grants = role_of(row["role"]), _read_grants(row["grants"])
    return User(row["name"], role, grants, row["password_hash"], row["added_at"], row["added_by"])


def _token(row: Row) -> Token:
    return Token(
        id=row["id"],
        name=row["name"],
        hash=row["hash"],
        role=role_of(row["role"]),
        grants=_read_grants(row["grants"]),
        owner=row["owner"],
        expires_at=row["expires_at"],
        added_at=row["added_at"],
        added_by=row["added_by"],
        used_at=row["used_at"],
        revoked_at=row["revoked_at"],
        owner_role=None if row["owner_role"] is None else role_of(row["owner_role"]),
        owner_grants=() if row["owner_grants"] is None else _read_grants(row["owner_grants"]),
    )


def _session(row: Row) -> WebSession:
    user = None if row["name"] is None else _user(row)
    kind = SessionKind(row["kind"])
    return WebSession(row["hash"], kind, user, row["began_at"], row["expires_at"], row["seen_at"], row["address"])


def _told(row: Row) -> Deed:
    doer = Doer(row["done_by"], CameBy(row["came_by"]), row["address"])
    said = row["did"], row["subject"], row["detail"], row["reason"]
    return Deed(row["deed_key"], row["done_at"], doer, *said, row["job_id"])
