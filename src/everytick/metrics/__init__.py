"""Metrics in Prometheus' text format: what a node has counted, and what its store holds now."""
