"""`python -m everytick` is the command `everytick`."""

from typing import NoReturn


def main() -> NoReturn:
    """Run the command. Ctrl-C while its modules are still being imported shows no traceback either."""
    try:
        from everytick.cli.main import main as command
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    command()


if __name__ == "__main__":
    main()
