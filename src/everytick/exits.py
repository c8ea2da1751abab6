"""Exit codes, and which error ends with which: scripts decide by them, so they never change their meaning."""

from enum import IntEnum

from everytick import errors


class Exit(IntEnum):
    """What the process ends with."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_ALLOWED = 4
    CONFLICT = 5
    INVALID_FILE = 65
    UNREACHABLE = 69
    OUR_FAULT = 70
    LATER = 75
    TIMED_OUT = 124
    INTERRUPTED = 130


# The first that fits counts.
_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (errors.DuplicateDefinition, Exit.CONFLICT),
    (errors.DefinitionError, Exit.USAGE),
    (errors.NotFound, Exit.NOT_FOUND),
    (errors.Conflict, Exit.CONFLICT),
    (errors.JobDisabled, Exit.CONFLICT),
    (errors.AlreadyRunning, Exit.CONFLICT),
    (errors.NeedsConfirmation, Exit.NOT_ALLOWED),
    (errors.NotAllowed, Exit.NOT_ALLOWED),
    (errors.NeedsApproval, Exit.LATER),
    (errors.TooManyEditions, Exit.LATER),
    (errors.StoreUnavailable, Exit.UNREACHABLE),
    (errors.SchemaMismatch, Exit.UNREACHABLE),
    (errors.MissingExtra, Exit.UNREACHABLE),
    (errors.EverytickError, Exit.FAILED),
    (PermissionError, Exit.NOT_ALLOWED),
)


def code_of(error: BaseException) -> Exit:
    """Return the exit code of an error. One that is not in the table is a fault of everytick."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.OUR_FAULT)
