"""`python -m windrow.calls ROOT FILE FIRST END`: the command of a task that is a call."""

import sys

from windrow.calls import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
