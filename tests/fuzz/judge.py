"""The verdict on one string: accepted, or refused with the documented error in time, memory and good form."""

import time
import tracemalloc
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from everytick.errors import InvalidSchedule

SECONDS = 1.0
MEGABYTES = 50
MESSAGE = 1000
ASKED = datetime(2025, 3, 29, 12, tzinfo=UTC)


def refusal(make: Callable[[str], Any], text: str) -> InvalidSchedule | None:
    """Return the documented error, or None if a schedule was made and answers; nothing else may escape."""
    try:
        made = make(text)
    except InvalidSchedule as refused:
        return refused
    bound = made.bound("job_fuzz", ASKED)
    bound.next_after(ASKED)
    return None


def judge(make: Callable[[str], Any], texts: Iterable[str]) -> int:
    """Return how many were accepted; fail on the first that takes too long or is refused in bad form."""
    accepted = 0
    for text in texts:
        began = time.thread_time()
        refused = refusal(make, text)
        used = time.thread_time() - began
        assert used < SECONDS, f"{text[:200]!r} ({len(text)} characters) took {used:.3f} s"
        if refused is None:
            accepted += 1
        else:
            check_message(refused, text)
    return accepted


def check_message(refused: InvalidSchedule, text: str) -> None:
    """Fail unless the message is short and can be printed anywhere."""
    message = str(refused)
    assert len(message) < MESSAGE, f"a message of {len(message)} characters for {text[:200]!r}"
    assert message.isprintable(), f"{message!r} for {text[:200]!r}"
    assert refused.field, text[:200]
    assert refused.reason, text[:200]


def judge_memory(make: Callable[[str], Any], texts: Iterable[str]) -> None:
    """Fail on the first string that needs more memory than allowed, above what holds the string itself."""
    tracemalloc.start()
    try:
        for text in texts:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            refusal(make, text)
            _, peak = tracemalloc.get_traced_memory()
            assert peak - before < MEGABYTES * 2**20, f"{text[:200]!r} took {(peak - before) / 2**20:.0f} MB"
    finally:
        tracemalloc.stop()
