"""Readers of what other schedulers keep: each turns it into jobs of a file, and lists what it had to leave."""
