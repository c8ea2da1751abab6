"""Forks: a task that forks has two processes return from it, and only one of them is the node.

The copy would go on as a second node with the same name and the same connections, so it
is ended where it comes out of the task. Code that forks and ends its child itself, as
`multiprocessing` does, never comes here.
"""

import os

_LEFT_BY_COPY = 0


class Generation:
    """How often this process is a fork of the one that imported us."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0

    def forked(self) -> None:
        self.number += 1


generation = Generation()
"""Look at its number before a task and `leave_copy` if it has changed afterwards."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=generation.forked)


def leave_copy() -> None:
    """End this process at once, with no clean-up: what there is to clean up belongs to the original."""
    os._exit(_LEFT_BY_COPY)
