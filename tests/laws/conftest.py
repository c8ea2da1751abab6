"""A law that is broken says so within the time limit of a test: an example need not be the smallest of all."""

from hypothesis.internal.conjecture import engine

engine.MAX_SHRINKING_SECONDS = 30
"""By default five minutes, which the limit would cut short: a broken law would then tell nothing but that."""
