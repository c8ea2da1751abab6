"""Where a definition was written; in a notebook or at the Python prompt it is written again, and replaces the first."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple


class DefinitionPlace(NamedTuple):
    """A line of a file. What is typed into a notebook has a file too, which does not exist."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"line {self.line} of this cell" if self.is_typed else f"{self.file}:{self.line}"

    @property
    def is_typed(self) -> bool:
        """Whether it was typed into a notebook or at the prompt."""
        return hasattr(sys, "ps1") and not os.path.exists(self.file)

    def is_written_again(self, first: DefinitionPlace) -> bool:
        """Tell whether this takes the place of the first: the same line ran again, or another cell was typed.

        Two definitions in one cell are a mistake there too. At the prompt every statement has the same file.
        """
        if not hasattr(sys, "ps1"):
            return False
        return self == first or (self.is_typed and (self.file != first.file or self.file == "<stdin>"))


def place_of_caller() -> DefinitionPlace:
    """Return the nearest line that called into everytick."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("everytick."):
        frame = frame.f_back
    return DefinitionPlace(frame.f_code.co_filename, frame.f_lineno)
