"""`python -m everytick` is the command `everytick`."""

from typing import NoReturn


def main() -> NoReturn:
    """Run the command; whoever interrupts it while it is still being loaded sees no traceback either."""
    try:
        from everytick.cli.main import main as command
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    command()


if __name__ == "__main__":
    main()
