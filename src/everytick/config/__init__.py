"""Settings from outside the code, each with its origin."""
