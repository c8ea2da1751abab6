"""One of two services: `dependent.py ADDRESS up`, or `dependent.py ADDRESS down AT`, whose job depends on the other's.

The job of `down` has a single instant, so that only a success of the other job lets it run before its deadline.
"""

import sys
from collections.abc import Callable
from datetime import datetime

from everytick import Everytick, backfill_from, on_request, once


def main(address: str, which: str, at: str = "") -> None:
    """Run the service until told to stop; each run says its job's name."""
    # A node that polls so seldom has to be woken.
    tick = Everytick(address, name=which, grace_period="1s", poll="10m")

    def say(name: str) -> Callable[[], None]:
        def ran() -> None:
            sys.stdout.write(f"ran {name}\n")
            sys.stdout.flush()

        return ran

    if which == "up":
        tick.job(on_request(), name="hello", on_create="immediately")(say("hello"))
        tick.job(on_request(), name="extract")(say("extract"))
    else:
        needed = {"job": "extract", "within": "1h", "deadline": "1h"}
        rule, begin = once(datetime.fromisoformat(at)), backfill_from(at)
        tick.job(rule, name="load", depends_on=needed, on_create=begin)(say("load"))
    tick.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
