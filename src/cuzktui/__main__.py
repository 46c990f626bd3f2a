"""`python -m cuzktui` is `cuzktui`."""

from __future__ import annotations

import sys

from cuzktui.cli import main

if __name__ == "__main__":
    sys.exit(main())
