"""`python -m lc_run`."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
