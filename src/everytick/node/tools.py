"""Tools: the parts of a node that are made before its engines, and that all parts of an engine may use."""

from everytick.domain.values import value
from everytick.node.alarms import Alarms
from everytick.node.clock import NodeClock, Offset
from everytick.node.events import Listeners
from everytick.node.health import Health
from everytick.node.inbox import Inbox
from everytick.node.logs import Logs
from everytick.node.reporter import Reporter
from everytick.node.settings import NodeSettings
from everytick.runners.base import Repertoire


@value
class Tools:
    """What the engine of one store works with.

    A second engine of the same node, on another store, has a clock, a health, a reporter and an
    inbox of its own.
    """

    settings: NodeSettings
    catalogue: Repertoire
    clock: NodeClock
    offset: Offset
    alarms: Alarms
    listeners: Listeners
    health: Health
    reporter: Reporter
    logs: Logs
    inbox: Inbox
    """Takes the events that are the node's: a beat is wanted, a step cannot be written."""
