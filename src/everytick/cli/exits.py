"""Exit codes, and which error ends with which: scripts decide by them, so they never change their meaning."""

from __future__ import annotations

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


class Refused(Exception):
    """A verb cannot go on: one sentence with a way out, and the exit code that says so to scripts."""

    def __init__(self, sentence: str, code: Exit = Exit.USAGE) -> None:
        super().__init__(sentence)
        self.code = code


# The first that fits counts.
_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (errors.DuplicateDefinition, Exit.CONFLICT),
    (errors.DefinitionError, Exit.USAGE),
    (errors.NotFound, Exit.NOT_FOUND),
    (errors.Conflict, Exit.CONFLICT),
    (errors.JobDisabled, Exit.CONFLICT),
    (errors.AlreadyRunning, Exit.CONFLICT),
    (errors.TooManyEditions, Exit.LATER),
    (errors.StoreUnavailable, Exit.UNREACHABLE),
    (errors.SchemaMismatch, Exit.UNREACHABLE),
    (errors.MissingExtra, Exit.UNREACHABLE),
    (errors.EverytickError, Exit.FAILED),
    (PermissionError, Exit.NOT_ALLOWED),
)


def code_of(error: BaseException) -> Exit:
    """Return the exit code of an error; what nobody expected is our own fault."""
    if isinstance(error, Refused):
        return error.code
    return next((code for kind, code in _CODES if isinstance(error, kind)), Exit.OUR_FAULT)


def sentence_of(error: BaseException) -> str:
    """Return what a person is told: what was wrong, and what to do about it."""
    if isinstance(error, (Refused, errors.EverytickError)):
        return str(error)
    if isinstance(error, PermissionError):
        return f"{error.filename or 'it'} may not be touched by this user: {error.strerror or error}"
    name = type(error).__name__
    return f"this should not have happened: {name}: {error}; the same with --debug shows where, please report it"
