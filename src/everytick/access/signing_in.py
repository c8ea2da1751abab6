"""Rules of signing in: how long a name waits after failures, and how long a session lasts."""

from datetime import datetime, timedelta

from everytick.domain.people import SignInFailures, WebSession
from everytick.errors import EverytickError

LINK_LASTS = timedelta(hours=1)
"""How long the link of the first start makes an admin."""

SESSION_IDLE, SESSION_MOST = timedelta(hours=12), timedelta(days=14)
"""How long a session lasts without a request, and at most."""

SEEN_EVERY = timedelta(minutes=5)
"""How often the use of a session is written down: a write for each request would cost more than it tells."""

TOKEN_SEEN_EVERY = timedelta(hours=1)
"""How often the use of a token is written down: programs ask far more often than people."""

_FREE_FAILURES = 5
"""So many failures cost no wait: people mistype."""

_LONGEST_WAIT = timedelta(minutes=1)
"""A longer wait would let a stranger keep a person out; one guess a minute finds no password of ten characters."""


class SignInDelayed(EverytickError):
    """Too many attempts went wrong: the next one is heard later."""

    code = "sign_in_delayed"

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many attempts went wrong: try again in {seconds} s")
        self.seconds = seconds


def wait_after(failures: SignInFailures, now: datetime) -> timedelta:
    """Return how long an attempt with this name has to wait now: after five failures 1 s, then twice as long each."""
    over = failures.count - _FREE_FAILURES
    if over < 0 or failures.failed_at is None:
        return timedelta(0)
    wait = min(timedelta(seconds=2 ** min(over, 10)), _LONGEST_WAIT)
    return max(failures.failed_at + wait - now, timedelta(0))


def session_end(began_at: datetime, now: datetime) -> datetime:
    """Return when a session ends that is used now."""
    return min(began_at + SESSION_MOST, now + SESSION_IDLE)


def is_seen_anew(session: WebSession, now: datetime) -> bool:
    """Tell whether the use of a session is to be written down."""
    return now - session.seen_at >= SEEN_EVERY
