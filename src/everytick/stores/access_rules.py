"""Rules of `store.access` that all stores follow."""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256

from everytick.domain.deeds import Deed, DeedPage
from everytick.domain.people import Role, User

FAILURES_KEPT = timedelta(hours=1)
"""How long the failed sign-ins of a name count after the last of them."""

MOST_SESSIONS = 1000
"""Most sessions that are listed: a page shows no more."""

_LONGEST_NAME = 100
"""Characters of a user's name."""


def name_of_failures(name: str) -> str:
    """Return the name under which failures are counted: a long one, which no user has, by its hash."""
    return name if len(name) <= _LONGEST_NAME else sha256(name.encode(errors="replace")).hexdigest()


def last_admin(known: Sequence[User], name: str, role: Role | None) -> bool:
    """Return whether no admin would be left if this user had this role, or were gone."""
    admins = {user.name for user in known if user.role is Role.ADMIN}
    return admins == {name} and role is not Role.ADMIN


def token_name_taken(name: str) -> str:
    """Return why a token cannot have this name."""
    return f"there is a token {name} already: revoke it first, or choose another name"


def as_of_page(found: Sequence[Deed], limit: int) -> DeedPage:
    """Return the page of what was found, which is one more than the page holds if more is there."""
    shown = tuple(found[:limit])
    return DeedPage(shown, shown[-1].number if len(found) > limit and shown else None)
