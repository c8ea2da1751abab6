"""What a reader found: jobs as they will stand in a file, and everything it had to leave, with the place and why.

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

_LONGEST = 1e10
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


class UnreadableSource(Exception):
    """A file is not what it was said to be: nothing in it can be read."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{shown(file, 1000)}:{line}: {reason}")


class Unsayable(Exception):
    """Something that no job of ours can say; the text is the reason."""


@value
class Left:
    """One thing that was not carried over."""

    file: str
    line: int
    what: str
    why: str

    def __str__(self) -> str:
        return f"{shown(self.file, 1000)}:{self.line}: {shown(self.what, 200)}: {self.why}"


@value
class FoundJob:
    """One job: its name, its parts as a file has them, and notes for whoever reads the file."""

    name: str
    line: int
    parts: tuple[tuple[str, object], ...]
    notes: tuple[str, ...] = ()


class Findings:
    """Collects what one file of another scheduler holds.

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
        """Note something that is not carried over, in this file or in one that belongs to it."""
        self.left.append(Left(file or self.file, line, what, why))

    def add(
        self, named: str, parts: Mapping[str, object], line: int, *, notes: Iterable[str] = (), what: str = ""
    ) -> bool:
        """Keep a job if a file may hold it, else note why not; say which of the two happened."""
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
        """A name that a file may hold and nobody has yet."""
        base = _UNFIT.sub("-", named).strip("-")[: LONGEST_NAME - 8] or "job"
        # Where thousands have one name, the numbers that are gone are not counted again.
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
    """Return the text of a file, which must be UTF-8 and of a size that somebody could have written."""
    from everytick.sources.yaml_reader import LARGEST_FILE

    if len(raw) > LARGEST_FILE:
        raise UnreadableSource(file, 1, f"has more than {LARGEST_FILE:,} bytes: split it")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UnreadableSource(file, line, "is not UTF-8: save it as UTF-8") from None


def seconds_of(given: object) -> timedelta | None:
    """Return so many seconds, or None for what is no number, not positive, or longer than anybody can wait."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= _LONGEST:
        return None
    return timedelta(seconds=given)


def refuse_template(texts: Iterable[str]) -> None:
    """Return if nothing here would be filled in by us: `{{ … }}` means something else where it comes from."""
    for text in texts:
        if found := TEMPLATE.search(text):
            raise Unsayable(f"'{shown(found.group(), 60)}' would be filled in here: put the command into a script")
