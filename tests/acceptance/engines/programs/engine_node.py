"""A node that hands its one job over to the engine that the variables name."""

import os

from everytick import Everytick, on_request

runner = os.environ.get("ENGINE_RUNNER", "celery")
place, target = {
    "celery": (os.environ["ENGINE_BROKER"], "shop.wait"),
    "dask": (os.environ.get("ENGINE_DASK"), "dask_tasks:wait"),
    "ray": (os.environ.get("ENGINE_RAY"), "ray_tasks:wait"),
}[runner]
tick = Everytick(
    os.environ["ENGINE_STORE"],
    name="engine-node",
    allow_calls=["dask_tasks", "ray_tasks"],
    heartbeat="200ms",
    node_timeout="1s",
    reaper_interval="200ms",
    grace_period="5s",
    celery_results=os.environ["ENGINE_RESULTS"],
    **{runner: place},  # type: ignore[arg-type]
)
tick.define("wait", on_request(), runner=runner, task_timeout="2m").target(target)

if __name__ == "__main__":
    tick.run()
