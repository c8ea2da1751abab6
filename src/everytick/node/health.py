"""Health: whether the store answers, for readiness and for the decision to start nothing more."""

import logging
from collections.abc import Callable, Mapping

_log = logging.getLogger("everytick.node")


_MOMENT = 15.0
"""A store that fails again within so many seconds was not well."""


class Health:
    """What the loops have seen of the store.

    `gap` is how long a node may be silent before others take it for dead, `bound` how long
    nothing may be heard of the store before this node is not ready.
    """

    def __init__(self, monotonic: Callable[[], float], gap: float, bound: float = 15.0) -> None:
        self._monotonic = monotonic
        self._failing_since: float | None = None
        self._failed_at = self._well_at = float("-inf")
        self._must_last = 0.0
        self._gap = gap
        self._beaten_at = monotonic()
        self._beating_since: float | None = None
        self._heard_at = self._beaten_at
        self._bound = bound
        self.reason = ""
        self.definition_errors: Mapping[str, int] = {}
        """How many mistakes stand in each file of jobs that is broken now."""
        self.listener: Callable[[bool, str], None] | None = None
        self.wants_beat: Callable[[], None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the store answered when it was last asked, and has been asked and told of late."""
        unheard = max(self._monotonic() - self._heard_at, self.silent_for)
        return self._failing_since is None and unheard < self._bound

    @property
    def failing_for(self) -> float:
        """For how many seconds the store has not answered."""
        return 0.0 if self._failing_since is None else self._monotonic() - self._failing_since

    @property
    def is_back(self) -> bool:
        """Whether it has answered and taken a beat since anything failed; perhaps for a moment only."""
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
            _log.warning("the store answers again after %.1f seconds", self.failing_for)
            self._failing_since, self.reason = None, ""
            if self.listener is not None:
                self.listener(True, "")
        elif self.wants_beat is not None:
            self.wants_beat()

    def failed(self, reason: str) -> None:
        """The store has not answered."""
        now = self._failed_at = self._monotonic()
        if self._failing_since is None:
            self._must_last = _MOMENT if now - self._well_at < _MOMENT else 0.0
            _log.error("nothing that waits for the store fires until it answers again: %s", reason)
            self._failing_since, self.reason = now, reason
            if self.listener is not None:
                self.listener(False, reason)

    def has_beaten(self) -> None:
        """The store has taken a beat; told by the beat's own thread."""
        now = self._monotonic()
        if now - self._beaten_at > self._gap:
            self._beating_since = now
        self._beaten_at = now

    def beat_failed(self, reason: str) -> None:
        """The store has not taken a beat; told by the beat's own thread."""
        self.reason = reason

    @property
    def silent_for(self) -> float:
        """For how many seconds other nodes have not heard of this one."""
        return self._monotonic() - self._beaten_at

    @property
    def may_judge(self) -> bool:
        """Whether this node may take others for dead.

        Not while it is silent itself, nor until it has beaten for a whole `gap` after such a
        time: when a store returns, the beats of all nodes are old, and the living need time.
        """
        now = self._monotonic()
        if now - self._beaten_at > self._gap:
            return False
        return self._beating_since is None or now - self._beating_since > self._gap
