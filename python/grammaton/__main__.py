"""The command line: `python -m grammaton segment text.txt` runs the program `grammaton`, which the wheel brings."""

import os
import sys

from .cluster import program


def main() -> None:
    """Replaces this process by the program, with the same arguments."""
    try:
        path = program("grammaton")
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    os.execv(path, ["grammaton", *sys.argv[1:]])


main()
