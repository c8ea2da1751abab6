"""Where: the only place that keeps anything. A store cannot decide; it commits what was decided, or says STALE."""
