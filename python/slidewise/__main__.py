"""`slidewise` and `python -m slidewise`: the command line."""

import sys

__all__ = ["main"]


def main() -> int:
    """Runs the command, or names the missing extra.

    Returns:
        The exit code: that of `slidewise.cli.main.main`, or 2 without rich.
    """
    try:
        from slidewise.cli.main import main as run
    except ModuleNotFoundError as error:
        if error.name != "rich":
            raise
        print(
            "slidewise: error: the command needs rich: pip install 'slidewise[cli]'",
            file=sys.stderr,
        )
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
