"""The process that holds a node's connection to a Ray cluster.

It is apart from the node because Ray ends a process whose cluster stays away for a minute, and because a process can be
connected to one cluster only, while the node's own code may use another. It reads one question per line, answers each
with a line, and ends with its standard input.

The tasks belong to the ledger, an actor of its own on the cluster's head node. It is detached: it and its tasks stay
when this process ends, and the next node finds it by its name. Everything it needs is sent to it by value, so a cluster
needs no everytick.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

LEDGER = "everytick-ledger-1"
"""The name of the actor. A version that speaks to it differently has to count up."""

NAMESPACE = "everytick"
ANSWER_SECONDS = 8.0
"""How long the ledger has to answer: it only looks up what it holds."""


class Ledger:
    """Hands functions over to the cluster's workers, and keeps their ends until a node has recorded them.

    It is unpickled in a worker without everytick, so its methods import what they need.
    """

    sweep_seconds = 3600.0
    """How often it looks for ends that no node asks for: they are kept for days."""

    def __init__(self, call: Any, keep_seconds: float) -> None:
        import ray

        self._call = ray.remote(call)
        self._keep_seconds = keep_seconds
        self._refs: dict[str, Any] = {}
        self._since: dict[str, float] = {}
        self._canceled: list[Any] = []
        self._swept_at = 0.0

    def submit(self, work: Sequence[Mapping[str, Any]]) -> list[str | None]:
        """Hand each of these over. Return why one cannot be."""
        import time

        self._sweep(time.monotonic())
        answers: list[str | None] = []
        for item in work:
            try:
                call = self._call.options(name=item["id"], max_retries=0, retry_exceptions=False, **item["options"])
                self._refs[item["id"]] = call.remote(item["target"], item["allowed"], item["arguments"])
                self._since[item["id"]] = time.monotonic()
                answers.append(None)
            except (TypeError, ValueError) as error:
                answers.append(f"{type(error).__name__}: {error}")
        return answers

    def poll(self, ids: Sequence[str]) -> dict[str, Any]:
        """Return the ends of those that have ended, and the ids that were never handed over to this ledger."""
        known = {id_: self._refs[id_] for id_ in ids if id_ in self._refs}
        ready = self._ready(list(known.values()))
        ended = {id_: self._end(ref) for id_, ref in known.items() if ref in ready}
        return {"ended": ended, "unknown": [id_ for id_ in ids if id_ not in known]}

    def cancel(self, ids: Sequence[str]) -> None:
        """Do not begin these, or end the processes in which they run."""
        import ray

        for id_ in ids:
            if (ref := self._refs.pop(id_, None)) is not None:
                ray.cancel(ref, force=True)
                # Ray forgets a task without a reference to it, and the order to stop it may be on its way.
                self._canceled.append(ref)
        over = self._ready(self._canceled)
        self._canceled = [ref for ref in self._canceled if ref not in over]

    def forget(self, ids: Sequence[str]) -> None:
        """Free the ends of these."""
        for id_ in ids:
            self._refs.pop(id_, None)
            self._since.pop(id_, None)

    def _ready(self, refs: Sequence[Any]) -> set[Any]:
        import ray

        return set(ray.wait(list(refs), num_returns=len(refs), timeout=0)[0]) if refs else set()

    def _end(self, ref: Any) -> dict[str, Any]:
        import ray

        try:
            return {"text": ray.get(ref)}
        except ray.exceptions.TaskCancelledError:
            return {"canceled": True}
        except Exception as error:  # noqa: BLE001, whatever has become of the worker
            kinds = [kind for kind in type(error).__mro__ if issubclass(kind, BaseException)]
            names = [f"{kind.__module__}.{kind.__qualname__}" for kind in kinds]
            return {"failed": f"{type(error).__name__}: {error}", "types": names}

    def _sweep(self, now: float) -> None:
        """Forget ends that no node has asked for in a long time: their attempts ended otherwise."""
        if now - self._swept_at < self.sweep_seconds:
            return
        self._swept_at = now
        old = [id_ for id_, since in self._since.items() if now - since > self._keep_seconds]
        refs = {id_: self._refs[id_] for id_ in old if id_ in self._refs}
        over = self._ready(list(refs.values()))
        self.forget([id_ for id_ in old if id_ not in refs or refs[id_] in over])


class Link:
    """Asks the ledger."""

    def __init__(self, address: str, keep_seconds: float) -> None:
        self._address, self._keep_seconds = address, keep_seconds
        self._ledger: Any = None

    def reach(self, _: Mapping[str, Any]) -> None:
        """Return once the ledger has answered."""
        self._asked("poll", [])

    def submit(self, question: Mapping[str, Any]) -> Any:
        """Hand work over."""
        return self._asked("submit", question["work"])

    def poll(self, question: Mapping[str, Any]) -> Any:
        """Return what has ended."""
        return self._asked("poll", question["ids"])

    def cancel(self, question: Mapping[str, Any]) -> Any:
        """Stop these."""
        return self._asked("cancel", question["ids"])

    def forget(self, question: Mapping[str, Any]) -> Any:
        """Free these."""
        return self._asked("forget", question["ids"])

    def _asked(self, verb: str, argument: Any) -> Any:
        import ray

        if not ray.is_initialized():
            ray.init(self._address, namespace=NAMESPACE, log_to_driver=False, logging_level="error")
        if self._ledger is None:
            self._ledger = self._found_ledger()
        # If it is dead its tasks are too. The node then ends this process, and the next one makes another ledger.
        return ray.get(getattr(self._ledger, verb).remote(argument), timeout=ANSWER_SECONDS)

    def _found_ledger(self) -> Any:
        """Return the ledger of the cluster; there is one, however many nodes ask at once."""
        import ray
        from ray import cloudpickle

        from everytick.runners import engine_call

        cloudpickle.register_pickle_by_value(engine_call)
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        # The head node: without it there is no cluster, so no other machine can take the ledger away.
        where = {"num_cpus": 0, "resources": {"node:__internal_head__": 0.001}}
        lasting = {"lifetime": "detached", "max_restarts": 0, "max_task_retries": 0}
        known = {"name": LEDGER, "namespace": NAMESPACE, "get_if_exists": True}
        return (
            ray.remote(Ledger).options(**where, **lasting, **known).remote(engine_call.call_there, self._keep_seconds)
        )


def main(address: str, keep_seconds: str) -> None:
    """Answer questions until there are no more.

    Call it by `python -c`: Ray puts the folder of a script into the path of its workers, and files in this one have the
    names of well-known packages.
    """
    # Ray writes to standard output; the answers have a way of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    link = Link(address, float(keep_seconds))
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = {"answer": getattr(link, question["verb"])(question)}
        except Exception as error:  # noqa: BLE001, whatever Ray raises: the node decides what it means
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    # What Ray does at the end of a process takes seconds, and its server notices by itself.
    os._exit(0)
