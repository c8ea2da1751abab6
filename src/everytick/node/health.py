"""Health: whether the store answers, how long an answer may take, and how long to wait after a failure."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from random import random
from typing import TypeVar

from everytick.errors import Contended, StoreBroken, StoreGone, StoreUnavailable
from everytick.node.inbox import BeatWanted, Inbox, StoreAnswers, StoreAway, StoreLost

_log = logging.getLogger("everytick.node")

_STEADY_SECONDS = 15.0
"""A store that fails again within this time had not recovered."""

_T = TypeVar("_T")

ANSWER_SECONDS = 10.0
"""How long a question may take. A busy server answers within a second or two; a hung one never does."""

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.1, 2.0
"""Waits after failures: short at first, for most failures pass at once, and never long after the store is back."""

BROKEN_EVERY = 5.0
"""Seconds between two tries on a store that is broken: only people can mend it, and then it is noticed soon."""


async def in_time(question: Awaitable[_T]) -> _T:
    """Return the store's answer; raise `StoreUnavailable` if it takes too long."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await question
    except TimeoutError:
        raise StoreUnavailable("the store", f"no answer within {ANSWER_SECONDS:.0f} seconds") from None


class Backoff:
    """Counts failures in a row."""

    __slots__ = ("_failures",)

    def __init__(self) -> None:
        self._failures = 0

    def succeeded(self) -> None:
        """Start over."""
        self._failures = 0

    def failed(self, error: Exception | None = None) -> float:
        """Return how many seconds to wait before the next try."""
        if isinstance(error, StoreBroken):
            return BROKEN_EVERY
        self._failures += 1
        most: float = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** min(self._failures - 1, 10))
        return most * (0.5 + 0.5 * random())  # noqa: S311, a spread is no secret


class Health:
    """The state of the store as the loops saw it. Changes go into the node's inbox.

    After `silence_seconds` without a beat other nodes take this one for dead. After `unheard_seconds` without an
    answer of the store it is not ready.
    """

    def __init__(
        self, inbox: Inbox, monotonic: Callable[[], float], silence_seconds: float, unheard_seconds: float = 15.0
    ) -> None:
        self._inbox, self._monotonic = inbox, monotonic
        self._failing_since: float | None = None
        self._failed_at = self._well_at = float("-inf")
        self._must_last = 0.0
        self._is_broken = self._is_beat_failing = False
        self._silence_seconds = silence_seconds
        self._beaten_at = monotonic()
        self._beating_since: float | None = None
        self._heard_at = self._beaten_at
        self._unheard_seconds = unheard_seconds
        self.reason = ""
        self.definition_errors: Mapping[str, int] = {}
        """How many mistakes stand in each file of jobs that is broken now."""
        self.gone: StoreGone | None = None
        """Why this node has to stop."""

    @property
    def is_ready(self) -> bool:
        """Whether the store answered the last question, and neither the last question nor the last beat is long ago."""
        unheard = max(self._monotonic() - self._heard_at, self.silent_for)
        return self.gone is None and self._failing_since is None and unheard < self._unheard_seconds

    @property
    def failing_for(self) -> float:
        """For how many seconds the store has not answered."""
        return 0.0 if self._failing_since is None else self._monotonic() - self._failing_since

    @property
    def is_away(self) -> bool:
        """Whether the store has failed and nothing has been heard of it since."""
        return self._failing_since is not None and self._heard_at <= self._failed_at

    @property
    def is_back(self) -> bool:
        """Whether it has answered and taken a beat since anything failed; perhaps for a moment only.

        A broken store may do both for ever, and only some of its tables are missing: it is back once
        nothing has failed for longer than it takes to try again.
        """
        if self._is_broken and self._monotonic() - self._failed_at < 2 * BROKEN_EVERY:
            return False
        return min(self._heard_at, self._beaten_at) > self._failed_at

    @property
    def unheard_for(self) -> float:
        """For how many seconds nothing was heard of the store."""
        return self._monotonic() - self._heard_at

    def answered(self) -> None:
        """The store has answered; it is well again once it has also taken a beat, for a full disk can be read.

        If it was well for a moment only the last time, nothing must have failed for a while: on
        a disk that is full a beat may still find a place.
        """
        self._heard_at = self._monotonic()
        if self._failing_since is None:
            return
        now = self._heard_at
        if self._beaten_at >= self._failing_since and now - self._failed_at >= self._must_last:
            self._well_at = now
            _log.warning("the store answers again after %.1f seconds; planning and running go on", self.failing_for)
            self._failing_since, self._is_broken, self.reason = None, False, ""
            self._inbox.put(StoreAnswers())
        else:
            self._inbox.put(BeatWanted())

    def learn_definition_errors(self, counts: Mapping[str, int]) -> None:
        """Take these counts of mistakes, by file, in place of those that were known."""
        self.definition_errors = dict(counts)

    def has_failed_since(self, moment: float) -> bool:
        """Say whether anything has failed since the monotonic clock showed this."""
        return self._failed_at > moment

    def failed(self, error: StoreUnavailable) -> None:
        """The store has not answered, or answered with an error that is not about one item.

        Another session that is in the way counts only while the beat, which is a bare write, fails too.
        """
        if isinstance(error, StoreGone):
            self._inbox.put(StoreLost(error))
            return
        if isinstance(error, Contended) and not self._is_beat_failing:
            _log.info("something waits for another session at the store: %s; it is tried again", error)
            return
        now, reason = self._monotonic(), str(error)
        is_first, was_broken = self._failing_since is None, self._is_broken
        self._failed_at, self._is_broken = now, was_broken or isinstance(error, StoreBroken)
        if is_first:
            self._must_last = _STEADY_SECONDS if self._is_broken or now - self._well_at < _STEADY_SECONDS else 0.0
            self._failing_since = now
        elif self._is_broken == was_broken:
            return
        self.reason = reason
        if self._is_broken:
            # Some of its tables may be well: it counts as well once nothing has failed for a while.
            self._must_last = _STEADY_SECONDS
            text = "%s; nothing that needs the store fires until it is mended, which is looked for every %.0f seconds"
            _log.error(text, reason, BROKEN_EVERY)
        else:
            _log.error("%s; nothing that waits for the store fires until it answers again", reason)
        if is_first:
            self._inbox.put(StoreAway(reason))

    def lose(self, error: StoreGone) -> None:
        """The store is lost permanently. Only the first report counts."""
        if self.gone is None:
            self.gone, self.reason = error, str(error)
            _log.critical("%s; this node stops", error)

    def has_beaten(self) -> None:
        """The store has taken a beat; told by the beat's own thread."""
        now = self._monotonic()
        if now - self._beaten_at > self._silence_seconds:
            self._beating_since = now
        self._beaten_at, self._is_beat_failing = now, False

    def beat_failed(self, reason: str) -> None:
        """The store has not taken a beat; told by the beat's own thread."""
        self.reason, self._is_beat_failing = reason, True

    @property
    def silent_for(self) -> float:
        """For how many seconds other nodes have not heard of this one."""
        return self._monotonic() - self._beaten_at

    @property
    def may_judge(self) -> bool:
        """Whether this node may take others for dead.

        Not while it is silent itself, nor until it has beaten for a whole `silence_seconds` after such a
        time: when a store returns, the beats of all nodes are old, and the living need time.
        """
        now = self._monotonic()
        if now - self._beaten_at > self._silence_seconds:
            return False
        return self._beating_since is None or now - self._beating_since > self._silence_seconds
