"""`python -m everytick` is the command `everytick`."""

from everytick.cli.main import main

if __name__ == "__main__":
    main()
