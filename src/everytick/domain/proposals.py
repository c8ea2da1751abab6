"""Proposals: changes that one person asks for, and that are carried out once another one approves."""

from datetime import datetime, timedelta

from everytick.domain.changes import Edit
from everytick.domain.values import value

OWNER = "proposals"
"""The owner of the disabled jobs in which proposals are stored. No sync touches them."""

PREFIX = "proposal-"
"""What the names of these jobs begin with; the id of the proposal follows."""

LASTS = timedelta(days=7)
"""How long a proposal can be approved."""


@value(frozen=True)
class Proposal:
    """What one person wants to change, until when another one can approve it, and the changes themselves.

    `what` says it in words, with its cost; `jobs` are the jobs that it touches.
    """

    id: str
    what: str
    jobs: tuple[str, ...]
    by: str
    at: datetime
    expires_at: datetime
    edits: tuple[Edit, ...] = ()

    @property
    def name(self) -> str:
        """The name of the job in which it is stored."""
        return PREFIX + self.id
