"""Exit codes and messages of a command that fails."""

from __future__ import annotations

from everytick import errors
from everytick.exits import Exit
from everytick.exits import code_of as app_code_of


class Refused(Exception):
    """A verb cannot go on: one sentence with a way out, and the exit code that says so to scripts."""

    def __init__(self, sentence: str, code: Exit = Exit.USAGE) -> None:
        super().__init__(sentence)
        self.code = code


def code_of(error: BaseException) -> Exit:
    """Return the exit code of an error. An unexpected one is everytick's own fault."""
    if isinstance(error, Refused):
        return error.code
    return app_code_of(error)


def sentence_of(error: BaseException) -> str:
    """Return the message for people: what was wrong, and what to do about it."""
    if isinstance(error, (Refused, errors.EverytickError)):
        return str(error)
    if isinstance(error, PermissionError):
        return f"{error.filename or 'it'} may not be touched by this user: {error.strerror or error}"
    name = type(error).__name__
    return f"this should not have happened: {name}: {error}; the same with --debug shows where, please report it"
