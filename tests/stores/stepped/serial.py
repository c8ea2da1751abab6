"""What memory says would have come of two deeds, one after the other: the answers that any store may give."""

from typing import Any

from everytick.stores.memory import MemoryStore
from tests.stores.clock import ManualClock
from tests.stores.stepped.scene import PASSES_OVER, done, set_up, state

Result = tuple[dict[str, Any], dict[str, Any]]
"""What each deed answered, by name, and all that is written afterwards."""


async def outcome(clock: ManualClock, *names: str) -> Result:
    """Do these to a store in memory, in this order, beginning when the given clock says so."""
    own = ManualClock(clock.time)
    store = MemoryStore(own)
    scene = await set_up(store, own)
    answers = {name: await done(name, store, scene) for name in names}
    return answers, await state(store, scene)


async def allowed(clock: ManualClock, first: str, second: str) -> list[Result]:
    """Return the two serial outcomes, and what a deed may leave out because another holds what it looks for."""
    orders: list[tuple[str, ...]] = [(first, second), (second, first)]
    results = [await outcome(clock, *order) for order in orders]
    for name, other in ((first, second), (second, first)):
        if name in PASSES_OVER:
            answers, written = await outcome(clock, other)
            results.append(({name: [] if name != "plan" else None, **answers}, written))
        if name == "plan":
            # It looked before the other was done, and committed afterwards.
            answers, written = await outcome(clock, other, "old_plan")
            results.append(({name: None, **{key: each for key, each in answers.items() if key == other}}, written))
    return results


def differences(found: Result, expected: list[Result]) -> str:
    """Say how what was found differs from everything that was allowed."""
    lines = []
    for answers, written in expected:
        unequal = [f"answer of {name}" for name in answers if answers[name] != found[0][name]]
        unequal += [part for part in written if written[part] != found[1][part]]
        lines.append(", ".join(unequal))
    return " / ".join(lines)
