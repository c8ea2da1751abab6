"""One of two applications on a store, each with a job every second: `promises.py ADDRESS NAME FILE`.

The job has promised to start in time. The file gets a line whenever that promise is broken, or kept again.
"""

import sys

from everytick import Everytick, every


def main(address: str, name: str, file: str) -> None:
    """Run the application of this name until it is told to stop."""
    tick = Everytick(address, name=name, grace_period="1s", poll="200ms")
    told = {"command": ["sh", "-c", f'echo "$EVERYTICK_JOB $EVERYTICK_EVENT" >> {file}']}

    @tick.job(every("1s"), name=f"job of {name}", overlap="allow", start_by="2s", on_failure=told, on_recovery=told)
    def job() -> None:
        sys.stdout.write(f"ran {name}\n")
        sys.stdout.flush()

    tick.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
