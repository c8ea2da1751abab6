"""Replaying from one task on: which tasks of the original keep their results, and are not run again."""

from collections.abc import Mapping

from everytick.domain.policies import Mode
from everytick.domain.statuses import RunStatus
from everytick.domain.steps import Rules
from everytick.errors import Conflict, NotFound, shown


def kept_tasks(rules: Rules, ended: Mapping[str, RunStatus], from_task: str) -> tuple[str, ...]:
    """Return the tasks whose results a replay from this task on keeps, in their order.

    The task itself and all tasks after it are run again. Tasks before it must have succeeded in
    the original; `ended` has its statuses by task. Of all other tasks, those that succeeded are
    kept and the rest is run again.
    """
    start = rules.places.get(from_task)
    if start is None:
        raise NotFound("task", from_task)
    before, again = _before(rules, start), _from(rules, start)
    for place in sorted(before):
        name = rules.tasks[place].name
        if ended.get(name) is not RunStatus.SUCCESS:
            how = ended.get(name, "not part of that occurrence")
            raise Conflict(
                f"a replay from task '{shown(from_task)}' keeps what came before it, and task '{shown(name)}' "
                f"is {how}: replay from '{shown(name)}', or the whole occurrence"
            )
    kept_names = (task.name for place, task in enumerate(rules.tasks) if place not in again)
    return tuple(name for name in kept_names if ended.get(name) is RunStatus.SUCCESS)


def _before(rules: Rules, start: int) -> set[int]:
    """Return the places of all that must end before the one at `start` begins."""
    if rules.mode is Mode.SEQUENTIAL:
        return set(range(start))
    before: set[int] = set()
    left = list(rules.tasks[start].after)
    while left:
        place = left.pop()
        if place not in before:
            before.add(place)
            left += rules.tasks[place].after
    return before


def _from(rules: Rules, start: int) -> set[int]:
    """Return the place `start` and those of all that come after it."""
    if rules.mode is Mode.SEQUENTIAL:
        return set(range(start, len(rules.tasks)))
    after = {start}
    for place in rules.walk:
        if not after.isdisjoint(rules.tasks[place].after):
            after.add(place)
    return after
