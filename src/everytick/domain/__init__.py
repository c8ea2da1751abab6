"""Nouns: frozen values that the decisions speak in. Imports only `errors`."""
