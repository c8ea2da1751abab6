"""The one decorator for values: slotted, compared by content, frozen where it is checked.

A frozen dataclass takes three times as long to build as a plain one, and a tick builds
several values per occurrence. So values are frozen for type checkers always and at run
time while tests run, and merely slotted in production.
"""

import sys
from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")

FROZEN = "pytest" in sys.modules


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make the class a slotted value: equal by content, hashable, never changed after it was built."""
    return dataclass(slots=True, frozen=FROZEN, unsafe_hash=not FROZEN)(cls)
