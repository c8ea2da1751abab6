"""Beats: everytick in the place of the part of a queue that says when work is due."""
