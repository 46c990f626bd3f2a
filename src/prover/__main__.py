"""`python -m prover` is `cuzk-prover`."""

from __future__ import annotations

import sys

from prover.cli import main

if __name__ == "__main__":
    sys.exit(main())
