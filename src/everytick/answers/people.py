"""Users, tokens, sessions and deeds as data. No hash and no secret is among it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytick.answers.wire import moment, plain
from everytick.domain.deeds import Deed, DeedPage
from everytick.domain.people import CameBy, Doer, Grant, Token, User, grant_of, role_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

NOT_TOLD = "…"
"""Stands for the hash of a password or of a token, which is not among the data."""


def user_data(user: User) -> dict[str, Any]:
    """Return a user as data."""
    return {
        "name": user.name,
        "role": str(user.role),
        "grants": [str(grant) for grant in user.grants],
        "has_password": user.password_hash is not None,
        "added_at": plain(user.added_at),
        "added_by": user.added_by,
    }


def token_data(token: Token, now: datetime) -> dict[str, Any]:
    """Return a token as data. Its text was shown once and is not known any more."""
    return {
        "id": token.id,
        "name": token.name,
        "role": str(token.role),
        "grants": [str(grant) for grant in token.grants],
        "owner": token.owner or None,
        "is_live": token.is_live(now),
        "expires_at": plain(token.expires_at),
        "added_at": plain(token.added_at),
        "added_by": token.added_by,
        "used_at": plain(token.used_at),
        "revoked_at": plain(token.revoked_at),
    }


def deed_data(deed: Deed) -> dict[str, Any]:
    """Return a deed as data, with its sentence."""
    return {
        "number": deed.number,
        "at": plain(deed.at),
        "by": deed.doer.name,
        "came_by": str(deed.doer.came_by),
        "address": deed.doer.address,
        "did": deed.did,
        "subject": deed.subject,
        "detail": deed.detail,
        "reason": deed.reason,
        "job_id": deed.job_id,
        "text": str(deed),
    }


# ------------------------------------------------------------------------------------------------------------ read back


def user_of(data: Mapping[str, Any]) -> User:
    """Return the user that `user_data` wrote. `NOT_TOLD` stands for the hash of a password."""
    return User(
        name=data["name"],
        role=role_of(data["role"]),
        grants=_grants(data),
        password_hash=NOT_TOLD if data["has_password"] else None,
        added_at=moment(data["added_at"]),
        added_by=data["added_by"],
    )


def token_of(data: Mapping[str, Any]) -> Token:
    """Return the token that `token_data` wrote. `NOT_TOLD` stands for its hash."""
    return Token(
        id=data["id"],
        name=data["name"],
        hash=NOT_TOLD,
        role=role_of(data["role"]),
        grants=_grants(data),
        owner=data["owner"] or "",
        expires_at=moment(data["expires_at"]),
        added_at=moment(data["added_at"]),
        added_by=data["added_by"],
        used_at=moment(data["used_at"]),
        revoked_at=moment(data["revoked_at"]),
    )


def deeds_of(data: Mapping[str, Any]) -> DeedPage:
    """Return the page whose deeds `deed_data` wrote."""
    return DeedPage(tuple(_deed_of(deed) for deed in data["deeds"]), data["before"])


def _deed_of(data: Mapping[str, Any]) -> Deed:
    at = moment(data["at"])
    assert at is not None, "a deed has a time"
    doer = Doer(data["by"], CameBy(data["came_by"]), data["address"])
    return Deed(data["number"], at, doer, data["did"], data["subject"], data["detail"], data["reason"], data["job_id"])


def _grants(data: Mapping[str, Any]) -> tuple[Grant, ...]:
    return tuple(map(grant_of, data["grants"]))
