"""Deeds: everything that a person can change from a page, as a table.

Each deed says what it asks for, what will happen, how it is done and how it is undone. `pages/doing.py` makes a
confirm page and a route of each.
"""
