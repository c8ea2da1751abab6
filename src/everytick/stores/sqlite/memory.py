"""Memory that was freed goes back to the system, where the C library can be told so.

SQLite frees its pages one by one, and the C library keeps such pieces for later: after
thousands of jobs were stored, an idle process would hold a fifth more than it needs.
"""

from collections.abc import Callable
from functools import cache


def give_back() -> bool:
    """Let the C library return what it keeps for nobody; return whether it can be told to."""
    trim = _trim()
    if trim is None:
        return False
    trim(0)
    return True


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        # Half a megabyte, and only some C libraries have it: loaded when there is something to give back.
        import ctypes

        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (ImportError, OSError, AttributeError, TypeError):
        return None
    return found
