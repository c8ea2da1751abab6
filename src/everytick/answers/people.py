"""Users, tokens, sessions and deeds as data. No hash and no secret is among it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytick.answers.wire import plain

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.domain.deeds import Deed
    from everytick.domain.people import Token, User


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
