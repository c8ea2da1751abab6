"""The store in one SQLite file: no server, and several processes may share it."""
