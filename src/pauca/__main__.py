"""``python -m pauca`` is the command ``pauca``."""

import sys

from pauca.cli import main

if __name__ == "__main__":
    sys.exit(main())
