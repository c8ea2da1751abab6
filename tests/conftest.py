"""What every test finds in place: real servers on demand, and hypothesis set for shared machines."""

from hypothesis import settings

# A deadline per example measures the machine, not the code; pytest-timeout stops what hangs.
settings.register_profile("everytick", deadline=None, print_blob=True)
settings.load_profile("everytick")
