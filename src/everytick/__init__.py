"""everytick: every tick, exactly once."""
