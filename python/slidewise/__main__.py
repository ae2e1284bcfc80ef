"""`python -m slidewise`: the command line."""

import sys

from slidewise.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
