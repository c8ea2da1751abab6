"""The runner ray: hands a function over to a Ray cluster, by its place `package.module:function`.

A process beside the node holds the connection, and an actor in the cluster, the ledger, holds the tasks and their ends
under the attempts' ids (`ray_link.py` says why). So a task goes on when this node is gone, and another one can ask for
it. Ray retries nothing: everytick decides about that. Arguments and results are JSON; nothing of a task is unpickled
here.
"""

import json
import logging
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from everytick.domain.outcome import Canceled, Failed, Outcome
from everytick.errors import MissingExtra, shown
from everytick.runners import ray_link
from everytick.runners.engine_call import arguments_text, outcome_of
from everytick.runners.engine_losses import Losses
from everytick.runners.engines import Capabilities, EngineUnreachable, Work
from everytick.runners.outcomes import bounded

_log = logging.getLogger("everytick.engines")

OPTIONS = ("num_cpus", "num_gpus")
"""What a definition may say of what a task takes of the cluster."""

_CONNECT_SECONDS = 60.0
"""Ray takes some seconds to load and to connect, and more where many processes share a core."""

_ANSWER_SECONDS = ray_link.ANSWER_SECONDS + 4.0
"""Longer than the link itself waits for the ledger: its own words say more than its silence."""

_FRESH_SECONDS = 0.5
"""For how long a cluster that has answered counts as reachable."""

_KEEP_SECONDS = 7 * 24 * 3600.0
"""How long the ledger keeps an end that no node asks for: as long as a store may be without any node."""

_PROGRAM = f"import sys; from {ray_link.__name__} import main; main(*sys.argv[1:])"

_FOREVER_WRONG = "mismatch"
"""Ray's word where the versions of Ray or Python differ from the cluster's: waiting does not help."""


class RayRefused(Exception):
    """The cluster cannot be used as it is."""


class RayEngine:
    """One Ray cluster."""

    name = "ray"
    capabilities = Capabilities(survives_node=True, reports_progress=False, keeps_output=False)

    def __init__(self, address: str, allow_calls: Sequence[str] = ()) -> None:
        if find_spec("ray") is None:
            raise MissingExtra("the runner ray", "ray")
        self._address, self._allowed = address, list(allow_calls)
        self._link: _Link | None = None
        self._asking = threading.Lock()
        self._reached_at = 0.0
        self._losses = Losses("Ray does not know it: its ledger or its head node was restarted, or never got it")

    def reach(self) -> None:
        """Return if the ledger answers."""
        with self._asking:
            self._reach()

    def submit(self, work: Sequence[Work]) -> list[Exception | None]:
        """Hand these over under their ids."""
        with self._asking:
            try:
                self._reach()
            except (EngineUnreachable, RayRefused) as error:
                return [error] * len(work)
            foreign = {item.id: sorted(set(item.options) - set(OPTIONS)) for item in work}
            fitting = [item for item in work if not foreign[item.id]]
            try:
                refused = dict(zip([item.id for item in fitting], self._submitted(fitting), strict=True))
            except (EngineUnreachable, RayRefused) as error:
                _log.warning(
                    "ray: the cluster failed while %d tasks were handed over: %s; those that its ledger does not know "
                    "when it answers again are recorded as lost, and the others go on",
                    len(fitting),
                    error,
                )
                refused = {}
        return [self._why_not(foreign[item.id], refused.get(item.id)) for item in work]

    def _submitted(self, work: Sequence[Work]) -> list[str | None]:
        items = [
            {
                "id": item.id,
                "target": item.target,
                "allowed": self._allowed,
                "arguments": arguments_text(item.args, item.kwargs),
                "options": {"num_cpus": 1, **item.options},
            }
            for item in work
        ]
        answers: list[str | None] = self._asked("submit", work=items) if items else []
        return answers

    def _why_not(self, foreign: Sequence[str], refused: str | None) -> Exception | None:
        if foreign:
            return RayRefused(f"Ray knows no option {', '.join(foreign)}; it knows {' and '.join(OPTIONS)}")
        return None if refused is None else RayRefused(refused)

    def poll(self, ids: Sequence[str]) -> Mapping[str, Outcome]:
        """Return how those have ended that have."""
        with self._asking:
            answer = self._asked("poll", ids=list(ids))
        ended = {id_: _outcome(end) for id_, end in answer["ended"].items()}
        return ended | self._losses.among(ids, answer["unknown"])

    def cancel(self, ids: Sequence[str]) -> None:
        """Do not begin these, or end the processes in which they run."""
        with self._asking:
            self._asked("cancel", ids=list(ids))

    def forget(self, ids: Sequence[str]) -> None:
        """Let the ledger free the ends of these."""
        with self._asking:
            self._asked("forget", ids=list(ids))

    def close(self) -> None:
        """End the process that holds the connection; what runs goes on."""
        # Without the lock: a question that is under way ends with the process.
        link, self._link = self._link, None
        if link is not None:
            link.end()

    def _reach(self) -> None:
        if self._link is None or time.monotonic() - self._reached_at > _FRESH_SECONDS:
            self._asked("reach")

    def _asked(self, verb: str, **given: Any) -> Any:
        """Return the ledger's answer."""
        is_new = self._link is None
        link = self._link = self._link or _Link(self._address)
        try:
            answer = link.asked({"verb": verb, **given}, _CONNECT_SECONDS if is_new else _ANSWER_SECONDS)
        except EngineUnreachable:
            self._link = None
            raise
        if "error" in answer:
            # A new process for the next question: a connection to a cluster that was restarted is of no use.
            self._link = None
            link.end()
            told = shown(" ".join(answer["error"].split()), 300)  # Ray's errors have many lines
            raise RayRefused(told) if _FOREVER_WRONG in told.lower() else EngineUnreachable(told)
        self._reached_at = time.monotonic()
        return answer["answer"]


class _Link:
    """The process that holds the connection."""

    def __init__(self, address: str) -> None:
        self._errors = tempfile.TemporaryFile("w+b")  # noqa: SIM115, it lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, address, str(_KEEP_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,  # Ctrl-C is for the node, which stops in its own order
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="everytick-ray-answers", daemon=True).start()

    def asked(self, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Return the answer. Without one in time the process is of no use, and ended."""
        assert self._process.stdin, "the process was started with a pipe"
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._answers.get(timeout=seconds)
        except (OSError, ValueError, queue.Empty) as error:  # ValueError: closed meanwhile, by `end`
            raise EngineUnreachable(f"no answer within {seconds:.0f} s: {self.end()}") from error
        if not line:
            raise EngineUnreachable(f"the connection has ended: {self.end()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> str:
        """The process is gone. Return the last line that it wrote."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._process.stdin.close() if self._process.stdin else None
        if self._errors.closed:
            return "it was closed"
        with self._errors as errors:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
        return shown(lines[-1], 300) if lines else "Ray said nothing"

    def _read(self) -> None:
        assert self._process.stdout, "the process was started with a pipe"
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line)
        self._answers.put("")


def _outcome(end: Mapping[str, Any]) -> Outcome:
    if "text" in end:
        return outcome_of(end["text"])
    if "canceled" in end:
        return Canceled("canceled at Ray")
    return Failed(bounded(end["failed"]), tuple(end["types"]))
