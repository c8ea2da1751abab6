"""Answers: what questions return, as values and as JSON, in both directions.

The command line's `--json`, the HTTP API and the client write and read them here, so that one thing has one form.
"""
