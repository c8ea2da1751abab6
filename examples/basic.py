"""Ten lines: a job every ten seconds, kept in everytick.db beside this file.

    python examples/basic.py

One Ctrl-C stops it cleanly, a second leaves at once.
"""

from everytick import Everytick, every

tick = Everytick()


@tick.job(every("10s"), task_timeout="5s")
def heartbeat() -> None:
    print("tick", flush=True)


if __name__ == "__main__":
    tick.run()
