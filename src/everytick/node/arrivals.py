"""Arrivals: takes in claims, and has each begin when there is a slot for it.

A claim that cannot run here is given back. So is one that was asked for longer ago than
`node_timeout`: this process stood still, and another node may have taken it over. So is one that has
waited for a slot for too long: another node may have one.
"""

import logging
from datetime import datetime

from everytick.domain.steps import Released
from everytick.node.inbox import Arrived, BacklogDue, Inbox
from everytick.node.lives import Lives
from everytick.node.occurrence import OwnedKeys, OwnedOccurrence
from everytick.node.scope import Scope
from everytick.node.slots import WAIT_SECONDS, Slots
from everytick.node.tools import Tools
from everytick.stores.base import Claim

_log = logging.getLogger("everytick.node")

_RELEASED = Released()


class Arrivals:
    """Owns what arrives for one engine, and gives each occurrence to `lives` when it begins or is given back."""

    def __init__(self, tools: Tools, scope: Scope, owned: OwnedKeys, slots: Slots, lives: Lives, inbox: Inbox) -> None:
        self._clock, self._alarms, self._health = tools.clock, tools.alarms, tools.health
        self._scope, self._owned, self._slots, self._lives, self._inbox = scope, owned, slots, lives, inbox
        self._silence_seconds = tools.settings.node_timeout.total_seconds()
        self._is_timed = False

    def take(self, arrived: Arrived) -> None:
        """Begin these claims as soon as there is a slot."""
        learned, now = None, self._clock.monotonic()
        asked_at = now if arrived.asked_at is None else arrived.asked_at
        for claim in arrived.claims:
            claimed_at = claim.life.claimed_at
            # The claim of an earlier owner is no news of the store's clock.
            if claimed_at is not None and claimed_at is not learned and not claim.handed:
                learned = claimed_at
                self._clock.learn(claimed_at, arrived.asked_at)
            self._own(claim, now, asked_at)
        if self._slots.backlog:
            self.fill(self._clock.now())
            self._time_backlog()

    def _own(self, claim: Claim, arrived_at: float, asked_at: float) -> None:
        handle = claim.key.handle
        known = self._owned.get(handle)
        if known is not None and not self._drop_older(known, claim):
            return
        if claim.handed and self._lives.is_over:
            # This node stops: another one waits for the engines.
            return
        bodies = self._scope.bodies(claim.job)
        occurrence = OwnedOccurrence(claim, bodies or (), arrived_at, asked_at, self._clock.ahead)
        self._owned.add(occurrence)
        if claim.handed:
            self._lives.reattach(occurrence) if bodies is not None else self._lives.give_up(occurrence)
        elif bodies is None or self._lives.is_over:
            self._lives.feed(occurrence, _RELEASED)
        elif arrived_at - asked_at > self._silence_seconds:
            self._give_back_stale(occurrence, arrived_at)
        elif handle in self._owned.lingering:
            self._owned.wait_behind(occurrence)
        else:
            self._slots.add(occurrence)

    def _drop_older(self, known: OwnedOccurrence, claim: Claim) -> bool:
        """Drop an older claim of the same handle. Return whether to take the new one.

        The fence says which is newer. Of two with the same fence and other tokens, the store was restored from an
        older copy and has given the handle to another occurrence.
        """
        if known.claim.fence > claim.fence or known.claim.key == claim.key:
            return False
        self._lives.lose(known)
        return True

    def fill(self, now: datetime) -> None:
        """Begin waiting occurrences while there are slots. One that was taken from this node since needs none.

        A node that was silent for too long begins nothing: others may have what it holds. The
        next beat tells what is still its own.
        """
        slots = self._slots
        if not slots.backlog or self._health.silent_for > self._silence_seconds:
            return
        reading = self._clock.monotonic()
        while (occurrence := slots.next()) is not None:
            if occurrence.is_gone:
                continue
            try:
                if reading - occurrence.asked_at > self._silence_seconds:
                    self._give_back_stale(occurrence, reading)
                else:
                    self._lives.begin(occurrence, now)
            except Exception:  # noqa: BLE001, a mistake of ours about one occurrence must keep no other from a slot
                text = "occurrence %s cannot begin: internal error; the reaper settles it as lost"
                _log.exception(text, occurrence.claim.header.id)
                self._lives.give_up(occurrence)

    def _give_back_stale(self, occurrence: OwnedOccurrence, reading: float) -> None:
        """Give back a claim that is so old that another node may have taken it over."""
        text = (
            "occurrence %s was asked for %.0f seconds ago and has not begun here: it is given back, since another node "
            "may have taken it over"
        )
        _log.warning(text, occurrence.claim.header.id, reading - occurrence.asked_at)
        self._lives.feed(occurrence, _RELEASED)

    def _time_backlog(self) -> None:
        """Look at the backlog again once its first occurrence has waited too long."""
        left = self._slots.seconds_left()
        if left is not None and not self._is_timed:
            self._is_timed = True
            self._alarms.after(max(left, WAIT_SECONDS / 5), self._inbox, BacklogDue())

    def give_back_overdue(self) -> bool:
        """Give back claims that have waited for a slot for too long. Return whether there were any."""
        self._is_timed = False
        self.fill(self._clock.now())
        has_given_back = False
        while (occurrence := self._slots.take_overdue()) is not None:
            has_given_back = True
            self._lives.feed(occurrence, _RELEASED)
        self._time_backlog()
        return has_given_back
