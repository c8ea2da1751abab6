"""The base of all questions to a store. It stands alone, since the application names questions at every start."""

from typing import Generic, TypeVar

A = TypeVar("A", covariant=True)


class Question(Generic[A]):
    """Something that `ask` answers with an `A`."""

    __slots__ = ()
