"""The result of a reader: the jobs for a file, and everything it could not convert, with place and reason.

Nothing is guessed. A job is kept only if a file with it in it would be accepted; what is
refused is left, in the words of the refusal.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from everytick.domain.names import LONGEST_NAME
from everytick.domain.values import value
from everytick.errors import shown
from everytick.runners.targets import TEMPLATE
from everytick.sources.yaml_writer import written_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_LONGEST_SECONDS = 1e10
"""About 300 years, which fits into a timedelta."""

_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


class UnreadableSource(Exception):
    """A file is not of the named kind: nothing in it can be read."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{shown(file, 1000)}:{line}: {reason}")


class Unsayable(Exception):
    """Something that no job can express. The text is the reason."""


@value
class Left:
    """One thing that was not converted."""

    file: str
    line: int
    what: str
    why: str

    def __str__(self) -> str:
        return f"{shown(self.file, 1000)}:{self.line}: {shown(self.what, 200)}: {self.why}"


@value
class FoundJob:
    """One job: its name, its parts as in a file, and notes for the reader of the file."""

    name: str
    line: int
    parts: tuple[tuple[str, object], ...]
    notes: tuple[str, ...] = ()


class Findings:
    """Collects the jobs of one file of another scheduler.

    `defaults` is how that scheduler treats all of its jobs; `taken` are names that jobs of other
    files of the same call have.
    """

    def __init__(self, file: str, defaults: Mapping[str, object], taken: set[str] | None = None) -> None:
        self.file, self.defaults = file, dict(defaults)
        self.jobs: list[FoundJob] = []
        self.left: list[Left] = []
        self._taken = set[str]() if taken is None else taken
        self._numbers: dict[str, int] = {}

    def leave(self, line: int, what: str, why: str, *, file: str | None = None) -> None:
        """Record something that is not converted, in this file or in one that belongs to it."""
        self.left.append(Left(file or self.file, line, what, why))

    def add(
        self, named: str, parts: Mapping[str, object], line: int, *, notes: Iterable[str] = (), what: str = ""
    ) -> bool:
        """Add a job if a file can express it, else record why not. Return whether it was added."""
        name = self._name(named)
        mistakes = self._mistakes(name, parts)
        if mistakes:
            self.leave(line, what or f"job '{named}'", f"not imported: {'; '.join(mistakes)}")
            return False
        self._taken.add(name)
        self.jobs.append(FoundJob(name, line, tuple(parts.items()), tuple(notes)))
        if what == "" and name != named:
            self.leave(
                line, f"the name '{named}'", f"it became '{name}': names have letters, digits, _ and -, and once"
            )
        return True

    def _name(self, named: str) -> str:
        """Return a valid name that no other job has."""
        base = _UNFIT.sub("-", named).strip("-")[: LONGEST_NAME - 8] or "job"
        # If thousands of jobs have one name, the numbers that are used are not tried again.
        number = self._numbers.get(base, 1)
        while (name := base if number == 1 else f"{base}-{number}") in self._taken:
            number += 1
        self._numbers[base] = number
        return name

    def _mistakes(self, name: str, parts: Mapping[str, object]) -> Sequence[str]:
        # Loads pydantic, which printing a script need not wait for.
        from everytick.sources.job_files import read_jobs

        try:
            raw = written_file({name: parts}, defaults=self.defaults).encode()
        except UnicodeEncodeError:
            return ["it holds half a character, which no file can"]
        return [mistake.message for mistake in read_jobs(raw, self.file).mistakes]

    def text(self, head: Iterable[str] = ()) -> str:
        """Return the file of these jobs."""
        return file_of([self], head)


def file_of(findings: Sequence[Findings], head: Iterable[str] = ()) -> str:
    """Return one file with the jobs of all of these, which come from one kind of scheduler."""
    jobs = [job for finding in findings for job in finding.jobs]
    return written_file(
        {job.name: dict(job.parts) for job in jobs},
        defaults=findings[0].defaults if findings and jobs else None,
        head=head,
        notes={job.name: job.notes for job in jobs},
    )


def decoded(raw: bytes, file: str) -> str:
    """Return the text of a file, which must be UTF-8 and not too large."""
    from everytick.sources.yaml_reader import LARGEST_FILE

    if len(raw) > LARGEST_FILE:
        raise UnreadableSource(file, 1, f"has more than {LARGEST_FILE:,} bytes: split it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UnreadableSource(file, line, "is not UTF-8: save it as UTF-8") from None


def seconds_of(given: object) -> timedelta | None:
    """Return the seconds as a duration, or None for a value that is no number, not positive or too large."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= _LONGEST_SECONDS:
        return None
    return timedelta(seconds=given)


def refuse_template(texts: Iterable[str]) -> None:
    """Refuse words with `{{ … }}`: everytick would fill it in, and the other scheduler means something else."""
    for text in texts:
        if found := TEMPLATE.search(text):
            raise Unsayable(f"'{shown(found.group(), 60)}' would be filled in here: put the command into a script")
