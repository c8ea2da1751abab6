"""Verbs that both SQL stores carry out by the same steps: generators that yield commands and are sent the answers."""
