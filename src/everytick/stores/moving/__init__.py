"""A store moves into another one while nodes run: see docs/decisions/0055-a-move-is-decided-by-the-old-store.md."""
