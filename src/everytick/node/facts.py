"""Facts: what this node says of itself, so that people can find nodes that disagree."""

import os
import platform
import socket
import sys
from datetime import datetime

from everytick.domain.nodes import NodeFacts
from everytick.node.settings import NodeSettings
from everytick.schedules.timezones import zone_data


def facts_of_this_node(settings: NodeSettings, application: str, started_at: datetime) -> NodeFacts:
    """Return what there is to know of a node that begins now in this process."""
    tables = zone_data()
    return NodeFacts(
        # Not imported: the front door leads to every layer above this one.
        version=sys.modules["everytick"].__version__,
        python=platform.python_version(),
        zone_data=f"{tables.version} ({tables.source})",
        host=socket.gethostname(),
        pid=os.getpid(),
        slots=settings.slots,
        queues=settings.queues,
        started_at=started_at,
        application=application,
    )
