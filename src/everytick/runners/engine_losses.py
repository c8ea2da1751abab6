"""Which attempts an engine has not known for so long that they are lost."""

import time
from collections.abc import Sequence

from everytick.domain.outcome import Lost, Outcome

UNKNOWN_SECONDS = 30.0
"""How long an engine may not know an attempt before it is lost: its hand-over may be under way on another node."""


class Losses:
    """Remembers since when the engine has not known attempts. Time is counted on this node's monotonic clock."""

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self._unknown: dict[str, tuple[float, float]] = {}
        """Since when each was not known, and when that was last heard."""

    def among(self, ids: Sequence[str], unknown: Sequence[str]) -> dict[str, Outcome]:
        """Return those that are lost, of all that were asked about now and the engine does not know.

        Others are asked about at another time, and stay as they are. What is no longer asked about is forgotten.
        """
        now = time.monotonic()
        known = {*ids} - {*unknown}
        heard = {id_: (self._unknown.get(id_, (now,))[0], now) for id_ in unknown}
        still_unknown = {
            id_: at for id_, at in self._unknown.items() if id_ not in known and now - at[1] <= UNKNOWN_SECONDS
        }
        self._unknown = still_unknown | heard
        return {id_: Lost(self._reason) for id_, (since, _) in heard.items() if now - since > UNKNOWN_SECONDS}
