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
        self._unknown_since: dict[str, float] = {}

    def among(self, unknown: Sequence[str]) -> dict[str, Outcome]:
        """Return those that are lost, of all that the engine does not know now."""
        now = time.monotonic()
        self._unknown_since = {id_: self._unknown_since.get(id_, now) for id_ in unknown}
        late = [id_ for id_, since in self._unknown_since.items() if now - since > UNKNOWN_SECONDS]
        return {id_: Lost(self._reason) for id_ in late}
