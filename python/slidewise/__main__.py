"""`python -m slidewise`: the command line."""

import sys

from slidewise.cli import main

if __name__ == "__main__":
    sys.exit(main())
