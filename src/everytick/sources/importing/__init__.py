"""Readers of other schedulers' files: each turns them into job files, and lists what it could not convert."""
