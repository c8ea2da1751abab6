"""A service in the place of an application: the same verbs, over HTTP."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from everytick.cli.exits import Refused
from everytick.cli.output import say
from everytick.client import Client
from everytick.errors import DefinitionError, DuplicateDefinition, shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everytick.sources.job_files import JobFile


class RemoteFace(Client):
    """A client whose missing verbs say that they need a store, and not that a name is missing."""

    jobs_folder = None

    def __getattr__(self, name: str) -> Any:
        raise Refused("this verb works on a store or an application itself: leave --url and EVERYTICK_URL out")


def sent_files(files: Sequence[JobFile]) -> dict[str, Any]:
    """Return files that were read here as a client sends them, with the files beside them."""
    from everytick.sources.file_texts import texts_of

    try:
        own, beside = texts_of(files)
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"a file cannot be read any more: {shown(str(error), 500)}", Exit.INVALID_FILE) from error
    return {"files": own, "beside": beside}


@contextmanager
def refusals_of_files() -> Iterator[None]:
    """Tell every mistake that the service finds in files, and end with the exit code of an invalid file."""
    try:
        yield
    except DuplicateDefinition:
        raise
    except DefinitionError as error:
        mistakes = getattr(error, "mistakes", ())
        for mistake in mistakes[1:]:
            say(f"{mistake['where']}: {mistake['why']}", mark="red")
        raise Refused(str(error), Exit.INVALID_FILE) from error
