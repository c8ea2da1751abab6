"""The runner dask: hands a function over to a Dask cluster, by its place `package.module:function`.

The key of the task there is the attempt's id, and the task is published under it, so that it goes on when this node is
gone and another one can ask for it. The scheduler must not run it again when a worker dies: everytick decides about
that.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from everytick.domain.outcome import Canceled, Lost, Outcome
from everytick.errors import MissingExtra, shown
from everytick.runners.engine_call import arguments_text, call_there, outcome_of
from everytick.runners.engine_losses import Losses
from everytick.runners.engines import Capabilities, EngineUnreachable, Work
from everytick.runners.outcomes import failed

_log = logging.getLogger("everytick.engines")

_ANSWER_SECONDS = 5.0
"""How long the scheduler has to answer."""


_CUT_OFF = "scheduler-connection-lost"
"""Why Dask's client counts all tasks as canceled when it loses its connection."""


class TriesAgain(Exception):
    """The scheduler would run a task again when its worker dies."""


class DaskEngine:
    """One Dask cluster."""

    name = "dask"
    capabilities = Capabilities(survives_node=True, cancels_running=False, reports_progress=False, keeps_output=False)

    def __init__(self, address: str, allow_calls: Sequence[str] = ()) -> None:
        try:
            import distributed
        except ImportError:
            raise MissingExtra("the runner dask", "dask") from None
        # By value: workers need no everytick.
        _send_by_value()
        self._make_client: Any = distributed.Client
        self._address, self._allowed = address, tuple(allow_calls)
        self._client: Any = None
        self._futures: dict[str, Any] = {}
        self._losses = Losses("Dask does not know it: its scheduler was restarted, or never got it")

    def reach(self) -> None:
        """Return if the scheduler answers, and would run nothing again by itself."""
        self._connected()

    def submit(self, work: Sequence[Work]) -> list[Exception | None]:
        """Hand these over, and publish each under its id."""
        try:
            client = self._connected()
            futures = {item.id: self._submitted(client, item) for item in work}
            client.publish_dataset(**futures)
        except EngineUnreachable as error:
            return [error] * len(work)
        except (OSError, TimeoutError) as error:
            # What was not published is forgotten by the scheduler, and found to be lost.
            text = (
                "dask: the scheduler failed while it got %d tasks: %s; those it does not have count as lost after 30 s"
            )
            _log.warning(text, len(work), error)
            self._disconnect()
            return [None] * len(work)
        self._futures.update(futures)
        return [None] * len(work)

    def _submitted(self, client: Any, work: Work) -> Any:
        text = arguments_text(work.args, work.kwargs)
        return client.submit(call_there, work.target, self._allowed, text, key=work.id, retries=0, pure=False)

    def poll(self, ids: Sequence[str]) -> Mapping[str, Outcome]:
        """Return how those have ended that have; the scheduler tells of those that this node waits for by itself."""
        client = self._connected()
        for id_ in [id_ for id_ in ids if id_ in self._futures and _is_cut_off(self._futures[id_])]:
            del self._futures[id_]
        unknown = [id_ for id_ in ids if id_ not in self._futures]
        if unknown:
            published = set(client.list_datasets())
            for id_ in unknown:
                if id_ in published:
                    self._futures[id_] = client.get_dataset(id_)
        futures = {id_: self._futures[id_] for id_ in ids if id_ in self._futures}
        done = {id_: future for id_, future in futures.items() if future.status == "finished"}
        texts = dict(zip(done, client.gather(list(done.values())), strict=True)) if done else {}
        ended: dict[str, Outcome] = {id_: outcome_of(text) for id_, text in texts.items()}
        for id_, future in futures.items():
            if future.status == "error":
                ended[id_] = failed(future.exception())
            elif future.status == "cancelled":
                ended[id_] = Canceled("canceled at Dask")
            elif future.status == "lost":
                ended[id_] = Lost("Dask has lost it")
        return ended | self._losses.among(ids, [id_ for id_ in unknown if id_ not in self._futures])

    def cancel(self, ids: Sequence[str]) -> None:
        """Take back what has not begun. A function that runs goes on: Dask cannot stop it."""
        with self._reaching() as client:
            client.cancel([self._futures[id_] for id_ in ids if id_ in self._futures], force=True)
        self.forget(ids)

    def forget(self, ids: Sequence[str]) -> None:
        """Let the scheduler free the results of these."""
        with self._reaching() as client:
            published = set(client.list_datasets())
            for id_ in ids:
                self._futures.pop(id_, None)
                if id_ in published:
                    client.unpublish_dataset(id_)

    def close(self) -> None:
        """Close the connection; what is published goes on."""
        self._disconnect()

    @contextmanager
    def _reaching(self) -> Iterator[Any]:
        """Give the client. What its connection raises says that the scheduler is not reached."""
        try:
            yield self._connected()
        except (OSError, TimeoutError) as error:
            self._disconnect()
            raise EngineUnreachable(shown(f"{type(error).__name__}: {error}", 300)) from error

    def _connected(self) -> Any:
        if self._client is not None and self._client.status in ("running", "connecting"):
            return self._client
        self._disconnect()
        try:
            client = self._make_client(self._address, timeout=_ANSWER_SECONDS, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise EngineUnreachable(shown(f"{type(error).__name__}: {error}", 300)) from error
        allowed = client.run_on_scheduler(_allowed_failures)
        if allowed != 0:
            client.close()
            raise TriesAgain(
                f"Dask would run a task again up to {allowed} times when its worker dies, and everytick decides about "
                "that: start the scheduler with DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES=0"
            )
        self._client = client
        return client

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        self._futures.clear()
        if client is not None:
            client.close(timeout=_ANSWER_SECONDS)


def _is_cut_off(future: Any) -> bool:
    """Whether it counts as canceled only because the connection was lost: the scheduler may know its task still."""
    return future.status == "cancelled" and getattr(future._state.exception, "reason", "") == _CUT_OFF


def _allowed_failures(dask_scheduler: Any) -> int:
    return int(dask_scheduler.allowed_failures)


def _send_by_value() -> None:
    import sys

    import cloudpickle

    from everytick.runners import engine_call

    cloudpickle.register_pickle_by_value(engine_call)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
