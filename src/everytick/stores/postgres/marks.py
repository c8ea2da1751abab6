"""What a stored occurrence tells about a step: a commit whose reply was lost is not a lost race."""

from everytick.domain.codes import FIRST_ENDED
from everytick.domain.steps import Step
from everytick.stores.base import Claim
from everytick.stores.postgres.rows import Row


def is_repeat(mark: Row | None, claim: Claim, step: Step) -> bool:
    """Tell whether the same step is there already."""
    if mark is None or mark["claim_token"] != claim.key.token:
        return False
    if mark["fence"] == claim.fence:
        return bool(step.number <= mark["step_number"])
    # An end raises the fence and keeps the number: its repeat finds its own effect.
    over = mark["status"] >= FIRST_ENDED and mark["fence"] == claim.fence + 1
    return bool(over and mark["step_number"] == step.number)
