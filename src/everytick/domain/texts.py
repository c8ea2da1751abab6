"""Texts that are part of the contract: people search logs for them and tests compare them."""

JOB_ALREADY_REGISTERED = "job already registered: {id}"
"""S0-112: one name stands twice in one application."""
