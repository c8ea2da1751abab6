"""The loops: the only sleeping, the only task groups."""
