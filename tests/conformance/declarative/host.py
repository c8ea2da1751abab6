"""The host that a story plays on."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def host_in(zone: str) -> Iterator[None]:
    """Let this host be in the zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = zone
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()
