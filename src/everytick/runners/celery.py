"""The runner celery: hands a task over to the workers of a Celery application, by its name.

The task's id in Celery is the attempt's. Celery's own retries are switched off as far as a caller can: the message
says that the task was tried often enough, and a task that asks for another try all the same is recorded as failed and
revoked. Arguments and results are JSON; a result is never unpickled.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from everytick.domain.durations import duration
from everytick.domain.outcome import Canceled, Failed, Outcome, TimedOut, names_of
from everytick.errors import InvalidDuration, InvalidSetting, MissingExtra, shown
from everytick.runners.celery_rabbitmq import (
    connection_options,
    declare_if_missing,
    is_rabbitmq,
    is_returned,
    named_queue,
    rabbitmq_options,
)
from everytick.runners.engines import Capabilities, EngineUnreachable, Work
from everytick.runners.outcomes import bounded, succeeded

_log = logging.getLogger("everytick.engines")

OPTIONS = ("queue", "priority", "exchange", "routing_key")
"""What a definition may say of how Celery brings the task to a worker."""

_TRIED_OFTEN = 1_000
"""The number of retries that a message claims to have behind it, so that `Task.retry` gives up at once."""

_ANSWER_SECONDS = 5.0
"""How long the broker and the result backend have for one answer."""

_FRESH_SECONDS = 0.5
"""For how long a broker that has answered counts as reachable."""

_UNREADABLE = "everytick: unreadable"
"""The status of a task whose result is there and cannot be read; Celery has none for it."""

_ENDED = frozenset({"SUCCESS", "FAILURE", "REVOKED", "RETRY", _UNREADABLE})


class CeleryEngine:
    """One Celery application, with the connections on which tasks are sent and their results are asked for."""

    name = "celery"
    capabilities = Capabilities(survives_node=True, reports_progress=False, keeps_output=False)

    def __init__(self, application: Any) -> None:
        self._app = application
        self._connection: Any = None
        self._producer: Any = None
        self._queues: set[str] = set()
        self._reached_at = 0.0

    # ------------------------------------------------------------------------------------------- the thread that sends

    def reach(self) -> None:
        """Return if the broker answers."""
        if self._producer is not None and time.monotonic() - self._reached_at < _FRESH_SECONDS:
            return
        self._connect()

    def submit(self, work: Sequence[Work]) -> list[Exception | None]:
        """Send each of these. After a failure nothing more is sent: only of one task is it unknown whether it was."""
        answers: list[Exception | None] = []
        for place, item in enumerate(work):
            try:
                # Asked once for all of them: a broker that is gone must not leave a task in doubt.
                self._connect() if place == 0 else self._connect_once()
                options = self._options(item)
            except EngineUnreachable as error:
                return [*answers, *(error for _ in work[place:])]
            except Exception as error:  # noqa: BLE001, a route or a queue that Celery or the broker refuses
                answers.append(error)
            else:
                answers.append(self._try_send(item, options))
        return answers

    def _options(self, work: Work) -> dict[str, Any]:
        """Return where the message goes. Its queue is there afterwards: RabbitMQ drops what no queue takes."""
        options: dict[str, Any] = self._app.amqp.router.route(dict(work.options), work.target, work.args, work.kwargs)
        if not is_rabbitmq(self._connection):
            return options
        queue = named_queue(self._app, options)
        if queue is None or queue.name in self._queues:
            return rabbitmq_options(options, queue)
        try:
            declare_if_missing(self._connection, queue)
        except (OSError, *self._connection.connection_errors) as error:
            self._disconnect()
            raise EngineUnreachable(_said(error)) from error
        self._queues.add(queue.name)
        return rabbitmq_options(options, queue)

    def _try_send(self, work: Work, options: Mapping[str, Any]) -> Exception | None:
        """Send it. Return None if the broker has it or may have it, and why not if it certainly has not."""
        try:
            self._send(work, options)
        except self._broker_errors() as error:
            self._disconnect()
            if is_returned(error):
                return error
            text = "celery: the broker failed while task %s was sent: %s; if it has not come, its timeout ends it"
            _log.warning(text, work.id, error)
        except Exception as error:  # noqa: BLE001, an argument that Celery refuses, a message that the broker refuses
            return error
        return None

    def _send(self, work: Work, options: Mapping[str, Any]) -> None:
        """Send one message, as `send_task` does, but without a subscription to its result for every task."""
        amqp = self._app.amqp
        seconds = None if work.expires is None else work.expires.total_seconds()
        message = amqp.create_task_message(
            work.id,
            work.target,
            tuple(work.args),
            dict(work.kwargs),
            expires=seconds,
            time_limit=seconds,
            retries=_TRIED_OFTEN,
            create_sent_event=self._app.conf.task_send_sent_event,
            ignore_result=False,
        )
        how = {"retry": False, "serializer": "json", "headers": dict(work.headers), **options}
        amqp.send_task_message(self._producer, work.target, message, **how)

    def cancel(self, ids: Sequence[str]) -> None:
        """Tell all workers to drop these tasks, and to end those that run in a process of their own."""
        self._connect_once()
        try:
            self._app.control.revoke(list(ids), terminate=True, signal="SIGTERM", connection=self._connection)
        except self._broker_errors() as error:
            self._disconnect()
            raise EngineUnreachable(_said(error)) from error

    def forget(self, ids: Sequence[str]) -> None:
        """Leave results to Celery's own `result_expires`: other tools may want to see them."""

    def close(self) -> None:
        """Close the connection to the broker."""
        self._disconnect()

    def _connect_once(self) -> None:
        if self._producer is None:
            self._connect()

    def _connect(self) -> None:
        """Return once the broker has answered. A connection that broke while nothing was sent is made anew at once."""
        if self._producer is not None:
            try:
                self._ask_broker()
            except self._broker_errors() as error:
                _log.debug("celery: the connection to the broker is made anew: %s", error)
                self._disconnect()
        if self._producer is None:
            try:
                self._make_connection()
                self._ask_broker()
            except self._broker_errors() as error:
                self._disconnect()
                raise EngineUnreachable(_said(error)) from error
        self._reached_at = time.monotonic()

    def _make_connection(self) -> None:
        options = connection_options(self._app.connection_for_write(), _ANSWER_SECONDS)
        self._connection = self._app.connection_for_write(transport_options=options)
        self._connection.ensure_connection(max_retries=1, timeout=_ANSWER_SECONDS, interval_start=0)
        self._producer = self._app.amqp.Producer(self._connection, auto_declare=False)

    def _ask_broker(self) -> None:
        channel = self._connection.default_channel
        if hasattr(channel, "client"):
            channel.client.ping()
        else:
            # RabbitMQ has to answer this, and it changes nothing: no message is consumed on this channel.
            channel.basic_qos(0, 0, False)

    def _disconnect(self) -> None:
        connection, self._connection, self._producer = self._connection, None, None
        self._queues.clear()
        if connection is not None:
            try:
                connection.collect(socket_timeout=0.1)
            except Exception as error:  # noqa: BLE001, it is of no use any more
                _log.debug("celery: a broken connection was not closed: %s", error)

    def _broker_errors(self) -> tuple[type[Exception], ...]:
        from kombu.exceptions import OperationalError

        connection = self._connection or self._app.connection_for_write()
        return (OperationalError, OSError, *connection.connection_errors, *connection.channel_errors)

    # ---------------------------------------------------------------------------------------- the thread that asks

    def poll(self, ids: Sequence[str]) -> Mapping[str, Outcome]:
        """Return how those have ended that have."""
        ended = {id_: _outcome(meta) for id_, meta in self._results(ids) if meta["status"] in _ENDED}
        asked_again = [id_ for id_, outcome in ended.items() if outcome is _ASKED_AGAIN]
        if asked_again:
            self._app.control.revoke(asked_again)
        return ended

    def _results(self, ids: Sequence[str]) -> Iterable[tuple[str, Mapping[str, Any]]]:
        """Give what the result backend has of these: in one question, if it can answer many."""
        # Not KeyValueStoreBackend, which those that push results, such as Redis, are not.
        from celery.backends.base import BaseKeyValueStoreBackend

        backend = self._app.backend
        if not isinstance(backend, BaseKeyValueStoreBackend):
            return [(id_, _asked_alone(backend, id_)) for id_ in ids]
        return [(id_, _meta(backend, text)) for id_, text in zip(ids, _texts(backend, ids), strict=True) if text]


def _texts(backend: Any, ids: Sequence[str]) -> list[Any]:
    """Return what a key-value store has of these tasks. Memcached answers with a table, and some can tell one only."""
    keys = [backend.get_key_for_task(id_) for id_ in ids]
    try:
        answer = backend.mget(keys)
    except NotImplementedError:
        return [backend.get(key) for key in keys]
    if not isinstance(answer, Mapping):
        return list(answer)
    by_name = {_text(key): text for key, text in answer.items()}
    return [by_name.get(_text(key)) for key in keys]


def _text(key: str | bytes) -> str:
    return key.decode() if isinstance(key, bytes) else key


def _asked_alone(backend: Any, id_: str) -> Mapping[str, Any]:
    """Return what a backend that is no key-value store has of one task."""
    from celery.exceptions import SecurityError
    from kombu.exceptions import SerializationError

    try:
        meta: Mapping[str, Any] = backend.get_task_meta(id_, cache=False)
    except (SecurityError, SerializationError, TypeError, ValueError) as error:
        return {"status": _UNREADABLE, "result": _said(error)}
    return meta


def _meta(backend: Any, text: Any) -> Mapping[str, Any]:
    """Return what the result backend has of one task. What cannot be read must not keep the others from their ends."""
    try:
        meta = backend.decode(text)
    except Exception as error:  # noqa: BLE001, whatever a decoder raises about what a worker wrote
        return {"status": _UNREADABLE, "result": _said(error)}
    if isinstance(meta, dict) and isinstance(meta.get("status"), str):
        return meta
    return {"status": _UNREADABLE, "result": "it is no record of Celery's"}


def _outcome(meta: Mapping[str, Any]) -> Outcome:
    match meta["status"]:
        case "SUCCESS":
            return succeeded(meta.get("result"))
        case "REVOKED":
            return Canceled("revoked at Celery")
        case "RETRY":
            return _ASKED_AGAIN
        case status if status == _UNREADABLE:
            text = f"the task has ended, but its result cannot be read: {meta['result']}; set result_serializer to json"
            # Trying again would do the same work.
            return Failed(bounded(f"{text} for its worker"), give_up=True)
    return _failure(meta.get("result"), meta.get("traceback"))


_ASKED_AGAIN = Failed("the task asked Celery for another try: everytick's retry policy decides about that")


def _failure(raised: Any, traceback: Any) -> Outcome:
    """Return the failure as the result backend has it: an exception, or its name, module and arguments."""
    if isinstance(raised, BaseException):
        module, kind, said = type(raised).__module__, type(raised).__qualname__, list(raised.args)
    elif isinstance(raised, dict):
        module, kind = str(raised.get("exc_module") or "builtins"), str(raised.get("exc_type") or "Exception")
        message = raised.get("exc_message")
        said = list(message) if isinstance(message, (list, tuple)) else [message]
    else:
        module, kind, said = "builtins", "Exception", [raised]
    text = str(traceback).rstrip("\n") if traceback else f"{kind}: {', '.join(map(str, said))}"
    if kind.endswith("TimeLimitExceeded"):
        return TimedOut()
    if module.startswith("everytick."):
        return _steered(kind, said, bounded(text))
    return Failed(bounded(text), _names(module, kind))


def _steered(kind: str, said: list[Any], text: str) -> Failed:
    """Return the failure of a task that raised GiveUp or TryAgain."""
    if kind == "GiveUp":
        return Failed(text, ("everytick.errors.GiveUp",), give_up=True)
    try:
        after = duration(said[0]) if kind == "TryAgain" and said else None
    except InvalidDuration:
        after = None
    return Failed(text, (f"everytick.errors.{kind}",), try_again_after=after)


def _names(module: str, kind: str) -> tuple[str, ...]:
    """Return what `Retry.on` may call the exception. It is not imported: bases are known of Python's own only."""
    import builtins

    known = getattr(builtins, kind, None) if module == "builtins" else None
    if isinstance(known, type) and issubclass(known, BaseException):
        return names_of(known)
    return (f"{module}.{kind}", "builtins.Exception", "builtins.BaseException")


def _said(error: BaseException) -> str:
    return shown(f"{type(error).__name__}: {error}", 300)


# --------------------------------------------------------------------------------------------------------- the setting


def celery_engine(place: str, results: str | None = None) -> CeleryEngine:
    """Return the engine of a Celery application: `module:application`, or the address of its broker.

    With an address, `results` is that of its result backend; a broker in Redis keeps results too.
    """
    try:
        from celery import Celery
    except ImportError:
        raise MissingExtra("the runner celery", "celery") from None
    if "://" not in place:
        return CeleryEngine(_checked(place, _imported(place)))
    if results is None and not place.startswith(("redis://", "rediss://")):
        reason = "keeps no results: give the address of the result backend in celery_results"
        raise InvalidSetting("celery", _hidden(place), reason)
    application = Celery("everytick", broker=place, backend=results or place)
    application.conf.update(
        broker_connection_timeout=_ANSWER_SECONDS,
        redis_socket_timeout=_ANSWER_SECONDS,
        redis_socket_connect_timeout=_ANSWER_SECONDS,
    )
    return CeleryEngine(_checked(place, application))


def _imported(place: str) -> Any:
    module, _, name = place.partition(":")
    try:
        application: Any = import_module(module)
        for part in (name or "app").split("."):
            application = getattr(application, part)
    except Exception as error:
        reason = f'names no Celery application, such as "shop.celery:app": {type(error).__name__}: {error}'
        raise InvalidSetting("celery", place, reason) from error
    return application


def _checked(place: str, application: Any) -> Any:
    """Return the application if another node could read its results, and reading them runs no code."""
    from celery import Celery
    from celery.backends.base import DisabledBackend

    if not isinstance(application, Celery):
        raise InvalidSetting("celery", place, f"is no Celery application but a {type(application).__name__}")
    said = _hidden(place)
    if isinstance(application.backend, DisabledBackend):
        reason = "has no result backend, so no node could tell how a task ended: set result_backend, or celery_results"
        raise InvalidSetting("celery", said, reason)
    if str(application.conf.result_backend).startswith("rpc"):
        reason = "sends results to one process only (rpc://): set a result_backend that every node can ask"
        raise InvalidSetting("celery", said, reason)
    if application.conf.result_serializer != "json":
        reason = f"writes results as {application.conf.result_serializer}: set result_serializer to json"
        raise InvalidSetting("celery", said, reason)
    return application


def _hidden(place: str) -> str:
    """Return an address without its password."""
    scheme, sign, rest = place.partition("://")
    return f"{scheme}://…@{rest.rpartition('@')[2]}" if sign and "@" in rest else place
