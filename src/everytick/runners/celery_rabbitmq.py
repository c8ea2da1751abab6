"""What is different when Celery's broker is RabbitMQ: a message that no queue takes is dropped without a word.

So the queue is looked up before the first message, and made only if it is missing: a worker may have declared it with
arguments that we do not know (`x-max-priority`, `x-queue-type`), and RabbitMQ refuses a second declaration that says
otherwise. The broker confirms each message, and returns one that has no queue.
"""

from collections.abc import Mapping
from typing import Any

_NOT_FOUND = 404
"""The reply code of AMQP for a queue that is not there."""

_NO_ROUTE = 312
"""The reply code of AMQP for a message that no queue takes."""


def is_rabbitmq(connection: Any) -> bool:
    """Tell whether the broker speaks AMQP."""
    return str(connection.get_transport_cls().driver_type) == "amqp"


def connection_options(connection: Any, answer_seconds: float) -> dict[str, Any]:
    """Return how to connect: the broker confirms what it got, and one that falls silent is not waited for."""
    if not is_rabbitmq(connection):
        return {}
    return {"confirm_publish": True, "read_timeout": answer_seconds, "write_timeout": answer_seconds}


def named_queue(application: Any, options: Mapping[str, Any]) -> Any:
    """Return the queue to which the message goes by its name; None if an exchange decides."""
    if options.get("exchange") and options.get("routing_key"):
        return None
    named = options.get("queue") or application.amqp.default_queue
    queue = application.amqp.queues[named] if isinstance(named, str) else named
    return queue if queue.exchange.type == "direct" else None


def rabbitmq_options(options: Mapping[str, Any], queue: Any) -> dict[str, Any]:
    """Return the options of a message to this queue. Where an exchange decides, Celery declares what it needs."""
    return dict(options) if queue is None else {**options, "declare": [], "mandatory": True}


def declare_if_missing(connection: Any, queue: Any) -> None:
    """Make the queue if it is missing. One that is there stays as it is."""
    with connection.channel() as channel:
        try:
            queue(channel).queue_declare(passive=True)
        except connection.channel_errors as error:
            if getattr(error, "reply_code", None) != _NOT_FOUND:
                raise
            # RabbitMQ closes a channel with this answer, and py-amqp has opened it again.
            queue(channel).declare()


def is_returned(error: BaseException) -> bool:
    """Tell whether the broker gave the message back: no queue takes it."""
    return getattr(error, "reply_code", None) == _NO_ROUTE
