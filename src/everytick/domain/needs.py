"""Needs: what a node must have to plan and claim a job, as one text that a store can compare.

Each label stands on a line of its own, in order:

    code:<application>   functions of this application
    call:<package>       functions of a package, which the node must allow
    runner:<name>        a runner that is not everytick's own, or an engine
    queue:<name>         the queue, unless it is `default`

Before them come the lines of a lane, `limit:<reach>`, which need nothing of a node (`domain/limits.py`).
Before them stands `lane:late` for late occurrences and those of backfills, which need nothing more of a node, but get
only a share of its slots.

The text is empty for commands and requests of the queue `default`. A removed job has the text
`RETIRED`, which every node meets: its occurrences only end. They keep the text they were made
with, so none of them is claimed by a node that cannot run it.
"""

from collections.abc import Callable, Iterable

from everytick.domain.names import kept_once

RETIRED = "retired"
"""The needs of a removed job."""

DEFAULT_QUEUE = "default"

LATE = "lane:late"
"""The line of needs of what only gets a share of the slots of each node."""

NOTICE = '{"notice":'
"""How the target of a notice begins. It says itself what it needs: what the job needs that it tells of."""

ENGINES = ("celery", "dask", "ray")
"""The runners that hand an attempt over to an engine."""

ENGINE_TARGET = '{"target":'
"""How the target of a task begins that an engine carries out."""

_CALL_BY_PLACE = ("dask", "ray")
"""Engines that would call any function; the node hands over only those that it allows, as for a call."""

_OWN_RUNNERS = frozenset({"function", "thread", "process", "command", "http"})


def labels_of(code: str, tasks: Iterable[tuple[str, str | None]]) -> str:
    """Return what these tasks need, each given by its target and its runner; the queue is not among it."""
    labels: set[str] = set()
    for target, runner in tasks:
        if not target.startswith("{"):
            if code:
                labels.add(f"code:{code}")
        elif target.startswith(NOTICE):
            labels.update(_needs_of_notice(target))
        elif ('"call"' in target or runner in _CALL_BY_PLACE) and (package := _package(target)):
            labels.add(f"call:{package}")
        if runner is not None and runner not in _OWN_RUNNERS:
            labels.add(f"runner:{runner}")
    return "\n".join(sorted(labels))


def needs_in(labels: str, queue: str) -> str:
    """Return the needs of what has these labels and waits in this queue."""
    if queue == DEFAULT_QUEUE:
        return labels
    return kept_once(f"{labels}\nqueue:{queue}" if labels else f"queue:{queue}")


def queue_of(needs: str) -> str:
    """Return the queue that these needs name."""
    last = needs.rpartition("\n")[2]
    return last.removeprefix("queue:") if last.startswith("queue:") else DEFAULT_QUEUE


def late_needs(needs: str) -> str:
    """Return these needs, in the lane for what is late."""
    return kept_once(f"{LATE}\n{needs}" if needs else LATE)


def are_late(needs: str) -> bool:
    """Tell whether these are the needs of something in the lane for what is late."""
    return LATE in needs and LATE in needs.split("\n")


def on_time_needs(needs: str) -> str:
    """Return these needs outside that lane."""
    return "\n".join(line for line in needs.split("\n") if line != LATE)


def is_met(needs: str, has: Callable[[str], bool]) -> bool:
    """Say whether a node that has these labels meets the needs; one that leaves the default queue out says so too."""
    if needs == RETIRED:
        return True
    labels = [label for label in needs.split("\n") if label != LATE and not label.startswith("limit:")] if needs else []
    if not any(label.startswith("queue:") for label in labels):
        labels.append(f"queue:{DEFAULT_QUEUE}")
    return all(map(has, labels))


def _needs_of_notice(target: str) -> Iterable[str]:
    import json

    try:
        needs = json.loads(target)["needs"]
    except (ValueError, RecursionError, KeyError):
        return ()
    return [label for label in needs if isinstance(label, str)]


def _package(target: str) -> str:
    """The package that a call is imported from; nothing where the target is another, or cannot be read."""
    import json  # only here: importing the application loads nothing heavy

    try:
        said = json.loads(target)
        called = said.get("call") or said.get("target")
    except (ValueError, RecursionError, AttributeError):
        return ""
    return called.partition(":")[0].partition(".")[0] if isinstance(called, str) else ""
