"""Intake: takes in the claims that come from the store, and begins each when there is a slot for it.

A claim that cannot run here is given back. So is one that was asked for longer ago than
`node_timeout`: this process stood still, and another node may have taken it over. So is one that has
waited for a slot for too long: another node may have one.
"""

import logging
from datetime import datetime

from everytick.domain.steps import Released
from everytick.node.inbox import Arrived, BacklogDue, Inbox
from everytick.node.lives import Lives
from everytick.node.occurrence import OwnedOccurrence
from everytick.node.owned_keys import OwnedKeys
from everytick.node.scope import Scope
from everytick.node.slots import WAIT_SECONDS, Slots
from everytick.node.tools import Tools
from everytick.stores.base import Claim

_log = logging.getLogger("everytick.executor")

_RELEASED = Released()


class Intake:
    """Owns what was claimed from its arrival until it begins."""

    def __init__(self, tools: Tools, scope: Scope, owned: OwnedKeys, slots: Slots, lives: Lives, inbox: Inbox) -> None:
        self._clock, self._alarms, self._health = tools.clock, tools.alarms, tools.health
        self._silence_seconds = tools.settings.node_timeout.total_seconds()
        self._scope, self._owned, self._slots, self._lives, self._inbox = scope, owned, slots, lives, inbox
        self._is_timed = self._is_over = False

    def take(self, arrived: Arrived) -> None:
        """Begin these claims as soon as there is a slot."""
        learned, now = None, self._clock.monotonic()
        for claim in arrived.claims:
            claimed_at = claim.life.claimed_at
            if claimed_at is not None and claimed_at is not learned:
                learned = claimed_at
                self._clock.learn(claimed_at, arrived.asked_at)
            self._own(claim, now, now if arrived.asked_at is None else arrived.asked_at)
        if self._slots.waiting:
            self.fill(self._clock.now())
            self._time_backlog()

    def _own(self, claim: Claim, arrived_at: float, asked_at: float) -> None:
        known = self._owned.get(claim.handle)
        if known is not None and not self._makes_way(known, claim):
            return
        bodies = self._scope.bodies(claim.job)
        occurrence = OwnedOccurrence(claim, bodies or (), arrived_at, asked_at, self._clock.ahead)
        self._owned.add(occurrence)
        if bodies is None or self._is_over or self._is_stale(occurrence):
            self._lives.feed(occurrence, _RELEASED)
        elif self._owned.has_to_wait(claim):
            self._owned.wait_behind(occurrence)
        else:
            self._slots.wait(occurrence)

    def _makes_way(self, known: OwnedOccurrence, claim: Claim) -> bool:
        """Let go of an older claim of the same handle, and tell whether the new one is to be taken.

        The fence says which is newer. Of two with the same fence and other tokens, the store was restored from an
        older copy and has given the handle to another occurrence.
        """
        if known.claim.fence > claim.fence or known.claim.key == claim.key:
            return False
        self._lives.lose(known)
        return True

    def _is_stale(self, occurrence: OwnedOccurrence) -> bool:
        """Whether the claim was asked for so long ago that another node may have taken it over; log it."""
        passed = self._clock.monotonic() - occurrence.asked_at
        if passed <= self._silence_seconds:
            return False
        _log.warning(
            "occurrence %s was asked for %.0f seconds ago and has not begun here: it is given back, since another node "
            "may have taken it over",
            occurrence.claim.header.id,
            passed,
        )
        return True

    def fill(self, now: datetime) -> None:
        """Begin what waits while there are slots; an occurrence that was taken from this node meanwhile needs none.

        A node that was silent for too long begins nothing: others may have what it holds. The
        next beat tells what is still its own.
        """
        slots, health = self._slots, self._health
        while slots.waiting and slots.is_free and health.silent_for <= self._silence_seconds:
            occurrence = slots.next()
            if occurrence.is_gone:
                continue
            if self._is_stale(occurrence):
                self._lives.feed(occurrence, _RELEASED)
            else:
                self._begin(occurrence, now)

    def _begin(self, occurrence: OwnedOccurrence, now: datetime) -> None:
        try:
            self._lives.begin(occurrence, now)
        except Exception:  # noqa: BLE001, a mistake of ours about one occurrence must keep none behind it from a slot
            text = "occurrence %s cannot begin: internal error; the reaper settles it as lost"
            _log.exception(text, occurrence.claim.header.id)
            self._lives.give_up(occurrence)

    def _time_backlog(self) -> None:
        """Look at the backlog again once its first occurrence has waited too long."""
        left = self._slots.seconds_left()
        if left is not None and not self._is_timed:
            self._is_timed = True
            self._alarms.after(max(left, WAIT_SECONDS / 5), self._inbox, BacklogDue())

    def give_back_overdue(self) -> bool:
        """Give back what has waited for a slot for too long; return whether there was any."""
        self._is_timed = False
        self.fill(self._clock.now())
        has_given_back = False
        while (occurrence := self._slots.take_overdue()) is not None:
            has_given_back = True
            self._lives.feed(occurrence, _RELEASED)
        self._time_backlog()
        return has_given_back

    def stop(self) -> None:
        """Give back what has not begun, and every claim that still comes."""
        self._is_over = True
        for occurrence in [*self._slots.take_backlog(), *self._owned.take_waiting()]:
            self._lives.feed(occurrence, _RELEASED)
