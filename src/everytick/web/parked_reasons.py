"""Why a job is parked, for people: a driver or a schedule may have quoted anything, so who sees no errors is not told.

Pages and the API have this one rule.
"""

from everytick.domain.texts import NOTHING_PLANNED

WHY_PARKED_HIDDEN = "the log of a node says why"


def why_parked(reason: str, *, with_errors: bool) -> str:
    """Return the reason as a person may see it who sees errors, or does not."""
    return reason if with_errors else WHY_PARKED_HIDDEN


def without_why_parked(explanation: str) -> str:
    """Return the text of an explanation without the reason, with which it ends if the job is parked."""
    before, said, _ = explanation.partition(NOTHING_PLANNED)
    return f"{before}{said}{WHY_PARKED_HIDDEN}" if said else explanation
