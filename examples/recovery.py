"""Five hours without a node, and what each recovery strategy makes of the hours that were missed.

    python examples/recovery.py

The morning is simulated: the jobs really run, on a clock that needs no time.
"""

from typing import Any

from everytick import Context, Everytick, every
from everytick.testing import simulate

tick = Everytick("memory://")

STRATEGIES: dict[str, dict[str, Any]] = {
    "execute_all": {},
    "execute_last": {},
    "mark_as_missed": {},
    "bounded_window": {"max_occurrences": 2, "max_duration": "3h"},
    "compressed": {},
}


def work(ctx: Context) -> None:
    after, through = ctx.covers
    if ctx.late and after is not None:
        print(f"  {ctx.job:14} runs late for {after:%H:%M} to {through:%H:%M}")


for name, bounds in STRATEGIES.items():
    tick.define(name, every("1h"), recovery={"strategy": name, **bounds}).task(name="work")(work)


def main() -> None:
    print("down from 01:30 to 06:30; when the node is back:")
    done = simulate(
        tick,
        "2026-01-01T00:00:00Z",
        "2026-01-01T06:45:00Z",
        outages=[("2026-01-01T01:30:00Z", "2026-01-01T06:30:00Z")],
    )
    print("\nwhat is recorded:")
    for name in STRATEGIES:
        late = [entry for entry in done.ran(name) if entry.late]
        left = done.skipped(name)
        why = f" ({left[0].status}: {left[0].why.partition(' into')[0]})" if left else ""
        print(f"  {name:14} {len(late)} of 5 run, {len(left)} do not{why}")


if __name__ == "__main__":
    main()
