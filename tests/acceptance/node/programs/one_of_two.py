"""One of two applications on a store, each with a job every second: `one_of_two.py ADDRESS NAME [JOB]`."""

import sys

from everytick import Everytick, every


def main(address: str, name: str, named: str | None = None) -> None:
    """Run the application of this name until it is told to stop."""
    tick = Everytick(address, name=name, grace_period="1s", poll="200ms")

    @tick.job(every("1s"), name=named or f"job of {name}", recovery="execute_all", overlap="queue")
    def job() -> None:
        sys.stdout.write(f"ran {name}\n")
        sys.stdout.flush()

    tick.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
