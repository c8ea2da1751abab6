"""A service with a job every second for each name: `service.py ADDRESS APPLICATION JOB...`."""

import logging
import sys

from everytick import Everytick, every


def main(address: str, application: str, *names: str) -> None:
    """Run the jobs until told to stop; each run says its job's name."""
    logging.basicConfig(level=logging.INFO)
    tick = Everytick(address, name=application, grace_period="1s", poll="200ms")

    def define(name: str) -> None:
        @tick.job(every("1s"), name=name)
        def job() -> None:
            sys.stdout.write(f"ran {name}\n")
            sys.stdout.flush()

    for name in names:
        define(name)
    tick.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
