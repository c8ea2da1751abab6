"""Forks: after a task that forks, two processes return from it, and only one of them is the node.

The copy would go on as a second node with the same name and the same connections. So it is ended as soon as the task
returns. Code that forks and ends its child itself, as `multiprocessing` does, is not affected.
"""

import os

_LEFT_BY_COPY = 0
"""The exit status of a copy of the node: its end is no failure."""


class Generation:
    """Counts the forks between this process and the one that imported everytick."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0

    def forked(self) -> None:
        self.number += 1


generation = Generation()
"""Read `number` before a task, and call `leave_copy` if it is another one afterwards."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=generation.forked)


def leave_copy() -> None:
    """End this process at once, without clean-up: its files and connections belong to the original."""
    os._exit(_LEFT_BY_COPY)
