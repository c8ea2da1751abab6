"""What there is to do in the simulated fleet."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from everytick import schedule
from everytick.domain.job import Job, define_job, define_task

Words: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Jobs by name, each in a few words: when, policies, tasks, whose code it calls, how long its bodies last at most."""

NEVER = "once: 2099-01-01T00:00:00Z"
JOBS: Words = {
    "plain": {"when": "every: 30s", "policies": {}},
    "queue": {"when": "every: 20s", "policies": {"overlap": "queue", "recovery": "execute_all"}},
    "restart": {"when": "every: 40s", "policies": {"on_orphan": "restart", "max_lost": None}, "tasks": ("one", "two")},
    "resume": {
        "when": "every: 45s",
        "policies": {"on_orphan": "resume", "overlap": "queue", "recovery": "execute_all", "max_lost": None},
        "tasks": ("one", "two", "three"),
    },
    "retry": {"when": "every: 1m", "policies": {"retry": {"max": 3, "interval": "2s", "factor": 3}}},
    "parallel": {
        "when": "every: 50s",
        "policies": {"mode": "parallel", "on_orphan": "resume", "failure": "continue", "max_lost": None},
        "tasks": ("a", "b"),
    },
    "limit": {
        "when": "every: 25s",
        "policies": {"execution_timeout": "8s", "overlap": "queue", "on_orphan": "resume", "max_lost": None},
        "tasks": ("one", "two"),
    },
    "newest": {"when": "every: 15s", "policies": {"overlap": "queue_latest"}},
    "cancel": {"when": "every: 35s", "policies": {"overlap": "cancel_running"}},
    "often": {"when": "every: 4s", "policies": {"grace": "1s"}, "lasts": 0.5},
    "wide": {"when": "every: 10s", "policies": {"overlap": "allow", "max_concurrent": 3, "recovery": "execute_all"}},
    "local": {
        "when": "every: 12s",
        "policies": {
            **{"overlap": "allow", "on_store_outage": "fire_local", "recovery": "execute_all"},
            **{"on_orphan": "resume", "max_lost": None, "retry": {"max": 2, "interval": "8s"}},
        },
        "tasks": ("one", "two"),
    },
}
"""What there is to do; `local` does not wait for the store, so that several nodes may run one instant of it."""


def defined(name: str, when: str | None = None, *, words: Words = JOBS, **policies: object) -> Job:
    """Return one of these jobs, with another schedule or other policies where they are given."""
    said = words[name]
    tasks = [define_task(name, task) for task in said.get("tasks", ("main",))]
    code = said.get("code", "")
    return define_job(
        name,
        schedule(when or said["when"]),
        policies={**said["policies"], **policies},
        tasks=tasks,
        owner=f"code:{code}" if code else "code",
        code=code,
    )
